// SPDX-License-Identifier: Apache-2.0

// The subscriber for which an open ticket waits requests another policy.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::ticket_policy_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using testing::IsEmpty;

class TicketPolicies : public PubSubScenario {
  protected:
    // A subscriber that pauses until a ticket waits for it; another one does not pause.
    Subscription& paused_guest() {
        publisher = unbuffered({});
        Subscription& guest = subscribe({range(1, 1)}, {.session = {.receive_count = 4}});
        honest = &subscribe({range(1, 1)}, {.session = {.receive_count = 64}});
        EXPECT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
        guest.socket->pause();
        while (!HasFailure() && !ticket.is_open())
            ticket = publish().ticket;
        return guest;
    }

    // One subscriber that receives everything, one that has stopped, and a ticket that waits for
    // the latter.
    void begin(PublishSocket::Options options) {
        publisher = unbuffered(std::move(options));
        honest = &subscribe({range(1, 1)}, {.session = {.receive_count = 64}});
        ASSERT_TRUE(run_until([&] { return honest->actor.subscribed.size() == 1; }));
        slow = stuck(range(1, 1));
        while (!ticket.is_open()) {
            auto attempt = publish();
            ASSERT_NE(attempt.status, Status::again);
            ticket = std::move(attempt.ticket);
        }
        ASSERT_EQ(publisher->resume(ticket), Status::partial);
    }
    PublishSocket::Attempt publish() {
        auto attempt = publisher->try_publish(Fid{1}, memory.slice(), Cookie{next});
        if (attempt.status != Status::again) ++next;
        return attempt;
    }
    // The stopped subscriber requests another policy.
    void ask(SlowPolicy policy) {
        const std::size_t before = publisher_actor.subscribed.size();
        request(*slow, ++asked, range(1, 1), policy);
        ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() > before; }));
    }
    void expect_everything_is_done() {
        ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == next; }));
        EXPECT_EQ(publisher->outstanding(), 0U);
    }

    netio::RegisteredBuffer memory{200};
    std::uint64_t next = 0;
    std::uint32_t asked = 1;
    std::unique_ptr<PublishSocket> publisher;
    Subscription* honest = nullptr;
    std::unique_ptr<Impostor> slow;
    PublishTicket ticket;
};

TEST_P(TicketPolicies, ChangingToDropLosesTheMessage) {
    ASSERT_NO_FATAL_FAILURE(begin({}));
    ASSERT_NO_FATAL_FAILURE(ask(SlowPolicy::drop));
    EXPECT_EQ(publisher->resume(ticket), Status::ok);
    EXPECT_EQ(publisher->counters().dropped, 1U);
    EXPECT_EQ(publish().status, Status::ok) << "no subscriber is left to wait for";
    EXPECT_EQ(publisher->counters().dropped, 2U);
    EXPECT_TRUE(run_until([&] { return honest->actor.messages == next; }));
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
    slow.reset();
    expect_everything_is_done();
}

TEST_P(TicketPolicies, OnWritableFollowsWhenASubscriberChangesToDrop) {
    ASSERT_NO_FATAL_FAILURE(begin({}));
    Status resumed = Status::partial;
    publisher_actor.at_room = [&] {
        if (resumed == Status::partial) resumed = publisher->resume(ticket);
    };
    ASSERT_NO_FATAL_FAILURE(ask(SlowPolicy::drop));
    EXPECT_TRUE(run_until([&] { return resumed == Status::ok; }));
}

TEST_P(TicketPolicies, ChangingToDisconnectDisconnectsAfterItsTime) {
    ASSERT_NO_FATAL_FAILURE(
        begin({.publisher = {.disconnect_after = std::chrono::milliseconds{50}}}));
    ASSERT_NO_FATAL_FAILURE(ask(SlowPolicy::disconnect));
    ASSERT_EQ(publisher->resume(ticket), Status::partial);
    ASSERT_TRUE(run_until([&] { return publisher->resume(ticket) == Status::ok; }));
    ASSERT_EQ(publisher_actor.closed.size(), 1U);
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::too_slow);
    EXPECT_EQ(publisher->counters().dropped, 0U);
    expect_everything_is_done();
}

TEST_P(TicketPolicies, ChangingFromDisconnectToDropKeepsTheConnection) {
    constexpr std::chrono::milliseconds patience{50};
    ASSERT_NO_FATAL_FAILURE(begin(
        {.publisher = {.slow_policy = SlowPolicy::disconnect, .disconnect_after = patience}}));
    ASSERT_NO_FATAL_FAILURE(ask(SlowPolicy::drop));
    EXPECT_EQ(publisher->resume(ticket), Status::ok);
    bed.let_pass(10 * patience);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
    EXPECT_EQ(publisher->counters().dropped, 1U);
}

// Borrowed memory cannot be stored for conflation.
TEST_P(TicketPolicies, RequestingConflationIsRefusedAndKeepsBlocking) {
    ASSERT_NO_FATAL_FAILURE(begin({}));
    request(*slow, ++asked, range(1, 1), SlowPolicy::newest);
    ASSERT_NO_FATAL_FAILURE(ask(SlowPolicy::block));
    EXPECT_EQ(publisher->resume(ticket), Status::partial);
    EXPECT_EQ(publish().status, Status::again);
    slow.reset();
    ASSERT_TRUE(run_until([&] { return publisher->resume(ticket) == Status::ok; }));
    expect_everything_is_done();
}

TEST_P(TicketPolicies, AResumedSubscriberGetsItsPendingMessage) {
    Subscription& guest = paused_guest();
    ASSERT_TRUE(ticket.is_open());
    // It changes to drop, and its losses are reported, even if the publisher ends at that time.
    guest.socket->subscribe(range(1, 1), SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 3; }));
    ASSERT_EQ(publisher->resume(ticket), Status::ok);
    while (!ticket.is_open() && next < 20)
        ticket = publish().ticket;
    EXPECT_EQ(next, 20U) << "no ticket waits for it any more";
    publisher->close();
    guest.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(honest->actor.messages, next);
    EXPECT_EQ(guest.actor.messages + guest.actor.gaps[Fid{1}], next);
    EXPECT_EQ(guest.actor.gaps[Fid{1}], publisher->counters().dropped);
}

TEST_P(TicketPolicies, ThePublishersEndQueuesTheMessageAlsoAfterAChangeToDrop) {
    Subscription& guest = paused_guest();
    ASSERT_TRUE(ticket.is_open());
    guest.socket->subscribe(range(1, 1), SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 3; }));
    publisher->close();
    EXPECT_FALSE(ticket.is_open());
    guest.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(guest.actor.messages, next);
    EXPECT_EQ(publisher->counters().dropped, 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, TicketPolicies, netio::test::all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::ticket_policy_test
