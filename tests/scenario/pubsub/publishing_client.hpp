// SPDX-License-Identifier: Apache-2.0
#pragma once

// A client's publishing side, on a loop in virtual time, with little memory for pages.

#include "pubsub/client/client_publisher.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <memory>
#include <string>
#include <vector>

namespace netio::pubsub::test {

class PublishingClientScenario : public PubSubScenario {
  protected:
    void serve(std::size_t queue_bytes = 1 << 20) {
        options.publisher.listen = {bed.address()};
        options.publisher.allow_remote_anonymous = true;
        options.page_size_bytes = 1024;
        options.page_count = 8;
        publisher = std::make_unique<ClientPublisher>(
            transport(), options, queue_bytes, std::string{},
            ClientCalls{.post = [this](auto task) { return loop().post(std::move(task)); },
                        .report = [this](const std::string& line) { told.push_back(line); },
                        .ended = [this] { ++ended; }});
        address = publisher->endpoints().front().address;
    }
    Subscription& subscribe_to(const FidRange& fids) {
        Subscription& made = subscribe({fids}, {.session = {.receive_count = 4}});
        EXPECT_TRUE(run_until([&] { return made.actor.subscribed.size() == 1; }));
        return made;
    }
    SubscriberActor& subscribe_to_one() { return subscribe_to(range(1, 1)).actor; }
    netio::Status publish(Fid fid, std::uint64_t number, std::size_t size) {
        return publisher->publish(fid, make_message(fid, number, size), 0);
    }
    netio::Status publish(std::uint64_t number, std::size_t size) {
        return publish(Fid{1}, number, size);
    }

    BufferedPublishSocket::Options options;
    int ended = 0;
    std::vector<std::string> told;
    std::unique_ptr<ClientPublisher> publisher;
};

} // namespace netio::pubsub::test
