// SPDX-License-Identifier: Apache-2.0
#include <netio/pubsub.hpp>

int main() {
    netio::Publisher publisher{"127.0.0.1:12345"}; // any thread may publish
    publisher.wait_for_subscribers(1, std::chrono::seconds{60});
    for (std::uint64_t counter = 0; counter < 1'000'000; ++counter)
        publisher.publish_value(1, counter);
} // closes in order: every subscriber has received everything
