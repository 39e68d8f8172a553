// SPDX-License-Identifier: Apache-2.0
#pragma once

// A netio::Publisher on a loop in virtual time, with little memory for pages.

#include "pubsub/client/publisher.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/log_lines.hpp"

#include <memory>

namespace netio::pubsub::test {

class FrontPublisherScenario : public PubSubScenario {
  protected:
    void serve(std::size_t queue_bytes = 1 << 20) {
        options.context.emplace(transport());
        options.allow_remote_anonymous = true;
        options.queue_limit_bytes = queue_bytes;
        options.socket.page_size_bytes = 1024;
        options.socket.page_count = 8;
        publisher = std::make_unique<netio::Publisher>(bed.address(), options);
        address = publisher->address();
    }
    Subscription& subscribe_to(const FidRange& fids) {
        Subscription& made = subscribe({fids}, {.session = {.receive_count = 4}});
        EXPECT_TRUE(run_until([&] { return made.actor.subscribed.size() == 1; }));
        return made;
    }
    SubscriberActor& subscribe_to_one() { return subscribe_to(range(1, 1)).actor; }
    netio::Status publish(Fid fid, std::uint64_t number, std::size_t size) {
        return publisher->try_publish(fid, make_message(fid, number, size));
    }
    netio::Status publish(std::uint64_t number, std::size_t size) {
        return publish(Fid{1}, number, size);
    }
    std::uint64_t published() const { return publisher->stats().published; }

    netio::test::LogLines lines;
    netio::Publisher::Options options;
    std::unique_ptr<netio::Publisher> publisher;
};

} // namespace netio::pubsub::test
