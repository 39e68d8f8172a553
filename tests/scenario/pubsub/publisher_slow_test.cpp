// SPDX-License-Identifier: Apache-2.0

// Which subscribers a publisher disconnects or evicts, and which it does not, in virtual time.

#include "pubsub/publisher/backpressure.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace netio::pubsub::test::publisher_slow_test {
namespace {

using netio::Cookie;
using netio::Status;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

class PublisherAndSlow : public PubSubScenario {
  protected:
    static constexpr auto disconnect_after = 200ms;

    // Of 64 KiB.
    static BufferedPublishSocket::Options half_shares() {
        return {.publisher = {.slow_policy = SlowPolicy::drop},
                .page_size_bytes = 1024,
                .page_count = 64,
                .queue_limit_bytes = 32 * 1024};
    }
    Subscription& reader(const FidRange& range, SubscribeSocket::Options options = {},
                         std::optional<SlowPolicy> policy = {}) {
        Subscription& subscriber = subscribe({range}, std::move(options), policy);
        EXPECT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        return subscriber;
    }
    Subscription& paused(const FidRange& fids, std::optional<SlowPolicy> policy = {}) {
        Subscription& subscriber =
            reader(fids, {.session = {.receive_buffer_bytes = 4096, .receive_count = 4}}, policy);
        subscriber.socket->pause();
        return subscriber;
    }
    // One page each; afterwards all that can leave has left.
    void publish_pages(BufferedPublishSocket& publisher, Fid fid, std::uint64_t count) {
        for (std::uint64_t number = 0; number < count; ++number) {
            ASSERT_EQ(publish(publisher, fid, number, 900), Status::ok) << number;
            publisher.flush();
        }
        ASSERT_TRUE(run_until([&] {
            return std::ranges::all_of(
                publisher.snapshot().subscribers,
                [](const SubscriberSnapshot& each) { return each.posted == 0; });
        }));
    }
    static std::uint64_t dropped_of(Publisher& publisher, Fid fid) {
        for (const PublishedFidSnapshot& each : publisher.snapshot().fids)
            if (each.fid == fid) return each.dropped;
        return 0;
    }

    netio::RegisteredBuffer memory{100'000};
};

// The time limit for its queued messages applies only while another message waits for the memory.
TEST_P(PublisherAndSlow, NoDisconnectOnceNoMessageWaitsForMemoryAnyMore) {
    auto publisher = buffered({.publisher = {.disconnect_after = disconnect_after},
                               .page_size_bytes = 1024,
                               .page_count = 64});
    auto& guest = paused(range(1, 1), SlowPolicy::disconnect);
    publish_pages(*publisher, Fid{1}, 8);
    ASSERT_GT(publisher->snapshot().subscribers.at(0).waiting, 0U);
    auto& one = reader(range(2, 2));
    auto& other = reader(range(3, 3));
    ASSERT_EQ(publish(*publisher, Fid{2}, 0, 40 * 1024), Status::ok);
    ASSERT_EQ(publish(*publisher, Fid{3}, 0, 30 * 1024), Status::again) << "memory is short";
    ASSERT_TRUE(run_until([&] { return one.actor.messages == 1 && publisher_actor.room > 0; }));
    EXPECT_EQ(other.actor.messages, 0U);
    bed.let_pass(10 * disconnect_after); // and it is not tried again
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
    guest.socket->resume();
    ASSERT_TRUE(run_until([&] { return guest.actor.messages == 8; }));
}

TEST_P(PublisherAndSlow, NoDisconnectOnceTheOthersHavePublicationsAgain) {
    constexpr std::uint64_t others = 10;
    constexpr std::size_t limit = 8;
    auto publisher = unbuffered({.publisher = {.disconnect_after = disconnect_after},
                                 .outstanding_limit = limit,
                                 .queue_limit_messages = 2});
    for (std::uint64_t i = 0; i < others; ++i)
        reader(range(10 + i, 10 + i));
    auto& guest = paused(range(1, 1), SlowPolicy::disconnect);
    std::uint64_t key = 0;
    const auto publish_to = [&](std::uint64_t fid) {
        return publisher->publish(Fid{fid}, memory.slice(0, 10'000), Cookie{key++});
    };
    // Until one waits for the slow subscriber.
    ASSERT_TRUE(run_until([&] {
        return publisher->snapshot().subscribers.at(others).waiting > 0 ||
               publish_to(1) != Status::ok;
    }));
    ASSERT_EQ(publisher->snapshot().subscribers.at(others).waiting, 1U);
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 1; }));
    std::uint64_t next = 0;
    while (publish_to(10 + next) == Status::ok)
        ASSERT_LT(++next, others);
    EXPECT_EQ(publisher->outstanding(), limit);
    ASSERT_TRUE(run_until([&] { return publisher_actor.room > 0; }));
    bed.let_pass(10 * disconnect_after);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
    guest.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 0; }));
}

// The fids are not published any more, but another fid needs the memory.
TEST_P(PublisherAndSlow, DisconnectsOnceAllPublicationsAreHeldAndAnotherOneWaits) {
    constexpr std::uint64_t limit = 8;
    auto publisher = unbuffered(
        {.publisher = {.disconnect_after = disconnect_after}, .outstanding_limit = limit});
    for (std::uint64_t i = 0; i < limit; ++i)
        paused(range(10 + i, 10 + i), SlowPolicy::disconnect);
    auto& honest = reader(range(1, 1));
    std::uint64_t key = 0;
    const auto publish_to = [&](std::uint64_t fid, std::size_t bytes) {
        return publisher->publish(Fid{fid}, memory.slice(0, bytes), Cookie{key++});
    };
    for (std::uint64_t i = 0; i < limit; ++i) // a part of each leaves
        ASSERT_EQ(publish_to(10 + i, memory.size()), Status::ok);
    bed.let_pass(5 * disconnect_after);
    EXPECT_THAT(publisher_actor.closed, IsEmpty()) << "no message waits for their memory";
    ASSERT_EQ(publish_to(1, 100), Status::again);
    ASSERT_TRUE(run_until([&] { return publish_to(1, 100) == Status::ok; }));
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 1; }));
    ASSERT_FALSE(publisher_actor.closed.empty());
    EXPECT_THAT(publisher_actor.closed[0].detail, HasSubstr("for more than 200 ms"));
}

// While more than half of the memory is free, no subscriber is evicted, however long it has
// stalled.
TEST_P(PublisherAndSlow, EvictsNoStalledSubscriberWhileHalfOfTheMemoryIsFree) {
    constexpr std::uint64_t count = 30;
    auto publisher = buffered(half_shares());
    auto& sleeper = paused(range(1, 1));
    auto& honest = reader(range(2, 2));
    publish_pages(*publisher, Fid{1}, count);
    const std::size_t used = 64U * 1024 - publisher->snapshot().free;
    ASSERT_GT(used, 16U * 1024) << "a quarter";
    ASSERT_LT(used, 32U * 1024) << "half";
    ASSERT_TRUE(run_until([&] { return bed.seen().stalled.size() == 1; }));
    publish_pages(*publisher, Fid{2}, 2);
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 2; }));
    EXPECT_EQ(publisher->counters().dropped, 0U);
    sleeper.socket->resume();
    ASSERT_TRUE(run_until([&] { return sleeper.actor.messages == count; }));
    sleeper.actor.expect_contiguous(Fid{1}, 0, count);
    EXPECT_THAT(sleeper.actor.gaps, IsEmpty());
}

// The order of connecting is not the order of stalling.
TEST_P(PublisherAndSlow, EvictsOnlyTheLongestStalledIfThatIsEnough) {
    auto publisher = buffered(half_shares());
    auto& first = paused(range(1, 1));
    auto& second = paused(range(2, 2));
    auto& third = paused(range(3, 3));
    auto& honest = reader(range(4, 4));
    publish_pages(*publisher, Fid{2}, 24); // enough to make three quarters free
    bed.let_pass(500ms);
    publish_pages(*publisher, Fid{1}, 6);
    bed.let_pass(500ms);
    publish_pages(*publisher, Fid{3}, 6);
    ASSERT_TRUE(run_until([&] { return bed.seen().stalled.size() == 3; }));
    publish_pages(*publisher, Fid{4}, 8);
    EXPECT_GT(dropped_of(*publisher, Fid{2}), 0U) << "less than half was free";
    EXPECT_EQ(dropped_of(*publisher, Fid{1}), 0U);
    EXPECT_EQ(dropped_of(*publisher, Fid{3}), 0U);
    for (Subscription* const each : {&first, &second, &third})
        each->socket->resume();
    ASSERT_TRUE(run_until([&] {
        return first.actor.messages == 6 && third.actor.messages == 6 &&
               second.actor.messages + second.actor.gaps[Fid{2}] == 24;
    }));
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 8; }));
}

// Evicting the longest-stalled subscriber is not enough: some memory must be free for those that
// make progress.
TEST_P(PublisherAndSlow, EvictsStalledUntilThreeQuartersAreFreeThenQueuesThemNothing) {
    auto publisher = buffered(half_shares());
    auto& one = paused(range(1, 1));
    auto& other = paused(range(2, 2));
    auto& honest = reader(range(3, 3));
    publish_pages(*publisher, Fid{1}, 17);
    bed.let_pass(300ms);
    publish_pages(*publisher, Fid{2}, 17);
    ASSERT_TRUE(run_until([&] { return bed.seen().stalled.size() == 2; }));
    publish_pages(*publisher, Fid{3}, 8);
    EXPECT_GE(publisher->snapshot().free, 48U * 1024);
    for (const Fid fid : {Fid{1}, Fid{2}}) {
        const std::uint64_t before = dropped_of(*publisher, fid);
        EXPECT_GT(before, 0U);
        publish_pages(*publisher, fid, 3);
        EXPECT_EQ(dropped_of(*publisher, fid), before + 3) << "although there is memory enough";
    }
    for (Subscription* const each : {&one, &other})
        each->socket->resume();
    ASSERT_TRUE(run_until([&] {
        return one.actor.messages + one.actor.gaps[Fid{1}] == 20 &&
               other.actor.messages + other.actor.gaps[Fid{2}] == 20;
    }));
    const std::uint64_t before = publisher->counters().dropped;
    publish_pages(*publisher, Fid{1}, 3);
    EXPECT_EQ(publisher->counters().dropped, before) << "it makes progress again";
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 8; }));
}

// No subscriber has stalled yet: the largest holder loses no more than necessary.
TEST_P(PublisherAndSlow, TheLargestHolderLosesALittleAndASmallOneNothing) {
    auto publisher = buffered(half_shares());
    paused(range(1, 1));
    paused(range(2, 2));
    auto& honest = reader(range(3, 3));
    publish_pages(*publisher, Fid{1}, 8);
    publish_pages(*publisher, Fid{2}, 26);
    publish_pages(*publisher, Fid{3}, 8);
    ASSERT_THAT(bed.seen().stalled, IsEmpty());
    EXPECT_EQ(dropped_of(*publisher, Fid{1}), 0U);
    EXPECT_GE(dropped_of(*publisher, Fid{2}), 1U) << "less than half was free";
    EXPECT_LE(dropped_of(*publisher, Fid{2}), 4U);
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 8; }));
}

// Its policy is block, and none of its queued messages has begun to leave.
TEST_P(PublisherAndSlow, ABlockingSubscriberIsNotDisconnectedForQueuedMemory) {
    auto publisher = buffered({.publisher = {.disconnect_after = disconnect_after},
                               .page_size_bytes = 1024,
                               .page_count = 64});
    auto& guest = paused(range(1, 1));
    auto& honest = reader(range(2, 2));
    publish_pages(*publisher, Fid{1}, 12);
    ASSERT_EQ(publish(*publisher, Fid{2}, 0, 60 * 1024), Status::again) << "memory is short";
    bed.let_pass(10 * disconnect_after);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
    guest.socket->resume();
    ASSERT_TRUE(run_until([&] { return publish(*publisher, Fid{2}, 0, 60 * 1024) == Status::ok; }));
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 1; }));
    guest.actor.expect_contiguous(Fid{1}, 0, 12);
}

TEST_P(PublisherAndSlow, KeepsOneStoppedInALargeMessageUntilMemoryIsNeeded) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 64});
    auto& guest = paused(range(1, 1));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 12 * 1024), Status::ok);
    bed.let_pass(4s); // no heartbeat brings a credit in this time
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
    EXPECT_THAT(bed.seen().stalled, SizeIs(1));
    guest.socket->resume();
    ASSERT_TRUE(run_until([&] { return guest.actor.messages == 1; }));
    guest.actor.expect_contiguous(Fid{1}, 0, 1);
}

// Nothing is blocked by it, so it is watched only because of the messages in flight.
TEST_P(PublisherAndSlow, ReportsAStallWithZeroCopyMemoryToo) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop}});
    auto& subscriber = paused(range(1, 1));
    for (std::uint64_t i = 0; i < 20; ++i) {
        ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(0, 10'000), Cookie{i}), Status::ok);
        loop().run_once();
    }
    bed.let_pass(700ms);
    EXPECT_THAT(bed.seen().stalled, IsEmpty()) << "a short stall is not reported";
    bed.let_pass(700ms);
    EXPECT_THAT(bed.seen().stalled, SizeIs(1));
    EXPECT_THAT(bed.seen().recovered, IsEmpty());
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return bed.seen().recovered.size() == 1; }));
    EXPECT_GE(bed.seen().recovered[0].stalled, ProgressMonitor::reported_after);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
}

TEST_P(PublisherAndSlow, ReportsNoStallWithoutQueuedMessages) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop}});
    auto& subscriber = reader(range(1, 1));
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(0, 100), Cookie{1}), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    bed.let_pass(20s);
    EXPECT_THAT(bed.seen().stalled, IsEmpty());
    EXPECT_EQ(publisher->snapshot().subscribers.at(0).idle, netio::Duration::zero());
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherAndSlow, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::publisher_slow_test
