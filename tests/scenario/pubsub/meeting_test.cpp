// SPDX-License-Identifier: Apache-2.0

// What both sides know about each other after connecting.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::meeting_test {
namespace {

using netio::Status;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

using Meeting = PubSubScenario;

TEST_P(Meeting, OneConnectionForAllFidsIsReportedOnceAndBeforeThem) {
    for (const bool is_buffered : {true, false}) {
        subscribers.clear();
        publisher_actor = {};
        std::unique_ptr<BufferedPublishSocket> pages;
        std::unique_ptr<PublishSocket> lent;
        if (is_buffered)
            pages = buffered({});
        else
            lent = unbuffered({});
        publisher_actor.at_connected = [&] { EXPECT_THAT(publisher_actor.subscribed, IsEmpty()); };
        publisher_actor.at_subscribe = [&] { EXPECT_EQ(publisher_actor.connected, 1); };
        auto& subscriber = subscribe({range(1, 1), range(3, 3)});
        subscriber.actor.at_connected = [&](SubscribeSocket&) {
            EXPECT_THAT(subscriber.actor.subscribed, IsEmpty());
        };
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
        subscriber.socket->subscribe(range(5, 5));
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 3; }));
        EXPECT_EQ(publisher_actor.connected, 1);
        EXPECT_THAT(publisher_actor.subscribed, SizeIs(3));
        EXPECT_EQ(subscriber.actor.connected, 1);
        EXPECT_EQ(is_buffered ? pages->counters().subscribers : lent->counters().subscribers, 1U);
    }
}

TEST_P(Meeting, TwoSubscribersOfEqualFidsShareAPage) {
    auto publisher = buffered({});
    auto& first = subscribe({range(1, 9)});
    auto& second = subscribe({range(1, 9)});
    ASSERT_TRUE(run_until(
        [&] { return first.actor.subscribed.size() == 1 && second.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 0; i < 90; ++i)
        ASSERT_EQ(publish(*publisher, Fid{1 + i % 9}, i / 9, 40), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (const auto& each : subscribers) {
        for (std::uint64_t fid = 1; fid <= 9; ++fid)
            each->actor.expect_contiguous(Fid{fid}, 0, 10);
    }
    EXPECT_EQ(publisher->counters().pages, 1U);
}

INSTANTIATE_TEST_SUITE_P(Beds, Meeting, all_beds(), bed_name);

// Only Linux's loopback interface has several addresses, all of 127.0.0.0/8.
using MeetingOnLoopback = PubSubScenario;

TEST_P(MeetingOnLoopback, ASubscriberComesFromTheLocalHostThatItNames) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)}, {.local_host = "127.0.0.9"});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_THAT(publisher_actor.peers, SizeIs(1));
    EXPECT_THAT(publisher_actor.peers[0].address, StartsWith("127.0.0.9:"));
}

INSTANTIATE_TEST_SUITE_P(Beds, MeetingOnLoopback, testing::Values(Bed::fabric_tcp), bed_name);

} // namespace
} // namespace netio::pubsub::test::meeting_test
