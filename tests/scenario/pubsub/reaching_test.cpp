// SPDX-License-Identifier: Apache-2.0

// How a subscriber reaches its publisher: by name, at any of its addresses, without delaying
// others. In the simulator, which resolves host names and takes a configurable time.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::reaching_test {
namespace {

using namespace std::chrono_literals;
using netio::CloseReason;
using netio::Status;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string publisher_name = "publisher.example";
const std::string nobody = "10.9.9.9"; // without a listener

class Reaching : public PubSubScenario {
  protected:
    // From now on subscribers know the publisher by a name that stands for these hosts.
    void name(std::vector<std::string> hosts) {
        bed.sim()->name(publisher_name, std::move(hosts));
        address.host = publisher_name;
    }
    bool run_for(Duration duration) {
        bool over = false;
        Timer timer{loop(), [&] { over = true; }};
        timer.start(duration);
        return run_until([&] { return over; });
    }
};

TEST_P(Reaching, APublisherIsFoundAtTheSecondAddressOfItsName) {
    auto publisher = buffered({});
    name({nobody, address.host});
    auto& subscriber = subscribe({range(1, 1)}, {.wait_for_publisher = false});
    EXPECT_EQ(subscriber.actor.connected, 0) << "no callback within a call";
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    EXPECT_THAT(subscriber.actor.closed, IsEmpty());
}

TEST_P(Reaching, TheSecondAddressIsTriedAgainWithBuffersAsLargeAsItWants) {
    auto publisher = buffered({.page_size_bytes = std::size_t{512} * 1024});
    name({nobody, address.host});
    auto& subscriber = subscribe({range(1, 1)}, {.wait_for_publisher = false});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    EXPECT_THAT(subscriber.actor.closed, IsEmpty());
}

TEST_P(Reaching, WhenNoAddressAnswersEachReasonIsReported) {
    auto publisher = buffered({});
    name({nobody, "10.9.9.8"});
    auto& subscriber = subscribe({range(1, 1)}, {.wait_for_publisher = false});
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::refused);
    EXPECT_THAT(subscriber.actor.closed[0].detail, HasSubstr(nobody));
    EXPECT_THAT(subscriber.actor.closed[0].detail, HasSubstr("10.9.9.8"));
    EXPECT_FALSE(subscriber.actor.last_retrying);
}

TEST_P(Reaching, AnUnknownNameIsReportedAndEndsASocketWithoutRetries) {
    auto publisher = buffered({});
    name({});
    auto& subscriber = subscribe({range(1, 1)}, {.wait_for_publisher = false});
    EXPECT_THAT(subscriber.actor.closed, IsEmpty()) << "no callback within a call";
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::unreachable);
    EXPECT_THAT(subscriber.actor.closed[0].detail, HasSubstr(publisher_name));
    EXPECT_FALSE(subscriber.actor.last_retrying);
}

TEST_P(Reaching, AnUnknownNameIsResolvedAgainByTheSocketThatWaits) {
    auto publisher = buffered({});
    const std::string host = address.host;
    name({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 2; }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::unreachable);
    EXPECT_TRUE(subscriber.actor.last_retrying);
    name({host});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
}

TEST_P(Reaching, ASlowNameServiceDoesNotBlockTheLoop) {
    auto publisher = buffered({});
    auto& prompt = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return prompt.actor.subscribed.size() == 1; }));
    const TimePoint begin = loop().now();
    bed.sim()->delay_resolution(10s);
    name({address.host});
    auto& late = subscribe({range(1, 1)});
    late.socket->subscribe(range(5, 5));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 100), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return prompt.actor.messages == 1; }));
    EXPECT_LT(loop().now() - begin, 10s);
    EXPECT_EQ(late.actor.connected, 0);
    ASSERT_TRUE(run_until([&] { return late.actor.subscribed.size() == 2; }));
    EXPECT_GE(loop().now() - begin, 10s);
}

TEST_P(Reaching, ACloseDuringANameLookupIsReportedAtOnceAndIsFinal) {
    auto publisher = buffered({});
    bed.sim()->delay_resolution(10s);
    name({address.host});
    const TimePoint begin = loop().now();
    auto& closed = subscribe({range(1, 1)});
    auto& aborted = subscribe({range(1, 1)});
    auto& destroyed = subscribe({range(1, 1)});
    ASSERT_TRUE(run_for(1s));
    closed.socket->close();
    aborted.socket->abort();
    destroyed.socket.reset();
    EXPECT_THAT(closed.actor.closed, IsEmpty()) << "no callback within a call";
    EXPECT_THAT(aborted.actor.closed, IsEmpty()) << "no callback within a call";
    ASSERT_TRUE(
        run_until([&] { return !closed.actor.closed.empty() && !aborted.actor.closed.empty(); }));
    EXPECT_LT(loop().now() - begin, 10s);
    ASSERT_TRUE(run_for(20s));
    for (const auto* actor : {&closed.actor, &aborted.actor}) {
        ASSERT_THAT(actor->closed, SizeIs(1));
        EXPECT_EQ(actor->closed[0].reason, CloseReason::local);
        EXPECT_FALSE(actor->last_retrying);
    }
    EXPECT_THAT(destroyed.actor.closed, IsEmpty());
    EXPECT_EQ(publisher_actor.connected, 0);
}

TEST_P(Reaching, ACloseDuringAnAttemptTriesNoOtherAddress) {
    auto publisher = buffered({});
    name({nobody, address.host});
    bed.sim()->ignore_connects(true);
    auto& closed = subscribe({range(1, 1)}, {.reconnect = true});
    auto& aborted = subscribe({range(1, 1)}, {.reconnect = true});
    ASSERT_TRUE(run_for(1ms));
    bed.sim()->ignore_connects(false);
    closed.socket->close();
    aborted.socket->abort();
    ASSERT_TRUE(run_for(60s));
    for (const auto* actor : {&closed.actor, &aborted.actor}) {
        ASSERT_THAT(actor->closed, SizeIs(1));
        EXPECT_EQ(actor->closed[0].reason, CloseReason::local);
        EXPECT_FALSE(actor->last_retrying);
    }
    EXPECT_EQ(publisher_actor.connected, 0);
}

TEST_P(Reaching, AReconnectionResolvesTheNameAgain) {
    auto publisher = buffered({});
    name({address.host});
    auto& subscriber = subscribe({range(1, 1)}, {.reconnect = true});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    const Address elsewhere{.host = "10.0.0.77", .port = address.port};
    name({elsewhere.host});
    publisher.reset();
    PublishSocket next{transport(),
                       {.publisher = {.listen = {elsewhere}, .allow_remote_anonymous = true}},
                       publisher_actor};
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
}

INSTANTIATE_TEST_SUITE_P(Beds, Reaching, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::reaching_test
