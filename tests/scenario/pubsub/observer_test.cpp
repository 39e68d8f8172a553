// SPDX-License-Identifier: Apache-2.0

// Reports about a publisher's subscribers to a loop's observer.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::observer_test {
namespace {

using testing::IsEmpty;

using ObserverOfAPublisher = PubSubScenario;

TEST_P(ObserverOfAPublisher, IsNotifiedOfAStalledSubscriberAndOfItsProgress) {
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 1024,
                               .page_count = 64});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->pause();
    std::uint64_t number = 0;
    while (number < 200) {
        ASSERT_EQ(publish(*publisher, Fid{1}, number++, 500), netio::Status::ok);
        publisher->flush();
    }
    ASSERT_TRUE(run_until([&] { return !bed.seen().stalled.empty(); }));
    EXPECT_THAT(bed.seen().recovered, IsEmpty());
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return !bed.seen().recovered.empty(); }));
    EXPECT_EQ(bed.seen().stalled.size(), 1U) << "once, however long it takes";
    EXPECT_EQ(bed.seen().recovered[0].peer, bed.seen().stalled[0]);
    EXPECT_GE(bed.seen().recovered[0].stalled, std::chrono::seconds{1});
}

TEST_P(ObserverOfAPublisher, IsNotifiedOfADisconnectedSubscriber) {
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::disconnect,
                                             .disconnect_after = std::chrono::milliseconds{300}},
                               .page_size_bytes = 1024,
                               .page_count = 64});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->pause();
    std::uint64_t number = 0;
    ASSERT_TRUE(run_until([&] {
        static_cast<void>(publish(*publisher, Fid{1}, number++, 500));
        return !publisher_actor.closed.empty();
    }));
    const auto is_too_slow = [](const PeerDisconnected& event) {
        return event.closed.reason == netio::CloseReason::too_slow;
    };
    EXPECT_TRUE(std::ranges::any_of(bed.seen().disconnected, is_too_slow));
    EXPECT_EQ(publisher->counters().rejected, 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, ObserverOfAPublisher, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::observer_test
