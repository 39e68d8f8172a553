// SPDX-License-Identifier: Apache-2.0

// Explicit publishing: again, partial and resume in every order.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <optional>

namespace netio::pubsub::test::explicit_test {
namespace {

using netio::Cookie;
using netio::Status;
using testing::IsEmpty;

// A subscriber that receives more than one that is stuck().
const SubscribeSocket::Options roomy{.session = {.receive_count = 64}};

class ExplicitPublishing : public PubSubScenario {
  protected:
    static constexpr std::size_t message_bytes = 200;

    // A slice that holds message `number` of a fid.
    netio::Slice message(Fid fid, std::uint64_t number) {
        const netio::Slice slice = memory.slice(used, message_bytes);
        used += message_bytes;
        std::ranges::copy(make_message(fid, number, message_bytes), slice.data);
        return slice;
    }
    bool subscribed_all() {
        return run_until([&] {
            return std::ranges::all_of(
                subscribers, [](const auto& each) { return each->actor.subscribed.size() == 1; });
        });
    }
    // Publishes messages 0, 1, ... of a fid until only some sessions can take one.
    PublishTicket publish_until_partial(PublishSocket& publisher, Fid fid) {
        for (next = 0; next < 1000; ++next) {
            auto [status, ticket] = publisher.try_publish(fid, message(fid, next), Cookie{next});
            if (status == Status::partial) {
                EXPECT_TRUE(ticket.is_open());
                ++next;
                return std::move(ticket);
            }
            EXPECT_EQ(status, Status::ok);
            EXPECT_FALSE(ticket.is_open());
        }
        ADD_FAILURE() << "every session accepted everything";
        return {};
    }
    void expect_each_completed_once(std::size_t count) const {
        EXPECT_EQ(publisher_actor.completions.size(), count);
        for (const auto& [key, times] : publisher_actor.completions)
            EXPECT_EQ(times, 1) << key;
    }

    // Declared before the sockets that borrow parts of it.
    netio::RegisteredBuffer memory{std::size_t{8} << 20};
    std::size_t used = 0;
    std::uint64_t next = 0;
};

TEST_P(ExplicitPublishing, InAnyOrderOfAgainPartialAndResumeEachMessageArrivesOnce) {
    auto publisher = unbuffered({.outstanding_limit = 6});
    for (const std::size_t count : {5U, 9U, 64U})
        subscribe({range(1, 3)}, {.session = {.receive_count = count}});
    ASSERT_TRUE(subscribed_all());
    constexpr std::uint64_t each = 400;
    std::array<std::uint64_t, 3> published{};
    std::array<PublishTicket, 3> tickets;
    int partials = 0;
    publisher_actor.at_room = [&] {
        for (std::uint64_t i = 0; i < 3; ++i) {
            const Fid fid{1 + i};
            if (tickets[i].is_open() && publisher->resume(tickets[i]) == Status::partial) continue;
            while (published[i] < each) {
                auto [status, ticket] = publisher->try_publish(fid, message(fid, published[i]),
                                                               Cookie{i * each + published[i]});
                if (status == Status::again) {
                    used -= message_bytes;
                    break;
                }
                ++published[i];
                if (status == Status::partial) {
                    ++partials;
                    tickets[i] = std::move(ticket);
                    break;
                }
                ASSERT_EQ(status, Status::ok);
            }
        }
    };
    publisher_actor.at_room();
    ASSERT_TRUE(run_until([&] {
        return publisher_actor.completions.size() == 3 * each && publisher->outstanding() == 0;
    }));
    publisher_actor.at_room = {};
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (const auto& subscriber : subscribers) {
        for (std::uint64_t fid = 1; fid <= 3; ++fid)
            subscriber->actor.expect_contiguous(Fid{fid}, 0, each);
        EXPECT_EQ(subscriber->actor.lost, 0U);
    }
    expect_each_completed_once(3 * each);
    EXPECT_GT(partials, 0) << "the test must reach this case";
    EXPECT_EQ(publisher->counters().partial, static_cast<std::uint64_t>(partials));
    EXPECT_GT(publisher->counters().again, 0U);
    EXPECT_EQ(publisher->counters().messages, 3 * each);
}

TEST_P(ExplicitPublishing, NoFreeSessionIsAgainAndSomeArePartial) {
    auto publisher = unbuffered({});
    auto slow = stuck(range(1, 2));
    auto& honest = subscribe({range(1, 1)}, roomy);
    ASSERT_TRUE(subscribed_all());
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    const Status of_two = publisher->try_publish(Fid{2}, message(Fid{2}, 0), Cookie{1000}).status;
    EXPECT_EQ(of_two, Status::again) << "its only subscriber has no credit";
    EXPECT_EQ(publisher->resume(ticket), Status::partial);
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == next; }));
    EXPECT_EQ(publisher->resume(ticket), Status::partial);
    EXPECT_EQ(publisher->try_publish(Fid{3}, message(Fid{3}, 0), Cookie{1001}).status,
              Status::no_subscribers);
    honest.actor.expect_contiguous(Fid{1}, 0, next);
    EXPECT_FALSE(publisher_actor.completions.contains(next - 1)) << "its memory is still borrowed";
}

TEST_P(ExplicitPublishing, ASubscriberThatDiesWhilePartialReleasesTheTicket) {
    auto publisher = unbuffered({});
    auto slow = stuck(range(1, 1));
    auto& honest = subscribe({range(1, 1)}, roomy);
    ASSERT_TRUE(subscribed_all());
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    Status resumed = Status::partial;
    publisher_actor.at_room = [&] {
        if (resumed == Status::partial) resumed = publisher->resume(ticket);
    };
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == next; }));
    EXPECT_EQ(resumed, Status::partial);
    slow.reset();
    ASSERT_TRUE(run_until([&] { return resumed == Status::ok; }));
    ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == next; }));
    EXPECT_EQ(publisher->outstanding(), 0U);
    expect_each_completed_once(next);
    EXPECT_EQ(publisher->resume(ticket), Status::stale_ticket);
}

TEST_P(ExplicitPublishing, WhenAllPendingSubscribersDieTheKeyWaitsForTheTicket) {
    auto publisher = unbuffered({});
    auto slow = stuck(range(1, 1));
    auto& honest = subscribe({range(1, 1)}, roomy);
    ASSERT_TRUE(subscribed_all());
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    slow.reset();
    honest.socket.reset();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 2; }));
    EXPECT_EQ(publisher->outstanding(), 1U);
    EXPECT_EQ(publisher->resume(ticket), Status::ok);
    EXPECT_FALSE(publisher_actor.completions.contains(next - 1)) << "no callback within a call";
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 0; }));
    ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == next; }));
    expect_each_completed_once(next);
}

TEST_P(ExplicitPublishing, AnAbandonedTicketIsFinishedByTheLibrary) {
    auto publisher = unbuffered({});
    auto& quick = subscribe({range(1, 1)});
    auto& tight = subscribe({range(1, 1)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(subscribed_all());
    { const PublishTicket ticket = publish_until_partial(*publisher, Fid{1}); }
    EXPECT_EQ(publisher->publish(Fid{1}, message(Fid{1}, next), Cookie{next}), Status::again)
        << "it would overtake";
    ASSERT_TRUE(run_until([&] { return publisher_actor.room > 0; }));
    // A default publication is queued after it.
    ASSERT_EQ(publisher->publish(Fid{1}, message(Fid{1}, next), Cookie{next}), Status::ok);
    ++next;
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    quick.actor.expect_contiguous(Fid{1}, 0, next);
    tight.actor.expect_contiguous(Fid{1}, 0, next);
    EXPECT_EQ(tight.actor.lost, 0U);
    expect_each_completed_once(next);
}

TEST_P(ExplicitPublishing, WhileATicketIsOpenItsFidWaitsAndTheOthersFlow) {
    auto publisher = unbuffered({});
    auto slow = stuck(range(1, 1));
    auto& honest = subscribe({range(1, 2)}, roomy);
    ASSERT_TRUE(subscribed_all());
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    EXPECT_EQ(publisher->publish(Fid{1}, message(Fid{1}, next), Cookie{9999}), Status::again);
    EXPECT_EQ(publisher->try_publish(Fid{1}, message(Fid{1}, next), Cookie{9999}).status,
              Status::again);
    for (std::uint64_t i = 0; i < 100; ++i) {
        const netio::Slice slice = message(Fid{2}, i);
        ASSERT_TRUE(run_until([&] {
            return publisher->try_publish(Fid{2}, slice, Cookie{1000 + i}).status == Status::ok;
        }));
    }
    slow.reset();
    ASSERT_TRUE(run_until([&] { return !publisher_actor.closed.empty(); }));
    EXPECT_EQ(publisher->publish(Fid{1}, message(Fid{1}, next), Cookie{9999}), Status::again);
    const int room = publisher_actor.room;
    EXPECT_EQ(publisher->resume(ticket), Status::ok);
    EXPECT_EQ(publisher->try_publish(Fid{1}, message(Fid{1}, next), Cookie{next}).status,
              Status::ok);
    ++next;
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == next + 100; }));
    EXPECT_GT(publisher_actor.room, room) << "a flow that got `again` is notified";
    honest.actor.expect_contiguous(Fid{1}, 0, next);
    honest.actor.expect_contiguous(Fid{2}, 0, 100);
}

TEST_P(ExplicitPublishing, FinishingClosesTheTicketsAndTheTotalsAreExact) {
    auto publisher = unbuffered({});
    auto& quick = subscribe({range(1, 1)});
    auto& tight = subscribe({range(1, 1)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(subscribed_all());
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    publisher->close();
    EXPECT_FALSE(ticket.is_open());
    EXPECT_EQ(publisher->resume(ticket), Status::stale_ticket);
    EXPECT_EQ(publisher->try_publish(Fid{1}, message(Fid{1}, next), Cookie{next}).status,
              Status::closed);
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (const auto* actor : {&quick.actor, &tight.actor}) {
        actor->expect_contiguous(Fid{1}, 0, next);
        EXPECT_EQ(actor->lost, 0U);
        EXPECT_EQ(actor->totals, 1);
    }
    expect_each_completed_once(next);
}

TEST_P(ExplicitPublishing, LateOrLeavingSubscribersDoNotGetAPartialMessage) {
    auto publisher = unbuffered({});
    auto& quick = subscribe({range(1, 1)});
    auto& tight = subscribe({range(1, 1), range(5, 5)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(run_until(
        [&] { return quick.actor.subscribed.size() == 1 && tight.actor.subscribed.size() == 2; }));
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    tight.socket->unsubscribe(range(1, 1));
    tight.socket->subscribe(range(1, 1));
    auto& late = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until(
        [&] { return tight.actor.subscribed.size() == 3 && late.actor.subscribed.size() == 1; }));
    EXPECT_EQ(publisher->resume(ticket), Status::ok) << "no subscriber still needs it";
    const std::uint64_t last = next;
    ASSERT_TRUE(run_until([&] {
        return publisher->publish(Fid{1}, message(Fid{1}, last), Cookie{last}) == Status::ok;
    }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    quick.actor.expect_contiguous(Fid{1}, 0, last + 1);
    late.actor.expect_contiguous(Fid{1}, last, 1);
    ASSERT_EQ(tight.actor.by_fid[Fid{1}].size(), last);
    EXPECT_EQ(tight.actor.by_fid[Fid{1}][last - 2].number, last - 2) << "the last old message";
    EXPECT_EQ(tight.actor.by_fid[Fid{1}].back().number, last);
    for (const auto* actor : {&quick.actor, &tight.actor, &late.actor})
        EXPECT_EQ(actor->lost, 0U);
    expect_each_completed_once(last + 1);
}

TEST_P(ExplicitPublishing, FragmentedMessagesAreAcceptedWhole) {
    auto publisher = unbuffered({});
    auto& quick = subscribe({range(1, 1)}, {.session = {.receive_buffer_bytes = 4096}});
    auto& tight =
        subscribe({range(1, 1)}, {.session = {.receive_buffer_bytes = 4096, .receive_count = 4}});
    ASSERT_TRUE(subscribed_all());
    const auto bytes = make_message(Fid{1}, 0, 100000);
    netio::RegisteredBuffer large{bytes.size()};
    std::ranges::copy(bytes, large.data());
    // The session with space for the first fragment has accepted the message.
    ASSERT_EQ(publisher->try_publish(Fid{1}, large.slice(), Cookie{0}).status, Status::ok);
    const auto next_bytes = make_message(Fid{1}, 1, 100000);
    netio::RegisteredBuffer next_large{next_bytes.size()};
    std::ranges::copy(next_bytes, next_large.data());
    auto attempt = publisher->try_publish(Fid{1}, next_large.slice(), Cookie{1});
    ASSERT_EQ(attempt.status, Status::partial) << "one session is sending the first message";
    ASSERT_TRUE(run_until([&] { return publisher->resume(attempt.ticket) == Status::ok; }));
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 0; }));
    ASSERT_TRUE(run_until([&] { return quick.actor.messages == 2 && tight.actor.messages == 2; }));
    quick.actor.expect_contiguous(Fid{1}, 0, 2);
    tight.actor.expect_contiguous(Fid{1}, 0, 2);
    expect_each_completed_once(2);
}

TEST_P(ExplicitPublishing, ThePolicyDropNeverReturnsPartial) {
    auto publisher =
        unbuffered({.publisher = {.slow_policy = SlowPolicy::drop}, .queue_limit_messages = 1});
    auto slow = stuck(range(1, 1));
    auto& honest = subscribe({range(1, 1)}, roomy);
    ASSERT_TRUE(subscribed_all());
    for (std::uint64_t i = 0; i < 40; ++i)
        ASSERT_EQ(publisher->try_publish(Fid{1}, message(Fid{1}, i), Cookie{i}).status, Status::ok);
    EXPECT_GT(publisher->counters().dropped, 20U);
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 40; }));
}

TEST_P(ExplicitPublishing, ASlowSubscriberIsDisconnectedAndThenResumeSucceeds) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::disconnect,
                                               .disconnect_after = std::chrono::milliseconds{50}}});
    auto slow = stuck(range(1, 1));
    auto& honest = subscribe({range(1, 1)}, roomy);
    ASSERT_TRUE(subscribed_all());
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    ASSERT_TRUE(run_until([&] { return publisher->resume(ticket) == Status::ok; }));
    ASSERT_EQ(publisher_actor.closed.size(), 1U);
    EXPECT_EQ(publisher_actor.closed[0].reason, netio::CloseReason::too_slow);
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == next; }));
}

TEST_P(ExplicitPublishing, AnImpossiblePublicationIsRefusedAtOnce) {
    auto publisher = unbuffered({.publisher = {.largest_message_bytes = 100}});
    const std::vector<netio::Slice> slices(29, memory.slice(0, 1));
    EXPECT_EQ(publisher->try_publishv(Fid{1}, slices, Cookie{1}, {}).status,
              Status::too_many_segments);
    EXPECT_EQ(publisher->try_publish(Fid{1}, memory.slice(0, 101), Cookie{1}).status,
              Status::too_large);
    PublishTicket nothing;
    EXPECT_EQ(publisher->resume(nothing), Status::stale_ticket);
    EXPECT_THAT(publisher_actor.completions, IsEmpty());
}

TEST_P(ExplicitPublishing, ATicketIsGoodForItsOwnSocketOnlyAndMayOutliveIt) {
    auto publisher = unbuffered({});
    auto slow = stuck(range(1, 1));
    subscribe({range(1, 1)}, roomy);
    ASSERT_TRUE(subscribed_all());
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    auto other = unbuffered({});
    EXPECT_EQ(other->resume(ticket), Status::stale_ticket);
    EXPECT_TRUE(ticket.is_open());
    publisher.reset();
    EXPECT_FALSE(ticket.is_open());
    EXPECT_EQ(other->resume(ticket), Status::stale_ticket);
}

using ExplicitPublishingInVirtualTime = ExplicitPublishing;

// A user that tried to publish to the fid is notified at once, not when the last session has
// accepted the message.
TEST_P(ExplicitPublishingInVirtualTime, OnWritableFollowsAtOnceWhenTheFidIsFree) {
    auto publisher = unbuffered({});
    auto& one = subscribe({range(1, 1)}, {.session = {.receive_count = 4}});
    auto& other = subscribe({range(1, 1)}, roomy);
    ASSERT_TRUE(subscribed_all());
    one.socket->pause();
    PublishTicket ticket = publish_until_partial(*publisher, Fid{1});
    ASSERT_TRUE(run_until([&] { return other.actor.messages == next; }));
    one.socket->resume();
    const netio::Slice refused = message(Fid{1}, next);
    std::optional<netio::TimePoint> possible;
    std::optional<netio::TimePoint> told;
    publisher_actor.at_room = [&] {
        if (possible && !told) told = loop().now();
    };
    ASSERT_TRUE(run_until([&] {
        if (possible) return told.has_value();
        EXPECT_EQ(publisher->try_publish(Fid{1}, refused, Cookie{next}).status, Status::again);
        if (publisher->resume(ticket) == Status::ok) possible = loop().now();
        return false;
    }));
    EXPECT_EQ(*told, *possible);
}

INSTANTIATE_TEST_SUITE_P(Beds, ExplicitPublishing, netio::test::all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, ExplicitPublishingInVirtualTime, netio::test::simulated_beds(),
                         bed_name);

} // namespace
} // namespace netio::pubsub::test::explicit_test
