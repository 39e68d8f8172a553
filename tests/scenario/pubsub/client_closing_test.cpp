// SPDX-License-Identifier: Apache-2.0

// How long the end of a client takes while messages wait in its own queue, and what happens to
// them: their receiver takes nothing, a little at a time, or too little in all.

#include "tests/scenario/pubsub/destinations_scenario.hpp"
#include "tests/scenario/pubsub/publishing_client.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <optional>

namespace netio::pubsub::test::client_closing_test {
namespace {

using namespace std::chrono_literals;
using netio::Duration;
using netio::Status;
using netio::TimePoint;
using netio::test::content;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ClosingClient : public PublishingClientScenario {
  protected:
    static constexpr std::uint64_t count = 100;

    // More than the pages hold: the rest waits in the queue.
    void publish_much(std::uint64_t messages = count) {
        options.publisher.close_timeout = 2s;
        options.publisher.close_limit = 5s;
        serve();
        subscriber = &subscribe_to(range(1, 1));
        subscriber->socket->pause();
        for (std::uint64_t number = 0; number < messages; ++number)
            ASSERT_EQ(publish(number, 900), Status::ok);
        bed.let_pass(10s); // nothing counts before the end
        ASSERT_LT(publisher->published(), count);
    }
    // Reads this many messages each time.
    void read_slowly(std::uint64_t messages, Duration pause) {
        subscriber->actor.at_message = [this, messages](SubscribeSocket& socket) {
            if (subscriber->actor.messages % messages == 0) socket.pause();
        };
        slow.emplace(loop(), [this, pause] {
            subscriber->socket->resume();
            slow->start(pause);
        });
        slow->start(pause);
    }
    void begin_to_close() {
        publisher->take_no_more();
        publisher->close();
    }
    Duration time_to_the_end() {
        const TimePoint begin = bed.world()->now();
        EXPECT_TRUE(run_until([&] { return ended == 1; }));
        slow.reset();
        return bed.world()->now() - begin;
    }

    Subscription* subscriber = nullptr;
    std::optional<Timer> slow;
};

INSTANTIATE_TEST_SUITE_P(Beds, ClosingClient, netio::test::simulated_beds(), bed_name);

TEST_P(ClosingClient, AbandonsBlockedMessagesAndEndsWithTheOthersInOrder) {
    publish_much();
    const Subscription& other = subscribe_to(range(2, 2));
    ASSERT_EQ(publish(Fid{2}, 0, 900), Status::ok);
    begin_to_close();
    const Duration time = time_to_the_end();
    EXPECT_GE(time, 3s) << "waits for memory, then for what had left the queue";
    EXPECT_LE(time, 5s);
    EXPECT_GT(publisher->unpublished(), 0U);
    EXPECT_EQ(publisher->published() + publisher->unpublished(), count + 1);
    EXPECT_THAT(told,
                ElementsAre(HasSubstr("not published: " + std::to_string(publisher->unpublished()) +
                                      " messages; slow subscribers have received nothing more "
                                      "for 2000 ms")));
    ASSERT_TRUE(run_until([&] { return !other.actor.closed.empty(); }));
    EXPECT_EQ(other.actor.totals, 1U);
    EXPECT_EQ(other.actor.messages, 1U) << "messages that fitted were published";
}

TEST_P(ClosingClient, WaitsForASubscriberThatMakesProgress) {
    publish_much();
    read_slowly(40, 1500ms);
    begin_to_close();
    EXPECT_GE(time_to_the_end(), 4s);
    EXPECT_THAT(told, IsEmpty());
    EXPECT_EQ(publisher->unpublished(), 0U);
    ASSERT_TRUE(run_until([&] { return subscriber->actor.totals == 1; }));
    subscriber->actor.expect_contiguous(Fid{1}, 0, count);
}

TEST_P(ClosingClient, AbandonsMessagesNotReceivedWithinTheLimit) {
    publish_much();
    read_slowly(4, 500ms);
    const TimePoint begin = bed.world()->now();
    begin_to_close();
    ASSERT_TRUE(run_until([&] { return !told.empty(); }));
    EXPECT_EQ(bed.world()->now() - begin, 5s);
    EXPECT_THAT(told, ElementsAre(HasSubstr("have not received everything within 5000 ms")));
    EXPECT_GT(publisher->unpublished(), 0U);
    EXPECT_LE(time_to_the_end(), 6s);
    EXPECT_EQ(publisher->published() + publisher->unpublished(), count);
}

TEST_P(ClosingClient, DoesNotCountItsOwnStopAgainstOthers) {
    publish_much();
    begin_to_close();
    for (int turn = 0; turn < 10; ++turn)
        loop().run_once(loop().now() + 1ms);
    bed.world()->spend(60s); // longer than both limits
    read_slowly(25, 100ms);
    static_cast<void>(time_to_the_end());
    EXPECT_THAT(told, IsEmpty());
    EXPECT_EQ(publisher->published(), count);
}

// For its pages the socket knows when the last one was received.
TEST_P(ClosingClient, WithAnEmptyQueueAbandonsNothing) {
    publish_much(6);
    ASSERT_EQ(publisher->published(), 6U);
    begin_to_close();
    bed.let_pass(1500ms);
    subscriber->actor.at_message = [this](SubscribeSocket& socket) {
        if (subscriber->actor.messages == 5) socket.pause(); // more than had already arrived
    };
    subscriber->socket->resume();
    bed.let_pass(1500ms);
    EXPECT_EQ(ended, 0);
    subscriber->socket->resume();
    static_cast<void>(time_to_the_end());
    EXPECT_THAT(told, IsEmpty());
    ASSERT_TRUE(run_until([&] { return subscriber->actor.totals == 1; }));
}

Destinations::Options with_little_time() {
    Destinations::Options options{.queue_bytes = 1 << 20, .limit = 1};
    options.socket.page_size_bytes = 256;
    options.socket.page_count = 8;
    options.socket.socket.session.close_timeout = 2s;
    options.socket.socket.session.close_limit = 5s;
    return options;
}

class ClosingDestinations : public DestinationsScenario {
  protected:
    static constexpr std::size_t count = 200;

    ClosingDestinations() : DestinationsScenario{with_little_time()} {}

    // Sends more than receive buffers and pages hold, to a receiver that reads little at once.
    void send_much() {
        listen(receiver, listener);
        address = listener->endpoints().front().address;
        receiver.at_message = [this](ReceiveSocket& socket) {
            if (receiver.messages.size() % at_once == 0) {
                socket.pause();
                paused = &socket;
            }
        };
        for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(all->send(address, content(200, 0)), Status::ok);
        do_tasks();
        bed.let_pass(10s); // nothing counts before the end
        ASSERT_NE(paused, nullptr);
    }
    void listen(netio::test::Receiver& by, std::unique_ptr<ListenSocket>& with) {
        ListenSocket::Options options;
        options.listen = {bed.address()};
        options.allow_remote_anonymous = true;
        options.session.receive_count = 4;
        with = std::make_unique<ListenSocket>(bed.transport(), options, by);
    }
    void read_slowly(Duration pause) {
        slow.emplace(bed.loop(), [this, pause] {
            paused->resume();
            slow->start(pause);
        });
        slow->start(pause);
    }
    Duration time_to_the_end() {
        const TimePoint begin = bed.world()->now();
        EXPECT_TRUE(bed.run_until([&] { return ended == 1; }));
        slow.reset();
        return bed.world()->now() - begin;
    }
    void expect_all_counted() const {
        EXPECT_GT(all->counted().unsent.load(), 0U);
        EXPECT_EQ(all->counted().sent.load() + all->counted().unsent.load(), count);
        EXPECT_GT(all->counted().unconfirmed_frames.load(), 0U);
        EXPECT_THAT(told, Contains(HasSubstr("not sent to")));
    }

    std::size_t at_once = 1;
    netio::test::Receiver receiver;
    std::unique_ptr<ListenSocket> listener;
    Address address;
    ReceiveSocket* paused = nullptr;
    std::optional<Timer> slow;
};

INSTANTIATE_TEST_SUITE_P(Beds, ClosingDestinations, netio::test::simulated_beds(), bed_name);

TEST_P(ClosingDestinations, OneWithoutProgressDelaysTheEndForItsTimeOnly) {
    send_much();
    ASSERT_LT(all->counted().sent.load(), count);
    all->close();
    const Duration time = time_to_the_end();
    EXPECT_GE(time, 2s);
    EXPECT_LE(time, 3s);
    EXPECT_TRUE(all->is_over());
    EXPECT_THAT(told, Contains(HasSubstr("has received nothing more for 2000 ms")));
    expect_all_counted();
}

TEST_P(ClosingDestinations, ADisconnectedOneReleasesItsSlotAlsoWithoutProgress) {
    send_much();
    netio::test::Receiver other;
    std::unique_ptr<ListenSocket> at;
    listen(other, at);
    all->disconnect(address);
    do_tasks();
    EXPECT_EQ(all->send(at->endpoints().front().address, content(10, 0)), Status::again);
    EXPECT_LE(time_to_the_end(), 3s);
    expect_all_counted();
    send(at->endpoints().front().address, 10);
    EXPECT_TRUE(have_arrived(other, 1));
}

TEST_P(ClosingDestinations, WaitForAReceiverThatMakesProgress) {
    at_once = 50;
    send_much();
    read_slowly(1s);
    all->close();
    EXPECT_GE(time_to_the_end(), 3s);
    EXPECT_EQ(receiver.messages.size(), count);
    EXPECT_EQ(all->counted().unsent.load(), 0U);
    EXPECT_EQ(all->counted().unconfirmed_frames.load(), 0U);
    EXPECT_THAT(told, ElementsAre(HasSubstr("connected to")));
}

// For its pages the socket knows when the last one was received.
TEST_P(ClosingDestinations, AnEmptyQueueLeavesTheTimeLimitOfTheSocket) {
    at_once = count - 10;
    send_much();
    ASSERT_EQ(all->counted().sent.load(), count);
    at_once = 5;
    read_slowly(1500ms);
    all->close();
    EXPECT_GE(time_to_the_end(), 3s);
    EXPECT_EQ(receiver.messages.size(), count);
    EXPECT_EQ(all->counted().unconfirmed_frames.load(), 0U);
    EXPECT_THAT(told, ElementsAre(HasSubstr("connected to")));
}

TEST_P(ClosingDestinations, ASlowReceiverIsAbandonedAtTheLimit) {
    at_once = 5;
    send_much();
    read_slowly(500ms);
    all->close();
    EXPECT_EQ(time_to_the_end(), 5s);
    EXPECT_THAT(told, Contains(HasSubstr("has not received everything within 5000 ms")));
    expect_all_counted();
}

} // namespace
} // namespace netio::pubsub::test::client_closing_test
