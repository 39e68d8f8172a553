// SPDX-License-Identifier: Apache-2.0
#include <netio/pubsub.hpp>

#include <iostream>

int main() {
    netio::Subscriber subscriber{"127.0.0.1:12345"};
    subscriber.subscribe({0, 63}); // a range; subscribe(5) is one fid; FidSet for more
    for (const netio::Message& message : subscriber)
        std::cout << message.fid() << ": " << message.size()
                  << " bytes, lost before: " << message.lost_before() << '\n';
    std::cout << subscriber.stats().lost << " messages lost\n"; // also after the last one received
}
