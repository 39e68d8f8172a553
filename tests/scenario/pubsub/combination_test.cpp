// SPDX-License-Identifier: Apache-2.0

// Rare combinations: ends, reconnections, requests, slow subscribers, pauses.

#include "netio/fabric.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <cstdlib>

namespace netio::pubsub::test::combination_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using namespace std::chrono_literals;
using testing::IsEmpty;

class Combinations : public PubSubScenario {
  protected:
    void turn(int times) {
        for (int i = 0; i < times; ++i)
            loop().run_once();
    }
    void expect_each_completed_once(std::size_t count) const {
        EXPECT_EQ(publisher_actor.completions.size(), count);
        for (const auto& [key, times] : publisher_actor.completions)
            EXPECT_EQ(times, 1) << key;
    }
    netio::RegisteredBuffer memory{std::size_t{1} << 20};
};

TEST_P(Combinations, ASubscriberMayBeDestroyedAtEachMomentOfAReconnection) {
    for (int moment = 0; moment < 25; ++moment) {
        subscribers.clear();
        publisher_actor = {};
        auto publisher = buffered({});
        auto& subscriber = subscribe({range(1, 1)}, {.reconnect = true, .retry_interval = 1ms});
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        BufferedPublishSocket::Options again;
        again.publisher.listen = {address};
        again.publisher.allow_remote_anonymous = true;
        publisher.reset();
        ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
        ASSERT_TRUE(subscriber.actor.last_retrying);
        publisher = std::make_unique<BufferedPublishSocket>(transport(), again, publisher_actor);
        if (moment > 12) {
            ASSERT_TRUE(run_until([&] { return publisher_actor.connected == 2; }));
        }
        turn(moment % 13);
        subscriber.socket.reset();
        turn(20);
        static_cast<void>(publish(*publisher, Fid{1}, 0, 40)); // it may not have noticed yet
        publisher->close();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    }
}

TEST_P(Combinations, AnUnsubscriptionAndTheEndOfThePublisherMayCrossEachOther) {
    for (const bool is_buffered : {true, false}) {
        for (int turns = 0; turns < 12; ++turns) {
            subscribers.clear();
            publisher_actor = {};
            std::unique_ptr<BufferedPublishSocket> pages;
            std::unique_ptr<PublishSocket> lent;
            Publisher* publisher = nullptr;
            if (is_buffered)
                publisher = (pages = buffered({})).get();
            else
                publisher = (lent = unbuffered({})).get();
            auto& subscriber = subscribe({range(1, 9)});
            ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
            for (std::uint64_t i = 0; i < 20; ++i) {
                const Fid fid{1 + i % 2};
                ASSERT_EQ(pages ? publish(*pages, fid, i, 40)
                                : lent->publish(fid, memory.slice(0, 40), Cookie{i}),
                          Status::ok);
            }
            if (turns < 6) publisher->close();
            turn(turns % 6);
            subscriber.socket->unsubscribe(range(2, 3));
            // A subscribe call after the end connects again.
            if (subscriber.actor.closed.empty()) subscriber.socket->subscribe(range(20, 30));
            turn(turns % 6);
            publisher->close();
            ASSERT_TRUE(run_until(
                [&] { return publisher_actor.ended == 1 && subscriber.actor.closed.size() == 1; }));
            EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly)
                << publisher_actor.end.detail;
            EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::orderly)
                << subscriber.actor.closed[0].detail;
            EXPECT_EQ(subscriber.actor.messages, 20U);
            EXPECT_EQ(subscriber.actor.totals, 1);
            EXPECT_EQ(subscriber.actor.lost, 0U);
        }
    }
}

TEST_P(Combinations, UnsubscribingFromAllWhileThePublisherClosesEndsInOrder) {
    for (int turns = 0; turns < 8; ++turns) {
        subscribers.clear();
        publisher_actor = {};
        auto publisher = buffered({});
        auto& subscriber = subscribe({range(1, 2)});
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        for (std::uint64_t i = 0; i < 20; ++i)
            ASSERT_EQ(publish(*publisher, Fid{1 + i % 2}, i / 2, 40), Status::ok);
        subscriber.socket->unsubscribe(range(1, 2));
        turn(turns);
        publisher->close();
        ASSERT_TRUE(run_until(
            [&] { return publisher_actor.ended == 1 && subscriber.actor.closed.size() == 1; }));
        EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
        EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::orderly);
        EXPECT_EQ(subscriber.actor.messages, 20U);
        EXPECT_EQ(subscriber.actor.lost, 0U);
    }
}

TEST_P(Combinations, ASlowSubscriberAtOneAddressDoesNotAffectTheOther) {
    BufferedPublishSocket::Options options{.page_size_bytes = 1024, .page_count = 64};
    options.publisher.listen = {bed.address(), bed.address()};
    options.publisher.allow_remote_anonymous = true;
    options.publisher.close_timeout = 200ms;
    BufferedPublishSocket publisher{transport(), options, publisher_actor};
    ASSERT_EQ(publisher.endpoints().size(), 2U);
    address = publisher.endpoints()[0].address;
    auto guest = stuck(range(1, 1), SlowPolicy::drop);
    address = publisher.endpoints()[1].address;
    auto& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 0; i < 1000; ++i)
        ASSERT_TRUE(run_until([&] { return publish(publisher, Fid{1}, i, 500) == Status::ok; }));
    publisher.close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::unconfirmed);
    honest.actor.expect_contiguous(Fid{1}, 0, 1000);
    EXPECT_THAT(honest.actor.gaps, IsEmpty());
    EXPECT_EQ(honest.actor.lost, 0U);
    ASSERT_TRUE(run_until([&] { return honest.actor.closed.size() == 1; }));
    EXPECT_EQ(honest.actor.closed[0].reason, CloseReason::orderly);
}

TEST_P(Combinations, ASlowUnbufferedSubscriberDoesNotAffectTheOtherAddress) {
    PublishSocket::Options options{.outstanding_limit = 32};
    options.publisher.listen = {bed.address(), bed.address()};
    options.publisher.allow_remote_anonymous = true;
    PublishSocket publisher{transport(), options, publisher_actor};
    address = publisher.endpoints()[0].address;
    auto guest = stuck(range(1, 1), SlowPolicy::drop);
    address = publisher.endpoints()[1].address;
    auto& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 0; i < 500; ++i)
        ASSERT_TRUE(run_until([&] {
            return publisher.publish(Fid{1}, memory.slice(0, 100), Cookie{i}) == Status::ok;
        })) << i;
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 500; }));
    EXPECT_THAT(honest.actor.gaps, IsEmpty());
    guest.reset();
    publisher.close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    expect_each_completed_once(500);
}

// A ticket is open for a subscriber that makes no progress and must be disconnected.
TEST_P(Combinations, AnExplicitPublicationEndsWhenItsSlowSubscriberIsDisconnected) {
    enum class End { abandoned, closed, kept };
    for (const End end : {End::abandoned, End::closed, End::kept}) {
        subscribers.clear();
        publisher_actor = {};
        auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::disconnect,
                                                   .disconnect_after = 100ms,
                                                   .close_timeout = 200ms}});
        auto slow = stuck(range(1, 1));
        auto& honest = subscribe({range(1, 1)}, {.session = {.receive_count = 64}});
        ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
        PublishTicket ticket;
        std::uint64_t accepted = 0;
        while (!ticket.is_open()) {
            ASSERT_LT(accepted, 200U);
            auto [status, made] =
                publisher->try_publish(Fid{1}, memory.slice(0, 300), Cookie{accepted});
            ASSERT_TRUE(status == Status::ok || status == Status::partial);
            ++accepted;
            ticket = std::move(made);
        }
        if (end == End::abandoned) ticket.abandon();
        if (end == End::closed) publisher->close();
        if (end != End::closed) {
            ASSERT_TRUE(run_until([&] {
                const Status status =
                    publisher->try_publish(Fid{1}, memory.slice(0, 300), Cookie{accepted}).status;
                if (status == Status::ok || status == Status::partial) ++accepted;
                if (end == End::kept && ticket.is_open())
                    static_cast<void>(publisher->resume(ticket));
                return publisher_actor.closed.size() == 1;
            }));
            EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::too_slow);
            ASSERT_TRUE(run_until(
                [&] { return !ticket.is_open() || publisher->resume(ticket) == Status::ok; }));
            publisher->close();
        }
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
        EXPECT_FALSE(ticket.is_open());
        expect_each_completed_once(accepted);
        EXPECT_EQ(honest.actor.messages, accepted);
        EXPECT_EQ(honest.actor.lost, 0U);
    }
}

TEST_P(Combinations, AnUnbufferedLossBelongsToItsSubscription) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop},
                                 .outstanding_limit = 128,
                                 .queue_limit_messages = 4});
    auto& subscriber = subscribe({range(1, 2)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    std::uint64_t cookie = 0;
    for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_EQ(publisher->publish(Fid{1 + i % 2}, memory.slice(0, 900), Cookie{cookie++}),
                  Status::ok);
    ASSERT_GT(publisher->counters().dropped, 0U);
    std::uint64_t at_the_end = 0;
    subscriber.actor.at_unsubscribed = [&](SubscribeSocket&) {
        at_the_end = subscriber.actor.gaps[Fid{1}];
    };
    subscriber.socket->unsubscribe(range(1, 1));
    subscriber.socket->subscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    const std::size_t before = subscriber.actor.by_fid[Fid{1}].size();
    EXPECT_EQ(at_the_end + before, 50U);
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(0, 10), Cookie{cookie++}), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(subscriber.actor.gaps[Fid{1}], at_the_end) << "of a subscription without losses";
    EXPECT_EQ(subscriber.actor.lost, subscriber.actor.gaps[Fid{2}]);
    expect_each_completed_once(cookie);
}

TEST_P(Combinations, ARepeatedlyPausedSubscriberStaysWithExactCounters) {
    for (const bool is_buffered : {true, false}) {
        subscribers.clear();
        publisher_actor = {};
        std::unique_ptr<BufferedPublishSocket> pages;
        std::unique_ptr<PublishSocket> lent;
        Publisher* publisher = nullptr;
        if (is_buffered) {
            pages =
                buffered({.publisher = {.slow_policy = SlowPolicy::drop, .pending_reply_limit = 8},
                          .page_size_bytes = 512,
                          .page_count = 64,
                          .queue_limit_bytes = 4096});
            publisher = pages.get();
        } else {
            lent = unbuffered(
                {.publisher = {.slow_policy = SlowPolicy::drop, .pending_reply_limit = 8},
                 .outstanding_limit = 128,
                 .queue_limit_messages = 4});
            publisher = lent.get();
        }
        auto& subscriber = subscribe(
            {range(1, 40)}, {.session = {.receive_buffer_bytes = 1024, .receive_count = 4}});
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        std::uint64_t published = 0;
        for (int round = 0; round < 60; ++round) {
            subscriber.socket->pause();
            for (int i = 0; i < 80; ++i, ++published) {
                const Fid fid{1 + published % 40};
                ASSERT_EQ(pages ? publish(*pages, fid, published, 200)
                                : lent->publish(fid, memory.slice(0, 200), Cookie{published}),
                          Status::ok);
            }
            turn(3);
            subscriber.socket->resume();
            turn(round % 7);
        }
        publisher->close();
        ASSERT_TRUE(run_until(
            [&] { return publisher_actor.ended == 1 && subscriber.actor.closed.size() == 1; }));
        EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
        EXPECT_GT(publisher->counters().dropped, 0U);
        EXPECT_EQ(subscriber.actor.messages + publisher->counters().dropped, published);
        EXPECT_EQ(subscriber.actor.lost, publisher->counters().dropped);
        std::uint64_t told = 0;
        for (const auto& [fid, count] : subscriber.actor.gaps)
            told += count;
        EXPECT_EQ(told, publisher->counters().dropped);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, Combinations, all_beds(), bed_name);

// --- the end of the process -----------------------------------------------------------------

[[noreturn]] void exit_while_reconnecting(bool while_it_resolves) {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    SubscriberActor actor;
    actor.at_closed = [](SubscribeSocket&) { std::exit(7); };
    SubscribeSocket socket{
        *transport, {.publisher = {.host = "localhost", .port = 1}, .reconnect = true}, actor};
    if (while_it_resolves) std::exit(7);
    loop.run();
    std::abort();
}

TEST(ExitingProcess, EndsAsItWantsToWhileASubscriberReconnects) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(exit_while_reconnecting(false), testing::ExitedWithCode(7), "");
    EXPECT_EXIT(exit_while_reconnecting(true), testing::ExitedWithCode(7), "");
}

} // namespace
} // namespace netio::pubsub::test::combination_test
