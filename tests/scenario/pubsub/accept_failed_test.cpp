// SPDX-License-Identifier: Apache-2.0

// Subscribers for which a publisher has no slot, endpoint or memory at the moment.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::accept_failed_test {
namespace {

using netio::CloseReason;
using netio::RejectCode;
using netio::Status;
using netio::test::simulated_beds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AcceptFailed : public PubSubScenario {
  protected:
    static void expect_waiting(const SubscriberActor& actor, RejectCode why) {
        EXPECT_EQ(actor.connected, 0);
        ASSERT_THAT(actor.closed, Not(IsEmpty()));
        EXPECT_EQ(actor.closed[0].reason, CloseReason::rejected);
        EXPECT_THAT(actor.closed[0].detail, HasSubstr(netio::to_string(why)));
        EXPECT_TRUE(actor.last_retrying);
    }
};

TEST_P(AcceptFailed, RetriesUntilTheLimitHasASlot) {
    auto publisher = buffered({.publisher = {.subscriber_limit = 1}});
    auto& first = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return first.actor.subscribed.size() == 1; }));
    auto& second = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return second.actor.closed.size() == 2; }));
    expect_waiting(second.actor, RejectCode::full);
    first.socket->close();
    ASSERT_TRUE(run_until([&] { return second.actor.subscribed.size() == 1; }));
    EXPECT_THAT(bed.seen().accept_failed, IsEmpty()) << "a limit is not a shortage";
}

TEST_P(AcceptFailed, WithoutRetryingIsReportedOnce) {
    auto publisher = buffered({.publisher = {.subscriber_limit = 1}});
    auto& first = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return first.actor.subscribed.size() == 1; }));
    auto& second = subscribe({range(1, 1)}, {.wait_for_publisher = false});
    ASSERT_TRUE(run_until([&] { return !second.actor.closed.empty(); }));
    EXPECT_EQ(second.actor.closed[0].reason, CloseReason::rejected);
    EXPECT_FALSE(second.actor.last_retrying);
}

TEST_P(AcceptFailed, OneHostDoesNotUseEverySlot) {
    for (const std::size_t per_host : {0U, 3U}) {
        auto publisher =
            buffered({.publisher = {.subscriber_limit = 4, .connections_per_host = per_host}});
        const std::size_t places = per_host == 0 ? 2 : per_host;
        std::vector<Subscription*> admitted;
        for (std::size_t i = 0; i < places; ++i) {
            admitted.push_back(&subscribe({range(1, 1)}));
            ASSERT_TRUE(run_until([&] { return admitted.back()->actor.subscribed.size() == 1; }));
        }
        auto& late = subscribe({range(1, 1)});
        ASSERT_TRUE(run_until([&] { return late.actor.closed.size() == 2; }));
        expect_waiting(late.actor, RejectCode::full);
        EXPECT_THAT(late.actor.closed[0].detail, HasSubstr("or for another of this host"));
        EXPECT_THAT(
            bed.seen().rejected.back(),
            HasSubstr(std::to_string(places) + " peers of that host are connected already"));
        admitted.front()->socket->close();
        ASSERT_TRUE(run_until([&] { return late.actor.subscribed.size() == 1; }));
        for (Subscription* each : admitted)
            each->socket->abort();
        late.socket->abort();
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, AcceptFailed, all_beds(), bed_name);

using AcceptFailedForWant = AcceptFailed;

TEST_P(AcceptFailedForWant, OfAnEndpointRetriesAndTheOthersContinue) {
    auto publisher = buffered({});
    auto& first = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return first.actor.subscribed.size() == 1; }));
    bed.sim()->refuse_endpoints(true);
    auto& second = subscribe({range(1, 1)});
    for (std::uint64_t attempt = 1; attempt <= 3; ++attempt) {
        ASSERT_TRUE(run_until([&] { return second.actor.closed.size() == attempt; }));
        EXPECT_EQ(bed.seen().accept_failed.size(), attempt) << "reported once for each attempt";
        ASSERT_EQ(publish(*publisher, Fid{1}, attempt - 1, 40), Status::ok);
        publisher->flush();
        ASSERT_TRUE(run_until([&] { return first.actor.messages == attempt; }));
    }
    expect_waiting(second.actor, RejectCode::no_resources);
    EXPECT_THAT(bed.seen().accept_failed[0], HasSubstr("cannot open an endpoint"));
    EXPECT_EQ(publisher->counters().subscribers, 1U);
    bed.sim()->refuse_endpoints(false);
    ASSERT_TRUE(run_until([&] { return second.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 3, 40), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return first.actor.messages == 4 && second.actor.messages == 1; }));
    first.actor.expect_contiguous(Fid{1}, 0, 4);
    EXPECT_EQ(bed.seen().accept_failed.size(), 3U);
    // The close does not wait for what was started for it.
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
}

TEST_P(AcceptFailedForWant, OfMemoryNotifiesThePublisherOfTheRemedy) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    loop().run_once(); // the subscriber has its memory
    bed.sim()->refuse_registrations(true);
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    expect_waiting(subscriber.actor, RejectCode::no_resources);
    EXPECT_THAT(bed.seen().accept_failed, ElementsAre(HasSubstr("ulimit -l")));
    bed.sim()->refuse_registrations(false);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Beds, AcceptFailedForWant, simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::accept_failed_test
