// SPDX-License-Identifier: Apache-2.0

// Snapshots of a running publisher.

#include "pubsub/publisher/backpressure.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <numeric>

namespace netio::pubsub::test::snapshot_test {
namespace {

using netio::Cookie;
using netio::Status;

using Snapshots = PubSubScenario;

TEST_P(Snapshots, OfAPublisherWithoutSubscribersAreEmpty) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 8});
    EXPECT_EQ(publish(*publisher, Fid{1}, 0, 100), Status::no_subscribers);
    const PublisherSnapshot snapshot = publisher->snapshot();
    EXPECT_EQ(snapshot.pool, 8192U);
    EXPECT_EQ(snapshot.free, snapshot.pool);
    EXPECT_EQ(snapshot.least_free, snapshot.pool);
    EXPECT_TRUE(snapshot.subscribers.empty());
    EXPECT_EQ(snapshot.latency.count(), 0U);
}

TEST_P(Snapshots, AgreeWithTheFinalCounters) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 8});
    auto& subscriber = subscribe({range(1, 3)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 0; i < 30; ++i)
        ASSERT_EQ(publish(*publisher, Fid{1 + i % 3}, i, 50), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 30; }));
    ASSERT_TRUE(run_until([&] { return publisher->snapshot().free == 8192; }));
    const PublisherSnapshot snapshot = publisher->snapshot();
    ASSERT_EQ(snapshot.subscribers.size(), 1U);
    const SubscriberSnapshot& row = snapshot.subscribers.front();
    EXPECT_EQ(row.waiting + row.posted, 0U);
    EXPECT_EQ(row.dropped, 0U);
    EXPECT_GE(row.frames_sent, publisher->counters().pages);
    EXPECT_GE(row.bytes_sent, 30U * 50);
    EXPECT_GT(row.credits, 0U);
    EXPECT_EQ(snapshot.latency.count(), publisher->counters().pages);
    ASSERT_EQ(snapshot.fids.size(), 3U);
    for (const PublishedFidSnapshot& fid : snapshot.fids)
        EXPECT_EQ(fid.messages, 10U) << to_string(fid.fid);
}

TEST_P(Snapshots, ReportQueuePeaksSinceTheLastOne) {
    auto pages = buffered({});
    auto& reader = subscribe({range(1, 1)});
    auto lent = unbuffered({});
    auto& other = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until(
        [&] { return reader.actor.subscribed.size() == 1 && other.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*pages, Fid{1}, 0, 50), Status::ok);
    pages->flush();
    netio::RegisteredBuffer memory{50};
    ASSERT_EQ(lent->publish(Fid{1}, memory.slice(), Cookie{1}), Status::ok);
    ASSERT_TRUE(run_until([&] { return reader.actor.messages == 1 && other.actor.messages == 1; }));
    EXPECT_GE(pages->snapshot().subscribers.front().most_waiting, 50U);
    EXPECT_EQ(pages->snapshot().subscribers.front().most_waiting, 0U);
    EXPECT_EQ(lent->snapshot().subscribers.front().most_waiting, 1U);
    EXPECT_EQ(lent->snapshot().subscribers.front().most_waiting, 0U);
}

TEST_P(Snapshots, KeepTheLatencyOfDepartedSubscribers) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 8});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 50), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return publisher->snapshot().latency.count() == 1; }));
    subscriber.socket->abort();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_TRUE(publisher->snapshot().subscribers.empty());
    EXPECT_EQ(publisher->snapshot().latency.count(), 1U);
}

TEST_P(Snapshots, AreNoLargerThanTheirLimits) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 64});
    auto& one = subscribe({range(1, 100)});
    auto& other = subscribe({range(1, 100)});
    ASSERT_TRUE(run_until(
        [&] { return one.actor.subscribed.size() == 1 && other.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 1; i <= 100; ++i)
        ASSERT_EQ(publish(*publisher, Fid{i}, i, 50), Status::ok);
    const PublisherSnapshot snapshot = publisher->snapshot({.fids = 7, .subscribers = 1});
    EXPECT_EQ(snapshot.fids.size(), 7U);
    EXPECT_EQ(snapshot.fid_count, 100U);
    EXPECT_EQ(snapshot.subscribers.size(), 1U);
    EXPECT_EQ(snapshot.subscriber_count, 2U);
    EXPECT_TRUE(std::ranges::is_sorted(snapshot.fids, {}, &PublishedFidSnapshot::fid));
    // Later fids do not replace them in the snapshot.
    for (std::uint64_t i = 101; i <= 1000; ++i)
        ASSERT_EQ(publish(*publisher, Fid{i}, i, 50), Status::no_subscribers);
    const PublisherSnapshot next = publisher->snapshot({.fids = 7, .subscribers = 1});
    EXPECT_EQ(next.fid_count, 1000U);
    for (std::size_t i = 0; i < 7; ++i)
        EXPECT_EQ(next.fids.at(i).fid, snapshot.fids[i].fid);
}

// A stopped subscriber differs visibly from one that makes progress, whatever the policy is.
TEST_P(Snapshots, ShowTheMemoryOfEachSubscriberWhileOneIsStopped) {
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::disconnect}) {
        auto publisher = buffered({.publisher = {.slow_policy = policy},
                                   .page_size_bytes = 1024,
                                   .page_count = 64,
                                   .queue_limit_bytes = 8 * 1024});
        auto stopped = stuck(range(1, 1));
        std::uint64_t next = 0;
        ASSERT_TRUE(run_until([&] {
            while (next < 2000 && publish(*publisher, Fid{1}, next, 500) == Status::ok)
                ++next;
            const PublisherSnapshot now = publisher->snapshot();
            return now.subscribers.size() == 1 &&
                   now.subscribers[0].idle >= ProgressMonitor::stalled_after;
        }));
        const PublisherSnapshot snapshot = publisher->snapshot();
        const SubscriberSnapshot& row = snapshot.subscribers.front();
        if (policy == SlowPolicy::drop) {
            EXPECT_GT(row.dropped, 0U);
            EXPECT_EQ(row.dropped, publisher->counters().dropped);
            EXPECT_EQ(std::accumulate(snapshot.fids.begin(), snapshot.fids.end(), std::uint64_t{0},
                                      [](std::uint64_t sum, const PublishedFidSnapshot& each) {
                                          return sum + each.dropped;
                                      }),
                      publisher->counters().dropped);
        } else {
            EXPECT_GT(row.waiting, 0U);
            EXPECT_GT(publisher->counters().again, 0U);
            ASSERT_EQ(snapshot.fids.size(), 1U);
            EXPECT_EQ(snapshot.fids[0].again, publisher->counters().again);
            EXPECT_EQ(row.dropped, 0U);
            EXPECT_TRUE(row.waited_for);
            EXPECT_GT(snapshot.blocked_time, Duration{});
        }
        EXPECT_LT(snapshot.free, snapshot.pool);
        EXPECT_LE(row.least_credits, 1U) << "the last one is the session's own";
        stopped.reset();
        publisher->abort();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended > 0; }));
        publisher_actor = {};
    }
}

TEST_P(Snapshots, ShowTheMinimumOfFreeReceivesInBetween) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 64});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    static_cast<void>(publisher->snapshot());
    std::uint64_t number = 0;
    const auto send = [&](std::uint64_t until) {
        for (; number < until; ++number)
            ASSERT_EQ(publish(*publisher, Fid{1}, number, 500), Status::ok);
        publisher->flush();
        ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == until; }));
    };
    send(60); // at once: its receives are used up
    while (number < 80)
        send(number + 1); // one at a time: they are returned
    const SubscriberSnapshot now = publisher->snapshot().subscribers.front();
    EXPECT_LT(now.least_credits, now.credits);
    EXPECT_LE(now.least_credits, 2U);
}

TEST_P(Snapshots, ResetTheMinimumOfFreePublications) {
    auto publisher = unbuffered({.outstanding_limit = 16});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{1000};
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{i}), Status::ok);
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 0; }));
    EXPECT_EQ(publisher->snapshot().least_free, 13U);
    const PublisherSnapshot later = publisher->snapshot();
    EXPECT_EQ(later.least_free, 16U);
    EXPECT_EQ(later.free, 16U);
}

INSTANTIATE_TEST_SUITE_P(Beds, Snapshots, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::snapshot_test
