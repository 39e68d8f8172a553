// SPDX-License-Identifier: Apache-2.0

// When and how a subscriber gets reports of lost messages and of totals.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::telling_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using Telling = PubSubScenario;

TEST_P(Telling, ALossBelongsToItsSubscription) {
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 1024,
                               .page_count = 64,
                               .queue_limit_bytes = 20 * 1024});
    auto& subscriber = subscribe({range(1, 2)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t number = 0; number < 100; ++number)
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 900), Status::ok);
    publisher->flush();
    ASSERT_GT(publisher->counters().dropped, 0U);
    std::uint64_t at_the_end = 0;
    subscriber.actor.at_unsubscribed = [&](SubscribeSocket&) {
        at_the_end = subscriber.actor.gaps[Fid{1}];
    };
    subscriber.socket->unsubscribe(range(1, 1));
    subscriber.socket->subscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    EXPECT_EQ(at_the_end, publisher->counters().dropped);
    ASSERT_EQ(publish(*publisher, Fid{1}, 100, 10), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(subscriber.actor.gaps[Fid{1}], at_the_end) << "of a subscription without losses";
    EXPECT_EQ(subscriber.actor.lost, 0U);
}

TEST_P(Telling, ALossIsReportedAlsoWithoutAFollowingMessage) {
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 1024,
                               .page_count = 64,
                               .queue_limit_bytes = 4 * 1024});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t number = 0; number < 100; ++number)
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 900), Status::ok);
    publisher->flush();
    ASSERT_GT(publisher->counters().dropped, 0U);
    EXPECT_TRUE(run_until(
        [&] { return subscriber.actor.messages + subscriber.actor.gaps[Fid{1}] == 100; }));
}

TEST_P(Telling, TotalsBeyondThePendingAnswerLimitEndInOrder) {
    auto publisher = unbuffered({.outstanding_limit = 1024});
    constexpr std::uint64_t fids = 63000; // 15 per frame
    auto& subscriber = subscribe({range(0, fids)}, {.session = {.receive_buffer_bytes = 256}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{64};
    std::uint64_t next = 0;
    publisher_actor.at_room = [&] {
        for (; next < fids; ++next)
            if (publisher->publish(Fid{next}, memory.slice(0, 8), Cookie{next}) != Status::ok)
                return;
        publisher->close();
    };
    publisher_actor.at_room();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
    EXPECT_EQ(subscriber.actor.messages, fids);
    EXPECT_EQ(subscriber.actor.totals, 1);
    EXPECT_EQ(subscriber.actor.lost, 0U);
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::orderly);
}

TEST_P(Telling, ASubscriberWithManyLossesAndProgressStays) {
    auto publisher =
        buffered({.publisher = {.slow_policy = SlowPolicy::drop, .pending_reply_limit = 4},
                  .page_size_bytes = 512,
                  .page_count = 2048});
    auto& subscriber =
        subscribe({range(1, 1)}, {.session = {.receive_buffer_bytes = 1024, .receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    const std::vector<std::byte> message(480); // one page
    for (int cycle = 0; cycle < 3000; ++cycle) {
        loop().run_once(netio::TimePoint::max());
        const std::uint64_t dropped = publisher->counters().dropped;
        while (publisher->counters().dropped < dropped + 2 && publisher_actor.closed.empty())
            ASSERT_EQ(publisher->publish(Fid{1}, message), Status::ok);
    }
    EXPECT_TRUE(publisher_actor.closed.empty()) << publisher_actor.closed.front().detail;
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(subscriber.actor.lost, publisher->counters().dropped);
    EXPECT_EQ(subscriber.actor.messages + subscriber.actor.gaps[Fid{1}],
              publisher->counters().messages);
}

TEST_P(Telling, RequestsWithoutReadingAnswersReachANamedLimit) {
    auto publisher = buffered(
        {.publisher = {.pending_reply_limit = 2}, .page_size_bytes = 1024, .page_count = 64});
    auto guest = stuck(range(1, 1));
    while (publish(*publisher, Fid{1}, 0, 900) == Status::ok)
        publisher->flush(); // until nothing more leaves for it
    const FidRange fid = range(2, 2);
    std::vector<std::byte> request(request_header_bytes + range_bytes);
    std::uint32_t sequence = 2;
    ASSERT_TRUE(run_until([&] {
        if (!publisher_actor.closed.empty()) return true;
        if (sequence < 8) {
            encode_request(sequence, std::span{&fid, 1}, request);
            guest->send_frame({.kind = subscribe_kind, .sequence = sequence++}, request);
        }
        return false;
    }));
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::protocol_error);
}

INSTANTIATE_TEST_SUITE_P(Beds, Telling, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::telling_test
