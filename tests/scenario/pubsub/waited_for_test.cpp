// SPDX-License-Identifier: Apache-2.0

// What stopped subscribers with policy block cost the others, however many they are and however few
// messages each of them holds.

#include "tests/scenario/pubsub/waited_for.hpp"

#include <random>

namespace netio::pubsub::test::waited_for_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using namespace std::chrono_literals;

TEST_P(WaitedFor, StoppedSubscribersBlockOnlyTheirOwnFids) {
    auto publisher = small_buffered();
    gather(crowd);
    publish_for_all(*publisher, receives, 40);
    for (std::uint64_t guest = 0; guest < crowd; ++guest) {
        while (publish(*publisher, Fid{100 + guest}, 0, 900) == Status::ok)
            publisher->flush();
        expect_free(*publisher, 3);
    }
    EXPECT_TRUE(publisher_actor.closed.empty());
}

// Messages in pages that have not left yet will wait for these subscribers as soon as the pages
// leave.
TEST_P(WaitedFor, UnsentPagesForThemDoNotFillTheMemory) {
    auto publisher = small_buffered();
    gather(crowd);
    publish_for_all(*publisher, receives, 40);
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t guest = 0; guest < crowd; ++guest)
            static_cast<void>(publish(*publisher, Fid{100 + guest}, 0, 900));
        publisher->flush();
        expect_free(*publisher);
    }
    settle(*publisher);
    EXPECT_GE(publisher->snapshot().free, 28U * 1024);
    EXPECT_TRUE(publisher_actor.closed.empty());
}

TEST_P(WaitedFor, StoppedSubscribersLeavePublicationsForTheOthers) {
    for (const std::size_t limit : {2U, 3U, 16U, 64U}) {
        publisher_actor = {};
        auto publisher = unbuffered({.outstanding_limit = limit});
        gather(crowd);
        publish_for_all(*publisher, receives);
        for (std::uint64_t guest = 0; guest < crowd; ++guest) {
            while (publisher->publish(Fid{100 + guest}, memory.slice(0, 500), Cookie{key++}) ==
                   Status::ok) {
            }
            expect_free(*publisher, 3);
        }
        EXPECT_TRUE(publisher_actor.closed.empty()) << limit;
        stopped.clear();
        subscribers.clear();
    }
}

// Its receives hold one message, and it belongs to many groups.
TEST_P(WaitedFor, AStoppedSubscriberOfManyGroupsLeavesMemoryForOthers) {
    constexpr std::uint64_t groups = 127;
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 64, .flush_time = 1h});
    gather(0);
    for (std::uint64_t bit = 1; bit <= groups; bit *= 2) {
        std::vector<FidRange> ranges;
        for (std::uint64_t i = 1; i <= groups; ++i)
            if ((i & bit) != 0) ranges.push_back(range(100 + i, 100 + i));
        auto& other =
            subscribe(ranges, {.session = {.receive_buffer_bytes = 2048, .receive_count = 256}});
        ASSERT_TRUE(run_until([&] { return !other.actor.subscribed.empty(); }));
    }
    auto guest = stuck(range(100, 100 + groups));
    for (int i = 0; i < receives - 1; ++i) {
        ASSERT_EQ(publish(*publisher, Fid{100}, 0, 40), Status::ok);
        publisher->flush();
        settle(*publisher);
    }
    for (std::uint64_t i = 1; i <= groups; ++i)
        static_cast<void>(publish(*publisher, Fid{100 + i}, 0, 900));
    publisher->flush();
    settle(*publisher);
    EXPECT_GE(publisher->snapshot().free, 16U * 1024);
    expect_free(*publisher);
    EXPECT_TRUE(publisher_actor.closed.empty());
}

// Their fids are not published again, so no publication waits for those that hold something.
TEST_P(WaitedFor, DisconnectSubscribersBlockNoOneAlsoWithoutNewMessages) {
    auto publisher = small_buffered(
        {.slow_policy = SlowPolicy::disconnect, .disconnect_after = std::chrono::milliseconds{50}});
    gather(crowd);
    publish_for_all(*publisher, receives, 40);
    publish_for_all(*publisher, 1, 900);
    expect_free(*publisher);
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() > crowd / 4; }))
        << "those whose publication was blocked";
    expect_free(*publisher);
    EXPECT_LT(publisher_actor.closed.size(), crowd) << "no message waits for the others";
    // Now a publication does wait.
    const std::uint64_t number = honest->actor.messages;
    ASSERT_TRUE(
        run_until([&] { return publish(*publisher, free_fid, number, 60 * 1024) == Status::ok; }));
    ASSERT_TRUE(run_until([&] { return honest->actor.messages == number + 1; }));
    EXPECT_EQ(publisher_actor.closed.size(), crowd);
    for (const netio::Closed& closed : publisher_actor.closed) {
        EXPECT_EQ(closed.reason, CloseReason::too_slow);
        EXPECT_THAT(closed.detail, testing::HasSubstr("received nothing for more than 50 ms"));
    }
}

TEST_P(WaitedFor, DisconnectSubscribersLeavePublicationsForTheOthers) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::disconnect,
                                               .disconnect_after = std::chrono::milliseconds{50}},
                                 .outstanding_limit = 16});
    gather(crowd);
    publish_for_all(*publisher, receives + 1);
    expect_free(*publisher);
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() > crowd / 4; }));
    expect_free(*publisher);
    for (const netio::Closed& closed : publisher_actor.closed)
        EXPECT_EQ(closed.reason, CloseReason::too_slow) << closed.detail;
}

// Slow subscribers hold half of the outstanding publications, and tickets may not use the rest.
TEST_P(WaitedFor, TicketsLeavePublicationsForTheOthers) {
    auto publisher = unbuffered({.outstanding_limit = 16});
    gather(10);
    subscribe({range(100, 109)}, {.session = {.receive_count = 256}});
    ASSERT_TRUE(run_until([&] { return subscribers.back()->actor.subscribed.size() == 1; }));
    std::vector<PublishTicket> tickets;
    for (std::uint64_t guest = 0; guest < 10; ++guest) {
        for (Status status = Status::ok; status == Status::ok;) {
            auto attempt =
                publisher->try_publish(Fid{100 + guest}, memory.slice(0, 500), Cookie{key++});
            status = attempt.status;
            if (status == Status::partial) tickets.push_back(std::move(attempt.ticket));
            settle(*publisher);
        }
        expect_free(*publisher, 2);
    }
    EXPECT_EQ(tickets.size(), 8U);
}

// Many subscribers stop and continue: their messages waited in the publisher or with its user, and
// each `again` was followed by its callback.
template <typename Publish>
void pump(PublisherActor& actor, std::uint64_t fids, std::vector<std::uint64_t>& next,
          std::uint64_t count, Publish publish) {
    actor.at_room = [=, &next] {
        for (std::uint64_t fid = 0; fid < fids; ++fid)
            while (next[fid] < count && publish(Fid{100 + fid}, next[fid]))
                ++next[fid];
    };
    actor.at_room();
}

TEST_P(WaitedFor, ResumedSubscribersGetEverything) {
    constexpr std::uint64_t count = 30;
    auto publisher = small_buffered();
    gather(0);
    for (std::uint64_t i = 0; i < 40; ++i) {
        auto& guest = subscribe({range(100 + i, 100 + i)},
                                {.session = {.receive_buffer_bytes = 2048, .receive_count = 4}});
        ASSERT_TRUE(run_until([&] { return guest.actor.subscribed.size() == 1; }));
        guest.socket->pause();
    }
    std::vector<std::uint64_t> next(40);
    pump(publisher_actor, 40, next, count, [&](Fid fid, std::uint64_t number) {
        const std::size_t size = number % 10 == 7 ? 2900 : 600;
        return publish(*publisher, fid, number, size) == Status::ok;
    });
    expect_free(*publisher, 20);
    for (std::uint64_t i = 0; i < 40; ++i)
        subscribers[1 + i]->socket->resume();
    ASSERT_TRUE(run_until([&] { return next == std::vector<std::uint64_t>(40, count); }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
    for (std::uint64_t i = 0; i < 40; ++i) {
        subscribers[1 + i]->actor.expect_contiguous(Fid{100 + i}, 0, count);
        EXPECT_EQ(subscribers[1 + i]->actor.lost, 0U);
    }
}

TEST_P(WaitedFor, ResumedSubscribersGetAllZeroCopyMessages) {
    constexpr std::uint64_t count = 30;
    auto publisher = unbuffered({.outstanding_limit = 4});
    gather(0);
    for (std::uint64_t i = 0; i < 12; ++i) {
        auto& guest = subscribe({range(100 + i, 100 + i)},
                                {.session = {.receive_buffer_bytes = 2048, .receive_count = 4}});
        ASSERT_TRUE(run_until([&] { return guest.actor.subscribed.size() == 1; }));
        guest.socket->pause();
    }
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::uint64_t> next(12);
    netio::RegisteredBuffer all{12 * count * 4096};
    pump(publisher_actor, 12, next, count, [&](Fid fid, std::uint64_t number) {
        const std::uint64_t place = (to_integer(fid) - 100) * count + number;
        const netio::Slice slice = all.slice(place * 4096, number % 10 == 7 ? 4000 : 600);
        std::ranges::copy(make_message(fid, number, slice.size), slice.data);
        return publisher->publish(fid, slice, Cookie{1000 + place}) == Status::ok;
    });
    expect_free(*publisher, 20);
    for (std::uint64_t i = 0; i < 12; ++i)
        subscribers[1 + i]->socket->resume();
    ASSERT_TRUE(run_until([&] { return next == std::vector<std::uint64_t>(12, count); }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
    for (std::uint64_t i = 0; i < 12; ++i)
        subscribers[1 + i]->actor.expect_contiguous(Fid{100 + i}, 0, count);
    EXPECT_EQ(publisher_actor.completions.size(), 12 * count + 20);
    for (const auto& [cookie, times] : publisher_actor.completions)
        EXPECT_EQ(times, 1) << cookie;
}

// Dropped messages are not sent, so no completion would follow.
TEST_P(WaitedFor, MessagesDroppedForAllReleaseMemoryAtOnce) {
    constexpr std::uint64_t guests = 40;
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 256,
                               .page_count = 8,
                               .queue_limit_bytes = 64,
                               .flush_time = 1h});
    gather(guests);
    publish_for_all(*publisher, receives + 2, 8);
    std::mt19937 random{1};
    for (int i = 0; i < 20000; ++i) {
        const std::size_t size = i % 100 == 99 ? 1500 : 8;
        ASSERT_EQ(publish(*publisher, Fid{100 + random() % guests}, 0, size), Status::ok)
            << i << ' ' << publisher->snapshot().free;
    }
}

TEST_P(WaitedFor, ResumingWithoutQueuedMessagesIsNoticed) {
    auto publisher = unbuffered({.outstanding_limit = 2});
    auto other = stuck(range(200, 200));
    ASSERT_TRUE(keep_one_waiting(bed, *publisher, Fid{200}, memory.slice(0, 500)));
    auto& guest = subscribe({range(100, 100)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return guest.actor.subscribed.size() == 1; }));
    guest.socket->pause();
    const auto try_it = [&] {
        return publisher->publish(Fid{100}, memory.slice(0, 500), Cookie{key}) == Status::ok &&
               ++key > 0;
    };
    while (try_it())
        settle(*publisher);
    ASSERT_EQ(publisher->outstanding(), 1U) << "held by the other one";
    const std::uint64_t before = key;
    publisher_actor.at_room = [&] { static_cast<void>(try_it()); };
    guest.socket->resume();
    EXPECT_TRUE(run_until([&] { return key > before; }));
}

INSTANTIATE_TEST_SUITE_P(Beds, WaitedFor, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::waited_for_test
