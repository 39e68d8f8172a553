// SPDX-License-Identifier: Apache-2.0

// Publishers that end and leave the registry, or return at another address, while their subscriber
// is paused: arrived messages are delivered when it resumes, and then the end is reported.

#include "tests/scenario/pubsub/several_publishers.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <optional>

namespace netio::pubsub::test::paused_end_test {
namespace {

using testing::ElementsAre;

class PausedEnd : public SeveralPublishers {
  protected:
    static constexpr std::size_t count = 5; // queued messages

    void SetUp() override {
        Subscriptions::Options found = options({});
        found.bus = &bus;
        all.emplace(transport(), found, actor);
        all->subscribe(range(0, 9));
    }
    // A connected publisher whose messages are queued at the subscriber.
    Made& with_messages() {
        Made& made = publisher();
        announce("one", made, range(0, 9));
        EXPECT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
        all->pause();
        for (std::size_t number = 0; number < count; ++number)
            send(made, Fid{3});
        return made;
    }
    void expect_gone() {
        ASSERT_TRUE(run_until([&] { return all->connected_count() == 0; }));
        EXPECT_EQ(actor.message_count, 0U);
        EXPECT_EQ(actor.closed, 0);
    }
    // It ends, and so does its registry entry.
    void lose_one() {
        with_messages().socket.reset();
        ASSERT_NO_FATAL_FAILURE(expect_gone());
        bus.tell().on_gone("one");
    }
    void expect_all_reported() {
        all->resume();
        ASSERT_TRUE(run_until([&] { return actor.closed == 1; }));
        EXPECT_EQ(actor.messages[Fid{3}], count);
        EXPECT_EQ(all->sums().messages, count);
    }

    std::optional<Subscriptions> all;
};

INSTANTIATE_TEST_SUITE_P(Beds, PausedEnd, all_beds(), bed_name);

TEST_P(PausedEnd, IsReportedAfterTheMessagesOfADepartedPublisher) {
    ASSERT_NO_FATAL_FAILURE(lose_one());
    EXPECT_EQ(actor.closed, 0) << "nothing is reported while it is paused";
    ASSERT_NO_FATAL_FAILURE(expect_all_reported());
    EXPECT_FALSE(actor.retrying) << "it does not retry";
    ASSERT_EQ(all->publisher_stats().size(), 1U);
    EXPECT_EQ(all->publisher_stats().front().unknown_tails, 1U);
}

TEST_P(PausedEnd, HasNoTailForFidsUnsubscribedByThen) {
    ASSERT_NO_FATAL_FAILURE(lose_one());
    all->unsubscribe(range(0, 4));
    all->unsubscribe(range(5, 9));
    ASSERT_NO_FATAL_FAILURE(expect_all_reported());
    EXPECT_EQ(all->publisher_stats().front().unknown_tails, 0U);
}

TEST_P(PausedEnd, HasATailForFidsStillSubscribedByThen) {
    ASSERT_NO_FATAL_FAILURE(lose_one());
    all->unsubscribe(range(0, 4));
    ASSERT_NO_FATAL_FAILURE(expect_all_reported());
    EXPECT_EQ(all->publisher_stats().front().unknown_tails, 1U);
}

TEST_P(PausedEnd, IsReportedAlsoIfTheNameVanishesDuringTheEnd) {
    for (const bool in_order : {false, true}) {
        actor.closed = actor.subscriptions = 0;
        actor.messages.clear();
        actor.message_count = 0;
        SetUp();
        Made& one = with_messages();
        in_order ? one.socket->close() : one.socket->abort();
        bus.tell().on_gone("one");
        ASSERT_NO_FATAL_FAILURE(expect_all_reported());
    }
}

TEST_P(PausedEnd, LeavesItsFidsToAnotherPublisher) {
    Made& one = with_messages();
    Made& other = publisher();
    announce("other", other, range(3, 9));
    one.socket.reset();
    ASSERT_NO_FATAL_FAILURE(expect_gone());
    bus.tell().on_gone("one");
    ASSERT_TRUE(run_until([&] { return other.actor.subscribed.size() == 1; }))
        << "it need not wait for the paused one";
    send(other, Fid{4});
    all->resume();
    ASSERT_TRUE(run_until([&] { return actor.closed == 1 && actor.message_count == count + 1; }));
    EXPECT_EQ(actor.messages[Fid{3}], count);
    EXPECT_EQ(actor.messages[Fid{4}], 1U);
}

TEST_P(PausedEnd, KeepsItsCountersWhenItReturnsElsewhere) {
    with_messages().socket.reset();
    ASSERT_NO_FATAL_FAILURE(expect_gone());
    Made& there = publisher();
    announce("one", there, range(0, 9));
    EXPECT_EQ(actor.connected.size(), 1U);
    ASSERT_NO_FATAL_FAILURE(expect_all_reported());
    EXPECT_TRUE(actor.retrying);
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_THAT(actor.connected, ElementsAre("one", "one"));
    ASSERT_EQ(actor.changes.size(), 1U);
    EXPECT_FALSE(actor.changes.front().tail_known);
    send(there, Fid{3});
    ASSERT_TRUE(run_until([&] { return actor.message_count == count + 1; }));
    EXPECT_EQ(all->publisher_stats().size(), 1U) << "one publisher";
}

TEST_P(PausedEnd, ContinuesIfAnnouncedAgainBeforeItsEndIsReported) {
    const netio::Address former = [&] {
        Made& one = with_messages();
        one.socket.reset();
        return one.address;
    }();
    ASSERT_NO_FATAL_FAILURE(expect_gone());
    bus.tell().on_gone("one");
    Made& again = publisher(former);
    announce("one", again, range(0, 9));
    ASSERT_NO_FATAL_FAILURE(expect_all_reported());
    EXPECT_TRUE(actor.retrying);
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    send(again, Fid{3});
    ASSERT_TRUE(run_until([&] { return actor.message_count == count + 1; }));
}

TEST_P(PausedEnd, OfAPublisherThatMovedTwiceIsReportedOnce) {
    with_messages().socket.reset();
    ASSERT_NO_FATAL_FAILURE(expect_gone());
    announce("one", publisher(), range(0, 9));
    Made& last = publisher();
    announce("one", last, range(0, 9));
    bus.tell().on_gone("one");
    announce("one", last, range(0, 9));
    ASSERT_NO_FATAL_FAILURE(expect_all_reported());
    ASSERT_TRUE(run_until([&] { return last.actor.subscribed.size() == 1; }));
    send(last, Fid{3});
    ASSERT_TRUE(run_until([&] { return actor.message_count == count + 1; }));
}

TEST_P(PausedEnd, NeedsNoResumeToBeClosed) {
    ASSERT_NO_FATAL_FAILURE(lose_one());
    all->close();
    ASSERT_TRUE(run_until([&] { return actor.ended == 1; }));
    EXPECT_EQ(actor.ended, 1);
}

} // namespace
} // namespace netio::pubsub::test::paused_end_test
