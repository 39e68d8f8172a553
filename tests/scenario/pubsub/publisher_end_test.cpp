// SPDX-License-Identifier: Apache-2.0

// The end of a publisher, in addition to closing_test.cpp: for which subscribers it waits, for how
// long, and what it reports.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <utility>

namespace netio::pubsub::test::publisher_end_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Service;
using netio::Status;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

class PublisherEnds : public PubSubScenario {
  protected:
    static BufferedPublishSocket::Options small_pages(std::chrono::milliseconds close_timeout) {
        return {.publisher = {.close_timeout = close_timeout},
                .page_size_bytes = 1024,
                .page_count = 64};
    }
    // More than a paused subscriber's receives hold.
    std::uint64_t fill(BufferedPublishSocket& publisher) {
        std::uint64_t number = 0;
        for (; number < 20; ++number) {
            EXPECT_EQ(publish(publisher, Fid{1}, number, 900), Status::ok);
            publisher.flush();
        }
        return number;
    }
    Subscription& paused() {
        Subscription& subscriber = subscribe(
            {range(1, 1)}, {.session = {.receive_buffer_bytes = 4096, .receive_count = 4}});
        EXPECT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        subscriber.socket->pause();
        return subscriber;
    }

    netio::RegisteredBuffer memory{100'000};
};

TEST_P(PublisherEnds, WithoutSubscribersIsReportedFromTheLoopOnce) {
    for (const bool at_once : {false, true}) {
        for (const bool is_buffered : {false, true}) {
            publisher_actor = {};
            std::unique_ptr<Publisher> publisher;
            if (is_buffered)
                publisher = buffered({});
            else
                publisher = unbuffered({});
            at_once ? publisher->abort() : publisher->close();
            at_once ? publisher->abort() : publisher->close();
            EXPECT_EQ(publisher_actor.ended, 0) << "no callback within a call";
            ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
            EXPECT_EQ(publisher_actor.end.reason,
                      at_once ? CloseReason::local : CloseReason::orderly);
            for (int i = 0; i < 10; ++i)
                loop().run_once();
            EXPECT_EQ(publisher_actor.ended, 1);
        }
    }
}

// It is borrowed for a subscriber that has not received it yet, and the ticket is not resumed.
TEST_P(PublisherEnds, AtOnceReleasesTheMemoryOfATicket) {
    auto publisher = unbuffered({});
    auto slow = stuck(range(1, 1));
    subscribe({range(1, 1)}, {.session = {.receive_count = 64}});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
    std::uint64_t accepted = 0;
    PublishTicket ticket;
    while (!ticket.is_open()) {
        ASSERT_LT(accepted, 100U);
        ticket = publisher->try_publish(Fid{1}, memory.slice(0, 10'000), Cookie{accepted++}).ticket;
    }
    publisher->abort();
    EXPECT_FALSE(ticket.is_open());
    EXPECT_EQ(publisher->resume(ticket), Status::stale_ticket);
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher->outstanding(), 0U);
    EXPECT_EQ(publisher_actor.completions.size(), accepted);
    for (const auto& [cookie, count] : publisher_actor.completions)
        EXPECT_EQ(count, 1) << cookie;
    EXPECT_EQ(publisher_actor.outcomes[accepted - 1].subscribers(), 2U);
}

TEST_P(PublisherEnds, AdmitsNoSubscriberAnyMore) {
    auto publisher = buffered(small_pages(10s));
    auto& subscriber = paused();
    fill(*publisher);
    publisher->close();
    auto& late = subscribe({range(1, 1)}, {.wait_for_publisher = false});
    ASSERT_TRUE(run_until([&] { return late.actor.closed.size() == 1; }));
    EXPECT_EQ(late.actor.connected, 0);
    EXPECT_EQ(late.actor.closed[0].reason, CloseReason::refused);
    EXPECT_EQ(publisher_actor.connected, 1);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
}

// It had unsubscribed, but died before it received its queued messages.
TEST_P(PublisherEnds, AnUnsubscribedOneThatDiesBeforeItsMessagesIsUnconfirmed) {
    auto publisher = buffered(small_pages(10s));
    auto& subscriber = paused();
    fill(*publisher);
    subscriber.socket->unsubscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return publisher_actor.unsubscribed.size() == 1; }));
    publisher->close();
    subscriber.socket.reset();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::unconfirmed);
}

// A peer that was never reported is not a subscriber.
TEST_P(PublisherEnds, IsOrderlyIfOnlyAnUnannouncedPeerWasLeft) {
    // Whichever limit passes first. The peer gets no reason: only its open frame permits to send.
    for (const auto& [close_timeout, handshake_timeout] : {std::pair{10s, 200ms}, {1s, 20000ms}}) {
        publisher_actor = {};
        BufferedPublishSocket::Options options = small_pages(close_timeout);
        options.publisher.session.handshake_timeout = handshake_timeout;
        auto publisher = buffered(options);
        const Impostor silent{transport(), address, Service::publish_subscribe};
        ASSERT_TRUE(run_until([&] { return silent.connected; }));
        publisher->close();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
        EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
        EXPECT_THAT(publisher_actor.closed, IsEmpty());
        EXPECT_TRUE(run_until([&] { return silent.closed; }));
    }
}

// --- destroyed with pending callbacks -------------------------------------------------------

TEST_P(PublisherEnds, OneThatIsDestroyedReportsNoMessagesWithoutSubscribers) {
    auto publisher =
        unbuffered({.publisher = {.slow_policy = SlowPolicy::drop}, .queue_limit_messages = 1});
    auto slow = stuck(range(1, 1));
    std::uint64_t next = 0;
    const auto publish_one = [&] {
        return publisher->publish(Fid{1}, memory.slice(0, 10'000), Cookie{next++});
    };
    ASSERT_TRUE(run_until(
        [&] { return publish_one() == Status::ok && publisher->counters().dropped > 0; }));
    ASSERT_TRUE(run_until(
        [&] { return publisher_actor.completions.size() + publisher->outstanding() == next; }));
    const std::size_t before = publisher_actor.completions.size();
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(publish_one(), Status::ok);
    publisher_actor.at_completed = [&](std::uint64_t) { publisher.reset(); };
    ASSERT_TRUE(run_until([&] { return publisher == nullptr; }));
    EXPECT_EQ(publisher_actor.completions.size(), before + 1) << "of three without a subscriber";
}

TEST_P(PublisherEnds, OneThatIsDestroyedReportsNoMoreMessagesOfASharedFrame) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 0; i < 5; ++i) // the first one leaves alone
        ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(0, 40), Cookie{i}), Status::ok);
    publisher_actor.at_completed = [&](std::uint64_t cookie) {
        if (cookie == 1) publisher.reset();
    };
    ASSERT_TRUE(run_until([&] { return publisher == nullptr; }));
    EXPECT_EQ(publisher_actor.completions.size(), 2U);
}

TEST_P(PublisherEnds, OneThatIsDestroyedReportsNothingOwedToADeadSubscriber) {
    auto publisher = unbuffered({.outstanding_limit = 100, .queue_limit_messages = 20});
    auto slow = stuck(range(1, 1));
    std::uint64_t next = 0;
    while (publisher->publish(Fid{1}, memory.slice(0, 10'000), Cookie{next}) == Status::ok)
        ASSERT_LT(++next, 100U);
    ASSERT_TRUE(run_until([&] { return publisher->snapshot().subscribers.at(0).posted == 0; }));
    const std::size_t before = publisher_actor.completions.size();
    ASSERT_EQ(publisher->outstanding(), 20U);
    publisher_actor.at_completed = [&](std::uint64_t) { publisher.reset(); };
    slow.reset();
    ASSERT_TRUE(run_until([&] { return publisher == nullptr; }));
    EXPECT_EQ(publisher_actor.completions.size(), before + 1);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherEnds, all_beds(), bed_name);

// --- in virtual time ------------------------------------------------------------------------

using PublisherEndsInVirtualTime = PublisherEnds;

TEST_P(PublisherEndsInVirtualTime, TheTimeBeforeItDoesNotCount) {
    auto publisher = buffered(small_pages(2s));
    auto& subscriber = paused();
    const std::uint64_t count = fill(*publisher);
    bed.let_pass(30s);
    publisher->close();
    bed.let_pass(1s);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
    subscriber.actor.expect_contiguous(Fid{1}, 0, count);
}

// No message is queued for it, but it does not confirm that it has everything.
TEST_P(PublisherEndsInVirtualTime, DoesNotWaitForeverForOneThatDoesNotAnswer) {
    auto publisher = buffered(small_pages(200ms));
    auto silent = stuck(range(1, 1));
    const netio::TimePoint begin = loop().now();
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::unconfirmed);
    ASSERT_EQ(publisher_actor.closed.size(), 1U);
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::too_slow);
    EXPECT_THAT(publisher_actor.closed[0].detail, HasSubstr("while the publisher was closing"));
    EXPECT_LT(loop().now() - begin, 1s);
}

TEST_P(PublisherEndsInVirtualTime, IsNotDelayedByASecondOne) {
    auto publisher = buffered(small_pages(2s));
    paused();
    fill(*publisher);
    const netio::TimePoint begin = loop().now();
    publisher->close();
    netio::Timer again{loop(), [&] {
                           publisher->close();
                           again.start(500ms);
                       }};
    again.start(500ms);
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    again.cancel();
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::unconfirmed);
    EXPECT_GE(loop().now() - begin, 2s);
    EXPECT_LT(loop().now() - begin, 4s);
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherEndsInVirtualTime, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::publisher_end_test
