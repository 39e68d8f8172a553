// SPDX-License-Identifier: Apache-2.0

// How long the end of a netio::Publisher takes while messages wait in its own queue, and what
// happens to them: their subscriber takes nothing, a little at a time, or too little in all.

#include "tests/scenario/pubsub/publisher_scenario.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <optional>

namespace netio::pubsub::test::publisher_closing_test {
namespace {

using namespace std::chrono_literals;
using netio::Duration;
using netio::Status;
using netio::TimePoint;
using testing::HasSubstr;
using testing::IsEmpty;

class ClosingPublisher : public FrontPublisherScenario {
  protected:
    static constexpr std::uint64_t count = 100;

    // More than the pages hold: the rest waits in the queue.
    void publish_much(std::uint64_t messages = count) {
        options.close_timeout = 2s;
        options.close_limit = 5s;
        serve();
        subscriber = &subscribe_to(range(1, 1));
        subscriber->socket->pause();
        for (std::uint64_t number = 0; number < messages; ++number)
            ASSERT_EQ(publish(number, 900), Status::ok);
        bed.let_pass(10s); // nothing counts before the end
        ASSERT_LT(published(), count);
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
    std::uint64_t unpublished() const { return publisher->stats().unpublished; }
    Duration time_to_the_end() {
        const TimePoint begin = bed.world()->now();
        EXPECT_TRUE(run_until([&] { return publisher->is_closed(); }));
        slow.reset();
        return bed.world()->now() - begin;
    }

    Subscription* subscriber = nullptr;
    std::optional<Timer> slow;
};

INSTANTIATE_TEST_SUITE_P(Beds, ClosingPublisher, netio::test::simulated_beds(), bed_name);

TEST_P(ClosingPublisher, AbandonsBlockedMessagesAndEndsWithTheOthersInOrder) {
    publish_much();
    const Subscription& other = subscribe_to(range(2, 2));
    ASSERT_EQ(publish(Fid{2}, 0, 900), Status::ok);
    publisher->close();
    const Duration time = time_to_the_end();
    EXPECT_GE(time, 3s) << "waits for memory, then for what had left the queue";
    EXPECT_LE(time, 5s);
    EXPECT_GT(unpublished(), 0U);
    EXPECT_EQ(published() + unpublished(), count + 1);
    EXPECT_THAT(lines.all().front(),
                HasSubstr(std::to_string(unpublished()) +
                          " messages were not published; subscribers have received nothing more "
                          "for 2000 ms"));
    ASSERT_TRUE(run_until([&] { return !other.actor.closed.empty(); }));
    EXPECT_EQ(other.actor.totals, 1U);
    EXPECT_EQ(other.actor.messages, 1U) << "messages that fitted were published";
}

TEST_P(ClosingPublisher, WaitsForASubscriberThatMakesProgress) {
    publish_much();
    read_slowly(40, 1500ms);
    publisher->close();
    EXPECT_GE(time_to_the_end(), 4s);
    EXPECT_THAT(lines.all(), IsEmpty());
    EXPECT_EQ(unpublished(), 0U);
    ASSERT_TRUE(run_until([&] { return subscriber->actor.totals == 1; }));
    subscriber->actor.expect_contiguous(Fid{1}, 0, count);
}

TEST_P(ClosingPublisher, AbandonsMessagesNotReceivedWithinTheLimit) {
    publish_much();
    read_slowly(4, 500ms);
    const TimePoint begin = bed.world()->now();
    publisher->close();
    ASSERT_TRUE(run_until([&] { return !lines.all().empty(); }));
    EXPECT_GE(bed.world()->now() - begin, 5s);
    EXPECT_LE(bed.world()->now() - begin, 5s + 100ms);
    EXPECT_THAT(lines.all().front(), HasSubstr("have not received everything within 5000 ms"));
    EXPECT_GT(unpublished(), 0U);
    EXPECT_LE(time_to_the_end(), 6s);
    EXPECT_EQ(published() + unpublished(), count);
}

TEST_P(ClosingPublisher, DoesNotCountItsOwnStopAgainstOthers) {
    publish_much();
    publisher->close();
    for (int turn = 0; turn < 10; ++turn)
        loop().run_once(loop().now() + 1ms);
    bed.world()->spend(60s); // longer than both limits
    read_slowly(25, 100ms);
    static_cast<void>(time_to_the_end());
    EXPECT_THAT(lines.all(), IsEmpty());
    EXPECT_EQ(published(), count);
}

// For its pages the socket knows when the last one was received.
TEST_P(ClosingPublisher, WithAnEmptyQueueAbandonsNothing) {
    publish_much(6);
    ASSERT_EQ(published(), 6U);
    publisher->close();
    bed.let_pass(1500ms);
    subscriber->actor.at_message = [this](SubscribeSocket& socket) {
        if (subscriber->actor.messages == 5) socket.pause(); // more than had already arrived
    };
    subscriber->socket->resume();
    bed.let_pass(1500ms);
    EXPECT_FALSE(publisher->is_closed());
    subscriber->socket->resume();
    static_cast<void>(time_to_the_end());
    EXPECT_THAT(lines.all(), IsEmpty());
    ASSERT_TRUE(run_until([&] { return subscriber->actor.totals == 1; }));
}

} // namespace
} // namespace netio::pubsub::test::publisher_closing_test
