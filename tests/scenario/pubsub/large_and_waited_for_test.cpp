// SPDX-License-Identifier: Apache-2.0

// Large messages and blocking subscribers: what stopped subscribers cost them, and what they cost.

#include "tests/scenario/pubsub/waited_for.hpp"

namespace netio::pubsub::test::large_and_waited_for_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using namespace std::chrono_literals;

using LargeAndWaitedFor = WaitedFor;

// A message larger than half of the memory could wait for subscribers that make progress.
TEST_P(LargeAndWaitedFor, ALargeMessageForAStoppedSubscriberLeavesMemoryForOthers) {
    auto publisher = small_buffered();
    gather(1);
    publish_for_all(*publisher, receives, 40);
    ASSERT_EQ(publish(*publisher, Fid{100}, 0, 60 * 1024), Status::again);
    expect_free(*publisher);
    stopped.clear();
    EXPECT_TRUE(
        run_until([&] { return publish(*publisher, Fid{100}, 0, 40) == Status::no_subscribers; }));
}

// Each subscriber receives a part of such a message, and the rest is kept for it. The publisher
// cannot know that it will stop: later it evicts those that have held the memory longest.
TEST_P(LargeAndWaitedFor, ASubscriberStoppedInLargeMessagesBlocksBriefly) {
    auto publisher = small_buffered();
    gather(crowd);
    std::uint64_t number = 0;
    for (int round = 0; round < 4; ++round) {
        publish_for_all(*publisher, 1, 3900);
        ASSERT_TRUE(
            run_until([&] { return publish(*publisher, free_fid, number, 3900) == Status::ok; }));
        ++number;
    }
    ASSERT_TRUE(run_until([&] { return honest->actor.messages == number; }));
    EXPECT_FALSE(publisher_actor.closed.empty());
    for (const netio::Closed& closed : publisher_actor.closed)
        EXPECT_EQ(closed.reason, CloseReason::too_slow) << closed.detail;
}

TEST_P(LargeAndWaitedFor, ASubscriberStoppedInLargeZeroCopyMessagesBlocksBriefly) {
    auto publisher = unbuffered({.outstanding_limit = 8});
    gather(20);
    netio::RegisteredBuffer large{500 * 1000}; // four frames per subscriber
    for (int round = 0; round < 3; ++round) {
        for_all(*publisher, 1, [&](Fid fid) {
            if (publisher->publish(fid, large.slice(), Cookie{key}) == Status::ok) ++key;
        });
        expect_free(*publisher, 3);
    }
    EXPECT_FALSE(publisher_actor.closed.empty());
    EXPECT_LT(publisher_actor.closed.size(), 20U) << "no more than necessary";
    for (const netio::Closed& closed : publisher_actor.closed)
        EXPECT_EQ(closed.reason, CloseReason::too_slow) << closed.detail;
}

// The blocking subscribers leave half of the memory free for it, however many they are.
TEST_P(LargeAndWaitedFor, AMessageOfHalfTheMemoryWaitsOnlyForItsOwnSubscribers) {
    constexpr std::uint64_t guests = 12; // each of them may hold a little more than half of it
    for (const std::size_t size : {900U, 2900U}) {
        SCOPED_TRACE(size);
        publisher_actor = {};
        auto publisher = small_buffered();
        gather(guests);
        publish_for_all(*publisher, receives, 40);
        for (std::uint64_t guest = 0; guest < guests; ++guest)
            while (publish(*publisher, Fid{100 + guest}, 0, size) == Status::ok)
                publisher->flush();
        for (int i = 0; i < 3; ++i) {
            const std::uint64_t number = honest->actor.messages;
            ASSERT_TRUE(run_until(
                [&] { return publish(*publisher, free_fid, number, 31 * 1024) == Status::ok; }));
            ASSERT_TRUE(run_until([&] { return honest->actor.messages == number + 1; }));
        }
        EXPECT_TRUE(publisher_actor.closed.empty());
        stopped.clear();
        subscribers.clear();
    }
}

// If a subscriber is evicted, both its queued messages and the one being sent are released.
TEST_P(LargeAndWaitedFor, NoMoreAreEvictedThanAMessageNeeds) {
    auto publisher = small_buffered();
    gather(2);
    publish_for_all(*publisher, receives - 1, 40);
    publish_for_all(*publisher, 3, 3900); // a part of the first one leaves
    const std::size_t before = publisher->snapshot().free;
    ASSERT_LT(before, 44U * 1024);
    ASSERT_TRUE(
        run_until([&] { return publish(*publisher, free_fid, 0, before + 4096) == Status::ok; }));
    ASSERT_TRUE(run_until([&] { return honest->actor.messages == 1; }));
    EXPECT_EQ(publisher_actor.closed.size(), 1U);
}

// Its eviction would release no memory, however long it has made no progress.
TEST_P(LargeAndWaitedFor, ASubscriberWithoutMemoryIsNotEvicted) {
    auto publisher = small_buffered();
    const auto guest = stuck(range(50, 50), SlowPolicy::drop);
    while (publisher->counters().dropped == 0)
        ASSERT_EQ(publish(*publisher, Fid{50}, 0, 900), Status::ok);
    settle(*publisher);
    gather(1);
    publish_for_all(*publisher, receives - 1, 40);
    publish_for_all(*publisher, 3, 3900); // a part of the first one leaves
    ASSERT_TRUE(
        run_until([&] { return publish(*publisher, free_fid, 0, 62 * 1024) == Status::ok; }));
    ASSERT_TRUE(run_until([&] { return honest->actor.messages == 1; }));
    EXPECT_EQ(publisher_actor.closed.size(), 1U);
    EXPECT_TRUE(run_until([&] { return stopped[0]->closed; }));
    EXPECT_FALSE(guest->closed);
}

// Then only close_timeout limits the wait for a subscriber.
TEST_P(LargeAndWaitedFor, AClosingPublisherEvictsNoSubscriberForAWaitingMessage) {
    auto publisher = small_buffered({.close_timeout = 10s});
    gather(0);
    auto& guest = subscribe({range(100, 100)},
                            {.session = {.receive_buffer_bytes = 2048, .receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return guest.actor.subscribed.size() == 1; }));
    guest.socket->pause();
    honest->socket->pause(); // no subscriber reads
    ASSERT_EQ(publish(*publisher, Fid{100}, 0, 40), Status::ok);
    publisher->flush();
    std::uint64_t number = 1;
    while (publish(*publisher, Fid{100}, number, 3900) == Status::ok)
        ++number; // a part of the first one leaves
    settle(*publisher);
    ASSERT_EQ(publish(*publisher, free_fid, 0, 60 * 1024), Status::again);
    publisher->close();
    netio::Timer wait{bed.loop(), [&] {
                          guest.socket->resume();
                          honest->socket->resume();
                      }};
    wait.start(3s);
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
    guest.actor.expect_contiguous(Fid{100}, 0, number);
}

INSTANTIATE_TEST_SUITE_P(Beds, LargeAndWaitedFor, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::large_and_waited_for_test
