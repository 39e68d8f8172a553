// SPDX-License-Identifier: Apache-2.0

// Paused subscribers: alone, with each slow policy, and with every kind of end.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <utility>

namespace netio::pubsub::test::pause_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using namespace std::chrono_literals;

class PausedSubscribers : public PubSubScenario {
  protected:
    void settle() {
        for (int i = 0; i < 50; ++i)
            loop().run_once();
    }
    // Waits for this much simulated time.
    void wait(netio::Duration time) {
        const netio::TimePoint end = loop().now() + time;
        netio::Timer timer{loop(), [] {}};
        timer.start_at(end);
        EXPECT_TRUE(run_until([&] { return loop().now() >= end; }));
    }
    Subscription& paused(const std::vector<FidRange>& ranges, SubscribeSocket::Options options = {},
                         std::optional<SlowPolicy> policy = {}) {
        const std::size_t before = publisher_actor.subscribed.size();
        Subscription& subscriber = subscribe(ranges, std::move(options), policy);
        EXPECT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == ranges.size(); }));
        EXPECT_EQ(publisher_actor.subscribed.size(), before + ranges.size());
        subscriber.socket->pause();
        return subscriber;
    }
    // Publishes to fid 1 from number `next` on, as long as messages are accepted.
    bool offer(BufferedPublishSocket& publisher, std::uint64_t& next) {
        const Status status = publish(publisher, Fid{1}, next, 500);
        publisher.flush();
        if (status == Status::ok) ++next;
        return status == Status::ok;
    }
    // Publishes enough to reach the limit of a paused subscriber.
    std::uint64_t fill(BufferedPublishSocket& publisher) {
        std::uint64_t next = 0;
        while (next < 1000 && offer(publisher, next))
            settle();
        EXPECT_LT(next, 1000U);
        return next;
    }
    static SubscribeSocket::Options few_buffers() {
        return {.session = {.receive_buffer_bytes = 4096, .receive_count = 4}};
    }
    static BufferedPublishSocket::Options small_pages(SlowPolicy policy = SlowPolicy::block) {
        return {.publisher = {.slow_policy = policy},
                .page_size_bytes = 1024,
                .page_count = 64,
                .queue_limit_bytes = 8 * 1024};
    }
};

TEST_P(PausedSubscribers, ReceiveNothingAndThenEverythingInOrder) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 1024});
    auto& subscriber = paused({range(1, 3)});
    EXPECT_TRUE(subscriber.socket->is_paused());
    for (std::uint64_t number = 0; number < 200; ++number)
        for (std::uint64_t fid = 1; fid <= 3; ++fid)
            ASSERT_EQ(publish(*publisher, Fid{fid}, number, number % 70 == 0 ? 5000 : 40),
                      Status::ok);
    publisher->flush();
    settle();
    EXPECT_EQ(subscriber.actor.messages, 0U);
    EXPECT_TRUE(subscriber.socket->is_connected());
    subscriber.socket->pause(); // already paused
    subscriber.socket->resume();
    EXPECT_EQ(subscriber.actor.messages, 0U) << "no callback within a call";
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
    for (std::uint64_t fid = 1; fid <= 3; ++fid)
        subscriber.actor.expect_contiguous(Fid{fid}, 0, 200);
    EXPECT_EQ(subscriber.actor.lost, 0U);
    EXPECT_EQ(subscriber.socket->counters().pauses, 1U);
    EXPECT_EQ(subscriber.socket->counters().messages, 600U);
}

TEST_P(PausedSubscribers, ReceiveNoUnbufferedMessagesEither) {
    auto publisher = unbuffered({});
    auto& subscriber = paused({range(1, 1)});
    netio::RegisteredBuffer memory{600000};
    for (std::uint64_t number = 0; number < 3; ++number) // one frame each, and one in fragments
        ASSERT_EQ(
            publisher->publish(Fid{1}, memory.slice(0, number == 1 ? 600000 : 10), Cookie{number}),
            Status::ok);
    settle();
    EXPECT_EQ(subscriber.actor.messages, 0U);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == 3; }));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 3; }));
    EXPECT_EQ(subscriber.actor.by_fid[Fid{1}][1].size, 600000U);
}

TEST_P(PausedSubscribers, InsideAPageResumeWithTheNextMessage) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 3)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    // Pauses after every message; a message with the fid of the previous one contains no fid.
    subscriber.actor.at_message = [](SubscribeSocket& socket) { socket.pause(); };
    for (std::uint64_t i = 0; i < 60; ++i)
        ASSERT_EQ(publish(*publisher, Fid{1 + i % 20 / 7}, i, 30), Status::ok);
    publisher->flush();
    for (std::size_t i = 1; i <= 60; ++i) {
        ASSERT_TRUE(run_until([&] { return subscriber.actor.messages >= i; }));
        settle();
        ASSERT_EQ(subscriber.actor.messages, i);
        subscriber.socket->resume();
    }
    publisher->close();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.totals == 1; }));
    EXPECT_EQ(subscriber.actor.lost, 0U);
    for (const auto& [fid, messages] : subscriber.actor.by_fid)
        EXPECT_EQ(messages.size(), fid == Fid{3} ? 18U : 21U);
}

TEST_P(PausedSubscribers, MayResumeInTheirHandler) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.actor.at_message = [](SubscribeSocket& socket) {
        socket.pause();
        socket.resume();
        socket.pause();
        socket.resume();
    };
    for (std::uint64_t i = 0; i < 50; ++i)
        ASSERT_EQ(publish(*publisher, Fid{1}, i, 30), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, 50);
    EXPECT_EQ(subscriber.socket->counters().pauses, 100U);
}

TEST_P(PausedSubscribers, WithPolicyDropGetTheirExactLosses) {
    auto publisher = buffered(small_pages(SlowPolicy::drop));
    auto& subscriber = paused({range(1, 2)}, few_buffers());
    for (std::uint64_t number = 0; number < 500; ++number)
        for (std::uint64_t fid = 1; fid <= 2; ++fid) {
            ASSERT_EQ(publish(*publisher, Fid{fid}, number, 300), Status::ok);
            loop().run_once();
        }
    publisher->flush();
    ASSERT_GT(publisher->counters().dropped, 0U);
    EXPECT_EQ(subscriber.actor.messages, 0U);
    EXPECT_TRUE(subscriber.actor.gaps.empty());
    // In order, including the reports of one frame.
    subscriber.actor.at_gap =
        subscriber.actor.at_message = [](SubscribeSocket& socket) { socket.pause(); };
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] {
        settle();
        subscriber.socket->resume();
        return subscriber.actor.messages + publisher->counters().dropped == 1000 &&
               subscriber.actor.gaps.size() == 2;
    }));
    subscriber.actor.at_gap = subscriber.actor.at_message = {};
    subscriber.socket->resume();
    publisher->close();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.totals == 1; }));
    for (std::uint64_t fid = 1; fid <= 2; ++fid) {
        const auto& arrived = subscriber.actor.by_fid[Fid{fid}];
        EXPECT_EQ(arrived.size() + subscriber.actor.gaps[Fid{fid}], 500U);
        for (std::size_t i = 0; i < arrived.size(); ++i)
            EXPECT_EQ(arrived[i].number, i); // the lost messages come last
        EXPECT_EQ(subscriber.actor.gap_after[Fid{fid}].front(), arrived.size());
    }
    EXPECT_EQ(subscriber.actor.lost, publisher->counters().dropped);
}

TEST_P(PausedSubscribers, WithPolicyBlockBlockOnlyTheirFids) {
    auto publisher = buffered(small_pages());
    auto& subscriber = paused({range(1, 1)}, few_buffers());
    auto& other = subscribe({range(2, 2)});
    ASSERT_TRUE(run_until([&] { return other.actor.subscribed.size() == 1; }));
    std::uint64_t accepted = 0;
    for (std::uint64_t number = 0; number < 300; ++number)
        ASSERT_TRUE(run_until([&] {
            offer(*publisher, accepted);
            return publish(*publisher, Fid{2}, number, 300) == Status::ok;
        }));
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return other.actor.messages == 300; }));
    EXPECT_LT(accepted, 40U);
    while (offer(*publisher, accepted))
        ASSERT_LT(accepted, 40U);
    const int room = publisher_actor.room;
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher_actor.room > room; }));
    ASSERT_TRUE(run_until([&] { return offer(*publisher, accepted); }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, accepted);
    other.actor.expect_contiguous(Fid{2}, 0, 300);
}

TEST_P(PausedSubscribers, AreDisconnectedAfterBlockingForTooLong) {
    auto options = small_pages(SlowPolicy::disconnect);
    options.publisher.disconnect_after = 200ms;
    auto publisher = buffered(options);
    auto& subscriber = paused({range(1, 1)}, few_buffers());
    std::uint64_t accepted = 0;
    ASSERT_TRUE(run_until([&] {
        offer(*publisher, accepted);
        return publisher_actor.closed.size() == 1;
    }));
    EXPECT_LT(accepted, 40U);
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::too_slow);
    settle();
    EXPECT_EQ(subscriber.actor.messages, 0U);
    // Arrived messages are delivered before the end.
    std::size_t at_the_end = 0;
    subscriber.actor.at_closed = [&](SubscribeSocket&) { at_the_end = subscriber.actor.messages; };
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    EXPECT_GT(at_the_end, 0U);
    EXPECT_EQ(at_the_end, subscriber.actor.messages);
    subscriber.actor.expect_contiguous(Fid{1}, 0, at_the_end);
}

TEST_P(PausedSubscribers, MayCloseOrAbortAndReceiveNothingMore) {
    for (const bool at_once : {false, true}) {
        publisher_actor = {};
        auto publisher = buffered(small_pages());
        auto& subscriber = paused({range(1, 1)}, few_buffers());
        ASSERT_GT(fill(*publisher), 0U);
        at_once ? subscriber.socket->abort() : subscriber.socket->close();
        ASSERT_TRUE(run_until([&] {
            return subscriber.actor.closed.size() == 1 && publisher_actor.closed.size() == 1;
        }));
        EXPECT_EQ(subscriber.actor.messages, 0U);
        EXPECT_FALSE(subscriber.actor.last_retrying);
        EXPECT_NE(publisher_actor.closed[0].reason, CloseReason::orderly) << "it read nothing";
        publisher->close();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    }
}

TEST_P(PausedSubscribers, CannotDelayTheirOwnEnd) {
    for (const bool at_once : {false, true}) {
        publisher_actor = {};
        auto publisher = buffered(small_pages());
        auto& subscriber = subscribe({range(1, 1)});
        ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1; }));
        ASSERT_EQ(publish(*publisher, Fid{1}, 0, 500), Status::ok);
        publisher->flush();
        at_once ? subscriber.socket->abort() : subscriber.socket->close();
        subscriber.socket->pause();
        ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
        EXPECT_FALSE(subscriber.socket->is_paused());
        publisher->close();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    }
}

TEST_P(PausedSubscribers, DelayTheEndOfTheirPublisherUntilTheyResume) {
    auto publisher = buffered(small_pages());
    auto& subscriber = paused({range(1, 1)}, few_buffers());
    const std::uint64_t accepted = fill(*publisher);
    publisher->close();
    settle();
    EXPECT_EQ(publisher_actor.ended, 0);
    EXPECT_EQ(subscriber.actor.totals, 0);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
    subscriber.actor.expect_contiguous(Fid{1}, 0, accepted);
    EXPECT_EQ(subscriber.actor.lost, 0U);
}

TEST_P(PausedSubscribers, ThatDoNotResumeLeaveTheEndOfTheirPublisherUnconfirmed) {
    auto options = small_pages();
    options.publisher.close_timeout = 200ms;
    auto publisher = buffered(options);
    auto& subscriber = paused({range(1, 1)}, few_buffers());
    ASSERT_GT(fill(*publisher), 0U);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::unconfirmed);
    EXPECT_EQ(subscriber.actor.totals, 0);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    EXPECT_NE(subscriber.actor.closed[0].reason, CloseReason::orderly);
    EXPECT_FALSE(subscriber.socket->arrivals().complete());
}

TEST_P(PausedSubscribers, AreNotifiedOfTheEndWithoutQueuedMessages) {
    auto publisher = buffered({});
    auto& subscriber = paused({range(1, 1)});
    publisher->abort();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    EXPECT_TRUE(subscriber.socket->is_paused());
}

TEST_P(PausedSubscribers, StayPausedWhenTheyHaveReconnected) {
    auto publisher = buffered({});
    auto& subscriber = paused({range(1, 1)}, {.reconnect = true, .retry_interval = 10ms});
    publisher->abort();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    EXPECT_TRUE(subscriber.actor.last_retrying);
    const netio::Address same = address;
    publisher.reset();
    publisher_actor = {};
    BufferedPublishSocket::Options options;
    options.publisher.listen = {same};
    options.publisher.allow_remote_anonymous = true;
    publisher = std::make_unique<BufferedPublishSocket>(transport(), options, publisher_actor);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1; }));
    EXPECT_EQ(subscriber.actor.connected, 2);
    EXPECT_EQ(subscriber.socket->counters().connections, 2U);
    for (std::uint64_t number = 0; number < 50; ++number)
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 30), Status::ok);
    publisher->flush();
    settle();
    EXPECT_EQ(subscriber.actor.messages, 0U);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 50; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, 50);
}

TEST_P(PausedSubscribers, ReconnectAfterWhatHadArrivedWhenTheConnectionBroke) {
    auto publisher = buffered({});
    auto& subscriber = paused({range(1, 1)}, {.reconnect = true, .retry_interval = 10ms});
    for (std::uint64_t number = 0; number < 50; ++number)
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 30), Status::ok);
    publisher->flush();
    settle();
    publisher->abort();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    settle();
    EXPECT_TRUE(subscriber.actor.closed.empty());
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, 50);
    EXPECT_TRUE(subscriber.actor.last_retrying);
}

TEST_P(PausedSubscribers, MayBePausedBeforeConnectingAndChangeSubscriptions) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)});
    subscriber.socket->pause();
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1; }));
    EXPECT_EQ(subscriber.actor.connected, 1);
    subscriber.socket->subscribe(range(2, 2));
    subscriber.socket->unsubscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] {
        return publisher_actor.subscribed.size() == 2 && publisher_actor.unsubscribed.size() == 1;
    }));
    EXPECT_EQ(publish(*publisher, Fid{1}, 0, 30), Status::no_subscribers);
    EXPECT_EQ(publish(*publisher, Fid{2}, 0, 30), Status::ok);
    publisher->flush();
    settle();
    EXPECT_TRUE(subscriber.actor.subscribed.empty());
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    EXPECT_EQ(subscriber.actor.subscribed.size(), 2U);
    EXPECT_EQ(subscriber.actor.unsubscribed.size(), 1U);
}

TEST_P(PausedSubscribers, MayBeDestroyedWhilePausedAndInTheHandlerThatPauses) {
    auto publisher = buffered(small_pages());
    auto& idle = paused({range(1, 1)}, few_buffers());
    auto& busy = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return busy.actor.subscribed.size() == 1; }));
    busy.actor.at_message = [&](SubscribeSocket& socket) {
        socket.pause();
        busy.socket.reset();
    };
    for (std::uint64_t number = 0; number < 10; ++number)
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 30), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_EQ(busy.actor.messages, 1U);
    idle.socket.reset();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 2; }));
    EXPECT_EQ(idle.actor.messages, 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, PausedSubscribers, all_beds(), bed_name);

using PausedForLong = PausedSubscribers;

TEST_P(PausedForLong, AreAliveAndSoIsTheirPublisher) {
    auto publisher = buffered(small_pages());
    auto& full = paused({range(1, 1)}, few_buffers());
    auto& empty = paused({range(2, 2)}, few_buffers());
    const std::uint64_t accepted = fill(*publisher);
    for (int i = 0; i < 12; ++i)
        wait(50s);
    EXPECT_TRUE(full.actor.closed.empty() && empty.actor.closed.empty());
    EXPECT_TRUE(publisher_actor.closed.empty());
    for (Subscription* const each : {&full, &empty})
        each->socket->resume();
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
    full.actor.expect_contiguous(Fid{1}, 0, accepted);
}

// Its heartbeats wait for no user, so nothing is queued when it is gone.
TEST_P(PausedForLong, AreNotifiedOfTheEndOfAPublisherWithHeartbeatsOnly) {
    auto publisher = buffered({});
    auto& subscriber = paused({range(1, 1)});
    wait(20s);
    publisher.reset();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    EXPECT_TRUE(subscriber.socket->is_paused());
}

INSTANTIATE_TEST_SUITE_P(Beds, PausedForLong, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::pause_test
