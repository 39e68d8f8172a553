// SPDX-License-Identifier: Apache-2.0

// Conflation: subscribers want the newest message of each fid and may lose all earlier ones.

#include "tests/scenario/pubsub/exact_account.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <stdexcept>
#include <utility>

namespace netio::pubsub::test::newest_test {
namespace {

using netio::CloseReason;
using netio::Status;
using testing::IsEmpty;
using testing::SizeIs;

class NewestMessages : public PubSubScenario {
  protected:
    static BufferedPublishSocket::Options small_pages() {
        return {.page_size_bytes = 1024, .page_count = 64, .queue_limit_bytes = 4 * 1024};
    }
    void settle() {
        for (int i = 0; i < 50; ++i)
            loop().run_once();
    }
    Subscription& paused(const std::vector<FidRange>& ranges, SubscribeSocket::Options options = {},
                         SlowPolicy policy = SlowPolicy::newest) {
        options.session.receive_buffer_bytes = 4096;
        options.session.receive_count = 4;
        Subscription& subscriber = subscribe(ranges, options, policy);
        EXPECT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == ranges.size(); }));
        subscriber.socket->pause();
        return subscriber;
    }
    // Publishes the numbers from `first` on to each of these fids; every 50th message needs several
    // pages.
    void publish_all(BufferedPublishSocket& publisher, std::uint64_t last_fid, std::uint64_t first,
                     std::uint64_t count) {
        for (std::uint64_t number = first; number < first + count; ++number) {
            for (std::uint64_t fid = 1; fid <= last_fid; ++fid) {
                ASSERT_EQ(publish(publisher, Fid{fid}, number, number % 50 == 3 ? 3000 : 40),
                          Status::ok);
            }
            if (number % 20 == 0) settle();
        }
        publisher.flush();
        settle();
    }
    // Creates stopped subscribers with a fid of their own; returns them, because they must stay
    // connected.
    auto others_need_the_memory(BufferedPublishSocket& publisher) {
        auto others = std::pair{stuck(range(10, 10), SlowPolicy::drop),
                                stuck(range(11, 11), SlowPolicy::drop)};
        for (std::uint64_t number = 0; number < 100; ++number)
            for (const std::uint64_t fid : {10U, 11U})
                EXPECT_EQ(publish(publisher, Fid{fid}, number, 900), Status::ok);
        return others;
    }
    static std::uint64_t last_of(const Subscription& subscriber, std::uint64_t fid) {
        const auto found = subscriber.actor.by_fid.find(Fid{fid});
        return found == subscriber.actor.by_fid.end() || found->second.empty()
                   ? UINT64_MAX
                   : found->second.back().number;
    }
};

TEST_P(NewestMessages, ArriveAfterTheLossReportWhenTheSubscriberResumes) {
    auto publisher = buffered(small_pages());
    auto& subscriber = paused({range(1, 3)});
    publish_all(*publisher, 3, 0, 504); // the last message is large
    EXPECT_GT(publisher->counters().dropped, 0U);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return last_of(subscriber, 3) == 503; }));
    std::uint64_t gaps = 0;
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        ASSERT_TRUE(run_until([&] { return last_of(subscriber, fid) == 503; }));
        expect_exact_account(subscriber.actor, Fid{fid}, 504);
        EXPECT_THAT(subscriber.actor.gap_counts[Fid{fid}], SizeIs(1)) << "exactly one loss report";
        gaps += subscriber.actor.gaps[Fid{fid}];
    }
    EXPECT_EQ(gaps, publisher->counters().dropped);
    // A subscriber that is fast enough again loses nothing.
    for (std::uint64_t number = 504; number < 600; ++number) {
        publish_all(*publisher, 3, number, 1);
        ASSERT_TRUE(run_until([&] { return last_of(subscriber, 3) == number; }));
    }
    EXPECT_EQ(gaps, publisher->counters().dropped);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
    EXPECT_EQ(subscriber.actor.lost, gaps);
}

TEST_P(NewestMessages, BlockNoOneAndApplyOnlyToTheirRanges) {
    auto publisher = buffered(small_pages());
    auto& steady = subscribe({range(1, 3)});
    ASSERT_TRUE(run_until([&] { return steady.actor.subscribed.size() == 1; }));
    auto& mixed = paused({range(1, 2)});
    mixed.socket->subscribe(range(3, 3), SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 3; }));
    constexpr std::uint64_t count = 500;
    for (std::uint64_t number = 0; number < count; ++number)
        for (std::uint64_t fid = 1; fid <= 3; ++fid) {
            ASSERT_TRUE(
                run_until([&] { return publish(*publisher, Fid{fid}, number, 40) == Status::ok; }));
        }
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return steady.actor.messages == 3 * count; }));
    mixed.socket->resume();
    ASSERT_TRUE(run_until(
        [&] { return last_of(mixed, 1) == count - 1 && last_of(mixed, 2) == count - 1; }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_LT(last_of(mixed, 3), count - 1) << "policy drop loses the last messages";
    for (std::uint64_t fid = 1; fid <= 3; ++fid)
        expect_exact_account(mixed.actor, Fid{fid}, count);
    EXPECT_THAT(steady.actor.gaps, IsEmpty());
}

// It has never received everything: other ranges always have more data than it can receive.
TEST_P(NewestMessages, AreNotDelayedForeverByARangeWithPolicyDrop) {
    auto publisher = buffered(small_pages());
    auto& subscriber = paused({range(1, 1)});
    subscriber.socket->subscribe(range(2, 2), SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
    std::uint64_t number = 0;
    const auto burst = [&] {
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 500), Status::ok);
        for (std::uint64_t i = 0; i < 100; ++i)
            ASSERT_EQ(publish(*publisher, Fid{2}, 100 * number + i, 500), Status::ok);
        ++number;
    };
    while (number < 20)
        burst();
    subscriber.actor.at_message = [&](SubscribeSocket&) { burst(); };
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return last_of(subscriber, 1) + 1 > 200 || number > 5000; }));
    EXPECT_LT(number, 5000U);
    subscriber.actor.at_message = {};
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    expect_exact_account(subscriber.actor, Fid{1}, number);
    EXPECT_EQ(last_of(subscriber, 1), number - 1);
}

TEST_P(NewestMessages, ArriveBeforeTheEndOfAPublisherThatCloses) {
    auto publisher = buffered(small_pages());
    auto& subscriber = paused({range(1, 3)});
    publish_all(*publisher, 3, 0, 400);
    publisher->close();
    settle();
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
    EXPECT_EQ(subscriber.actor.totals, 1);
    EXPECT_EQ(subscriber.actor.lost, publisher->counters().dropped);
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        EXPECT_EQ(last_of(subscriber, fid), 399U);
        expect_exact_account(subscriber.actor, Fid{fid}, 400);
    }
}

TEST_P(NewestMessages, AreReportedLostBeforeTheAnswerToAnUnsubscription) {
    auto publisher = buffered(small_pages());
    auto& subscriber = paused({range(1, 2)});
    publish_all(*publisher, 2, 0, 300);
    subscriber.socket->unsubscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return publisher_actor.unsubscribed.size() == 1; }));
    subscriber.actor.at_unsubscribed = [&](SubscribeSocket&) {
        expect_exact_account(subscriber.actor, Fid{1}, 300);
    };
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return last_of(subscriber, 2) == 299; }));
    EXPECT_THAT(subscriber.actor.unsubscribed, SizeIs(1));
    EXPECT_LT(last_of(subscriber, 1), 299U);
    expect_exact_account(subscriber.actor, Fid{2}, 300);
    EXPECT_EQ(publisher->counters().dropped,
              subscriber.actor.gaps[Fid{1}] + subscriber.actor.gaps[Fid{2}]);
}

TEST_P(NewestMessages, AreReportedLostWhenTheFidGetsAnotherPolicy) {
    auto publisher = buffered(small_pages());
    auto& subscriber = paused({range(1, 2)});
    publish_all(*publisher, 2, 0, 300);
    subscriber.socket->subscribe(range(1, 1), SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
    publish_all(*publisher, 2, 300, 100);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return last_of(subscriber, 2) == 399; }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (std::uint64_t fid = 1; fid <= 2; ++fid)
        expect_exact_account(subscriber.actor, Fid{fid}, 400);
}

TEST_P(NewestMessages, AreReleasedWithADeadSubscriber) {
    auto publisher = buffered(small_pages());
    auto& steady = subscribe({range(1, 3)}, {}, SlowPolicy::block);
    ASSERT_TRUE(run_until([&] { return steady.actor.subscribed.size() == 1; }));
    auto slow = stuck(range(1, 3), SlowPolicy::newest);
    std::uint64_t next = 0;
    ASSERT_TRUE(run_until([&] {
        while (next < 500 && publish(*publisher, Fid{1}, next, 40) == Status::ok)
            ++next;
        return next == 500;
    }));
    slow.reset();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    ASSERT_TRUE(run_until([&] { return publish(*publisher, Fid{1}, next, 40) == Status::ok; }));
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return steady.actor.messages == 501; }));
    ASSERT_TRUE(run_until([&] {
        const PublisherSnapshot snapshot = publisher->snapshot();
        return snapshot.free == snapshot.pool;
    }));
}

TEST_P(NewestMessages, AreLostBeyondTheLimitBeginningWithTheOldest) {
    BufferedPublishSocket::Options options = small_pages();
    options.newest_bytes = 1000; // five messages with their overhead
    auto publisher = buffered(options);
    auto& subscriber = paused({range(1, 9)});
    publish_all(*publisher, 9, 4, 40);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return last_of(subscriber, 9) == 43; }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    std::uint64_t gaps = 0;
    for (std::uint64_t fid = 1; fid <= 9; ++fid) {
        EXPECT_EQ(last_of(subscriber, fid) == 43, fid >= 5) << fid;
        gaps += subscriber.actor.gaps[Fid{fid}];
        EXPECT_EQ(subscriber.actor.by_fid[Fid{fid}].size() + subscriber.actor.gaps[Fid{fid}], 40U);
    }
    EXPECT_EQ(gaps, publisher->counters().dropped);
    EXPECT_EQ(gaps, subscriber.actor.lost);
}

// When memory is short, messages queued for subscribers that may lose them are removed: then all
// but the last message of each fid are lost, too.
TEST_P(NewestMessages, AreStoredWhenOthersNeedTheMemory) {
    auto publisher =
        buffered({.page_size_bytes = 1024, .page_count = 64, .queue_limit_bytes = 30 * 1024});
    auto& subscriber = paused({range(1, 3)});
    publish_all(*publisher, 3, 0, 60); // fewer than its limit
    ASSERT_EQ(publisher->counters().dropped, 0U);
    const auto others = others_need_the_memory(*publisher);
    subscriber.socket->resume();
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        ASSERT_TRUE(run_until([&] { return last_of(subscriber, fid) == 59; }));
        expect_exact_account(subscriber.actor, Fid{fid}, 60);
        EXPECT_GT(subscriber.actor.gaps[Fid{fid}], 0U) << "some messages must have been removed";
    }
}

// One message of each fid is queued, and it is stored when it is removed from the queue: nothing is
// lost or reported lost.
TEST_P(NewestMessages, AllStoredWhenOthersNeedTheMemoryCostNoMoreFrames) {
    constexpr std::uint64_t fids = 25;
    auto publisher =
        buffered({.page_size_bytes = 1024, .page_count = 64, .queue_limit_bytes = 30 * 1024});
    auto& subscriber = paused({range(101, 100 + fids)});
    const auto frames = [&] { return publisher->snapshot().subscribers.front().frames_sent; };
    const std::uint64_t before = frames();
    for (std::uint64_t fid = 101; fid <= 100 + fids; ++fid)
        ASSERT_EQ(publish(*publisher, Fid{fid}, 0, 900), Status::ok); // one page each
    publisher->flush();
    settle();
    const std::size_t waiting = publisher->snapshot().subscribers.front().waiting;
    const auto others = others_need_the_memory(*publisher);
    ASSERT_LT(publisher->snapshot().subscribers.front().waiting, waiting)
        << "some messages must have been removed";
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == fids; }));
    EXPECT_EQ(frames() - before, fids);
    EXPECT_THAT(subscriber.actor.gaps, IsEmpty());
}

// Then nothing is left to send except the loss report, which is sent without a message.
TEST_P(NewestMessages, ThatDoNotFitWhenOthersNeedTheMemoryAreReportedLost) {
    auto publisher = buffered({.page_size_bytes = 1024,
                               .page_count = 64,
                               .queue_limit_bytes = 30 * 1024,
                               .newest_bytes = 1});
    auto& subscriber = paused({range(1, 3)});
    publish_all(*publisher, 3, 0, 60); // fewer than its limit
    ASSERT_EQ(publisher->counters().dropped, 0U);
    const auto others = others_need_the_memory(*publisher);
    subscriber.socket->resume();
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        ASSERT_TRUE(run_until([&] {
            return subscriber.actor.by_fid[Fid{fid}].size() + subscriber.actor.gaps[Fid{fid}] == 60;
        }));
        expect_exact_account(subscriber.actor, Fid{fid}, 60);
        EXPECT_NE(last_of(subscriber, fid), 59U) << "the last messages must have been removed";
    }
}

// Stored messages of an earlier subscription do not belong to the next one.
TEST_P(NewestMessages, OfAFormerSubscriptionAreNotStored) {
    auto publisher =
        buffered({.page_size_bytes = 1024, .page_count = 64, .queue_limit_bytes = 30 * 1024});
    auto& subscriber = paused({range(1, 2)});
    publish_all(*publisher, 2, 0, 60);
    subscriber.socket->unsubscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return publisher_actor.unsubscribed.size() == 1; }));
    subscriber.socket->subscribe(range(1, 1), SlowPolicy::newest);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
    const auto others = others_need_the_memory(*publisher);
    subscriber.actor.at_unsubscribed = [&](SubscribeSocket&) {
        expect_exact_account(subscriber.actor, Fid{1}, 60);
        subscriber.actor.by_fid.erase(Fid{1});
    };
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    ASSERT_TRUE(run_until([&] { return last_of(subscriber, 2) == 59; }));
    EXPECT_GT(publisher->counters().dropped, 0U);
    EXPECT_EQ(last_of(subscriber, 1), UINT64_MAX) << "nothing from before";
    expect_exact_account(subscriber.actor, Fid{2}, 60);
}

TEST_P(NewestMessages, AreNoPolicyForZeroCopyMemory) {
    EXPECT_THROW(unbuffered({.publisher = {.slow_policy = SlowPolicy::newest}}),
                 std::invalid_argument);
    EXPECT_THROW(buffered({.newest_bytes = 0}), std::invalid_argument);
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 3)}, {}, SlowPolicy::newest);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.policy_refused.size() == 1; }));
    EXPECT_THAT(subscriber.actor.subscribed, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Beds, NewestMessages, all_beds(), bed_name);

class NewestMessagesAcrossConnections : public NewestMessages {};

TEST_P(NewestMessagesAcrossConnections, AreReportedLostAfterALostConnection) {
    auto publisher = buffered(small_pages());
    auto& subscriber =
        paused({range(1, 3)}, {.reconnect = true, .retry_interval = std::chrono::milliseconds{1}});
    publish_all(*publisher, 3, 4, 40);
    subscriber.socket->resume();
    bed.sim()->sever(bed.sim()->next_connection() - 1);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    publish_all(*publisher, 3, 44, 1);
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        ASSERT_TRUE(run_until([&] { return last_of(subscriber, fid) == 44; }));
        EXPECT_EQ(subscriber.actor.by_fid[Fid{fid}].size() + subscriber.actor.gaps[Fid{fid}] +
                      subscriber.actor.lost_while_disconnected[Fid{fid}],
                  41U);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, NewestMessagesAcrossConnections, netio::test::simulated_beds(),
                         bed_name);

} // namespace
} // namespace netio::pubsub::test::newest_test
