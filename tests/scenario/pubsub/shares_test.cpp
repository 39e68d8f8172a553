// SPDX-License-Identifier: Apache-2.0

// What stopped subscribers may cost the others: all subscribers of a publisher use the same memory.

#include "tests/scenario/pubsub/waited_for.hpp"

#include <gmock/gmock.h>

#include <chrono>

namespace netio::pubsub::test::shares_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using namespace std::chrono_literals;
using Shares = PubSubScenario;

TEST_P(Shares, StoppedDropSubscribersDoNotBlockABufferedPublisher) {
    auto publisher =
        buffered({.publisher = {.slow_policy = SlowPolicy::drop}, .page_size_bytes = 8 * 1024});
    auto& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    std::vector<std::unique_ptr<Impostor>> guests;
    std::uint64_t taken = 0;
    for (std::uint64_t guest = 0; guest < 12; ++guest) {
        guests.push_back(stuck(range(1, 1 + guest % 2)));
        for (int i = 0; i < 150; ++i, ++taken) {
            ASSERT_EQ(publish(*publisher, Fid{1}, taken, 7000), Status::ok) << guest;
            ASSERT_NE(publish(*publisher, Fid{2}, taken, 7000), Status::again) << guest;
            ASSERT_TRUE(run_until([&] { return honest.actor.messages == taken + 1; }));
        }
    }
    honest.actor.expect_contiguous(Fid{1}, 0, taken);
    EXPECT_TRUE(publisher_actor.closed.empty());
}

TEST_P(Shares, AStoppedDropSubscriberDoesNotBlockAnUnbufferedPublisher) {
    auto publisher = unbuffered({.outstanding_limit = 32});
    auto& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    auto guest = stuck(range(1, 1), SlowPolicy::drop);
    netio::RegisteredBuffer memory{100000};
    for (std::uint64_t i = 0; i < 200; ++i) {
        ASSERT_TRUE(run_until([&] {
            return publisher->publish(Fid{1}, memory.slice(), Cookie{i}) == Status::ok;
        })) << i;
    }
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 200; }));
}

TEST_P(Shares, StoppedSubscribersOfOwnFidsLeavePublicationsForOthers) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop}});
    auto& honest = subscribe({range(100, 100)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    std::vector<std::unique_ptr<Impostor>> guests;
    netio::RegisteredBuffer memory{100000};
    std::uint64_t key = 0;
    for (std::uint64_t guest = 0; guest < 8; ++guest)
        guests.push_back(stuck(range(guest, guest)));
    for (std::uint64_t round = 0; round < 300; ++round) {
        for (std::uint64_t guest = 0; guest < 8; ++guest) {
            ASSERT_EQ(publisher->publish(Fid{guest}, memory.slice(), Cookie{key++}), Status::ok)
                << round;
        }
        ASSERT_EQ(publisher->publish(Fid{100}, memory.slice(), Cookie{key++}), Status::ok) << round;
        ASSERT_TRUE(run_until([&] { return honest.actor.messages == round + 1; }));
    }
    guests.clear();
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 0; }));
    EXPECT_EQ(publisher_actor.completions.size(), key);
    for (const auto& [cookie, count] : publisher_actor.completions)
        ASSERT_EQ(count, 1) << cookie;
}

TEST_P(Shares, DisconnectsASlowSubscriberAlsoIfManyAreStopped) {
    auto publisher =
        buffered({.publisher = {.slow_policy = SlowPolicy::disconnect, .disconnect_after = 50ms},
                  .page_size_bytes = 1024,
                  .page_count = 16,
                  .queue_limit_bytes = 8 * 1024});
    auto& honest = subscribe({range(9, 9)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    std::vector<std::unique_ptr<Impostor>> guests;
    for (std::uint64_t guest = 1; guest <= 4; ++guest)
        guests.push_back(stuck(range(guest, guest)));
    std::uint64_t number = 0;
    ASSERT_TRUE(run_until([&] {
        for (std::uint64_t guest = 1; guest <= 4; ++guest)
            static_cast<void>(publish(*publisher, Fid{guest}, 0, 900));
        if (honest.actor.messages == number) { // it has received everything
            EXPECT_EQ(publish(*publisher, Fid{9}, number++, 100), Status::ok);
        }
        publisher->flush();
        return publisher_actor.closed.size() == 4;
    }));
    for (const netio::Closed& closed : publisher_actor.closed)
        EXPECT_EQ(closed.reason, CloseReason::too_slow) << closed.detail;
}

TEST_P(Shares, AStoppedDropSubscriberDoesNotDelayAPageForIdleSubscribers) {
    auto publisher = buffered({.page_size_bytes = 1024,
                               .page_count = 64,
                               .queue_limit_bytes = 8 * 1024,
                               .flush_time = {},
                               .flush_when_idle = true});
    auto& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    auto guest = stuck(range(1, 1), SlowPolicy::drop);
    for (std::uint64_t number = 0; number < 100; ++number)
        ASSERT_TRUE(
            run_until([&] { return publish(*publisher, Fid{1}, number, 300) == Status::ok; }));
    EXPECT_TRUE(run_until([&] { return honest.actor.messages == 100; })) << honest.actor.messages;
}

// Memory is short because of a subscriber whose messages cannot be removed: another one that holds
// less than the others keeps its messages.
TEST_P(Shares, ASmallHolderLosesNothingWhileAnotherHoldsHalf) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 64, .flush_time = {}});
    auto& honest = subscribe({range(3, 3)});
    auto& guest = subscribe({range(2, 2)}, {.session = {.receive_count = 4}}, SlowPolicy::drop);
    ASSERT_TRUE(run_until(
        [&] { return honest.actor.subscribed.size() == 1 && guest.actor.subscribed.size() == 1; }));
    auto blocker = stuck(range(1, 1));
    std::uint64_t held = 0;
    while (publish(*publisher, Fid{1}, held, 900) == Status::ok)
        ASSERT_LT(++held, 100U);
    guest.socket->pause();
    const auto publish_and_flush = [&](Fid fid, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            ASSERT_EQ(publish(*publisher, fid, i, 200), Status::ok) << i;
            publisher->flush();
        }
    };
    publish_and_flush(Fid{2}, 12);
    publish_and_flush(Fid{3}, 4);
    guest.socket->resume();
    ASSERT_TRUE(run_until([&] { return guest.actor.messages == 12; }));
    EXPECT_THAT(guest.actor.gaps, testing::IsEmpty());
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 4; }));
}

TEST_P(Shares, MoreGroupsThanPagesStillShareTheMemory) {
    constexpr std::uint64_t groups = 100;
    auto publisher = buffered({.page_size_bytes = 4096, .page_count = 64, .flush_time = 10s});
    for (std::uint64_t i = 0; i < groups; ++i)
        subscribe({range(i, i)}, {.session = {.receive_buffer_bytes = 8192, .receive_count = 8}});
    ASSERT_TRUE(run_until([&] {
        return std::ranges::all_of(
            subscribers, [](const auto& each) { return each->actor.subscribed.size() == 1; });
    }));
    std::uint64_t next = 0;
    const std::uint64_t count = groups * 200;
    const std::vector<std::byte> message(40);
    const auto pump = [&] {
        for (; next < count; ++next)
            if (publisher->publish(Fid{next % groups}, message) != Status::ok) return;
    };
    publisher_actor.at_room = pump;
    pump();
    ASSERT_TRUE(run_until([&] { return next == count; }));
    EXPECT_TRUE(publisher_actor.closed.empty());
    EXPECT_GE(count / publisher->counters().pages, 8U) << "messages per page";
}

TEST_P(Shares, TryPublishQueuesNothingForADropSubscriber) {
    auto publisher = unbuffered({});
    auto guest = stuck(range(1, 1), SlowPolicy::drop);
    auto& honest = subscribe({range(1, 1)}, {.session = {.receive_count = 64}});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{200};
    std::uint64_t number = 0;
    while (number < 40 &&
           publisher->try_publish(Fid{1}, memory.slice(), Cookie{number}).status == Status::ok)
        ++number;
    ASSERT_EQ(number, 40U);
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == number; }));
    EXPECT_TRUE(run_until([&] { return publisher->outstanding() < 10; })) << "messages are queued";
    EXPECT_GT(publisher->counters().dropped, 20U);
}

TEST_P(Shares, APageLostByAllSubscribersIsNotCountedAsSent) {
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 1024,
                               .page_count = 64,
                               .queue_limit_bytes = 2048});
    auto guest = stuck(range(1, 1));
    for (std::uint64_t number = 0; number < 50; ++number)
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 900), Status::ok);
    publisher->flush();
    EXPECT_EQ(publisher->counters().pages + publisher->counters().dropped, 50U);
}

// Another subscriber holds one of two publications, so no message may be queued for this one, which
// is also receiving the positions of more fids than can be in flight at a time.
TEST_P(Shares, PublishingResumesAfterABlockingSubscriberGotItsPositions) {
    constexpr std::uint64_t fids = 3000;
    auto publisher = unbuffered({.outstanding_limit = 2});
    netio::RegisteredBuffer memory{64};
    auto other = stuck(range(2 * fids, 2 * fids));
    ASSERT_TRUE(keep_one_waiting(bed, *publisher, Fid{2 * fids}, memory.slice()));
    for (std::uint64_t fid = 0; fid < fids; ++fid) {
        ASSERT_EQ(publisher->publish(Fid{fid}, memory.slice(), Cookie{fid}),
                  Status::no_subscribers);
    }
    std::size_t refused = 0;
    bool taken = false;
    const auto try_it = [&] {
        if (taken) return;
        taken = publisher->publish(Fid{1}, memory.slice(), Cookie{fids}) == Status::ok;
        if (!taken) ++refused;
    };
    publisher_actor.at_room = try_it;
    publisher_actor.at_subscribe = try_it;
    auto& subscriber =
        subscribe({range(0, fids)}, {.session = {.receive_count = 64}, .reconnect = true});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    EXPECT_GT(refused, 0U) << "the test must reach the limit";
}

// The lowest permitted number of publications.
TEST_P(Shares, AStoppedDropSubscriberLeavesOneOfTwoPublicationsToOthers) {
    auto publisher = unbuffered({.outstanding_limit = 2});
    netio::RegisteredBuffer memory{1000};
    auto& honest = subscribe({range(9, 9)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    auto guest = stuck(range(1, 1), SlowPolicy::drop);
    constexpr std::uint64_t count = 30;
    for (std::uint64_t i = 0; i < count; ++i) {
        static_cast<void>(publisher->publish(Fid{1}, memory.slice(), Cookie{2 * i}));
        ASSERT_TRUE(run_until([&] {
            return publisher->publish(Fid{9}, memory.slice(), Cookie{2 * i + 1}) == Status::ok;
        }));
        ASSERT_TRUE(run_until([&] { return honest.actor.messages == i + 1; }));
    }
    EXPECT_GT(publisher->counters().dropped, 0U);
    EXPECT_TRUE(publisher_actor.closed.empty());
}

TEST_P(Shares, QueueLimitsAboveHalfOfTheMemoryAreRefusedWithBothNumbers) {
    const auto refusal = [&](const auto& make) -> std::string {
        try {
            make();
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(
        refusal([&] {
            buffered({.page_size_bytes = 1024, .page_count = 4, .queue_limit_bytes = 2049});
        }),
        "queue_limit_bytes is 2049; one stopped subscriber must not keep more than half of the "
        "memory from the others, which is page_size_bytes * page_count = 4096 bytes");
    EXPECT_EQ(refusal([&] { unbuffered({.outstanding_limit = 1}); }),
              "outstanding_limit is 1; it must be from 2 to 4294967295");
    EXPECT_EQ(refusal([&] { unbuffered({.outstanding_limit = 8, .queue_limit_messages = 5}); }),
              "queue_limit_messages is 5; one stopped subscriber must not keep more than half of "
              "outstanding_limit, which is 8, from the others");
}

TEST_P(Shares, OptionsAreCheckedBeforeAnythingIsBound) {
    auto first = unbuffered({});
    PublisherActor actor;
    EXPECT_THROW(PublishSocket(transport(),
                               {.publisher = {.listen = {address}, .allow_remote_anonymous = true},
                                .outstanding_limit = 0},
                               actor),
                 std::invalid_argument);
}

// The sum with the present time would overflow, so every subscriber would be disconnected at once.
TEST_P(Shares, AnInfiniteTimeIsRefusedWithTheOptionsName) {
    constexpr auto for_ever = std::chrono::milliseconds::max();
    PublisherActor actor;
    const auto refusal = [&](Publisher::Options options) -> std::string {
        options.listen = {bed.address()};
        options.allow_remote_anonymous = true;
        try {
            const PublishSocket socket{transport(), {.publisher = options}, actor};
        } catch (const std::invalid_argument& refused) {
            return refused.what();
        }
        return "not refused";
    };
    EXPECT_THAT(refusal({.disconnect_after = for_ever}), testing::StartsWith("disconnect_after"));
    EXPECT_THAT(refusal({.close_timeout = for_ever, .close_limit = for_ever}),
                testing::StartsWith("close_timeout"));
    EXPECT_THAT(refusal({.close_limit = for_ever}), testing::StartsWith("close_limit"));
    EXPECT_THAT(refusal({.disconnect_after = std::chrono::hours{24 * 365}}), "not refused");
}

INSTANTIATE_TEST_SUITE_P(Beds, Shares, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::shares_test
