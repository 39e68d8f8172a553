// SPDX-License-Identifier: Apache-2.0

// Guarantees to a subscriber, and what its publisher cannot make it do.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::subscriber_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Subscribing = PubSubScenario;

// --- nothing follows a close() --------------------------------------------------------------

TEST_P(Subscribing, AfterCloseInOnGapNoOtherFollows) {
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 1024,
                               .page_count = 64,
                               .queue_limit_bytes = 4096});
    auto& subscriber = subscribe({range(1, 50)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.actor.at_gap = [](SubscribeSocket& socket) { socket.close(); };
    for (std::uint64_t n = 0; n < 40; ++n)
        for (std::uint64_t fid = 1; fid <= 50; ++fid)
            ASSERT_EQ(publish(*publisher, Fid{fid}, n, 100), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.gaps.size(), 1U);
}

TEST_P(Subscribing, AfterCloseInOnSubscribedNoAnswerAndNoMessageFollows) {
    auto publisher = buffered({});
    publisher_actor.at_subscribe = [&] {
        EXPECT_EQ(publish(*publisher, Fid{1}, 0, 100), Status::ok);
        publisher->flush();
    };
    auto& subscriber = subscribe({range(1, 1), range(3, 3), range(5, 5)});
    subscriber.actor.at_subscribed = [](SubscribeSocket& socket) { socket.close(); };
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.subscribed.size(), 1U);
    EXPECT_EQ(subscriber.actor.messages, 0U);
    EXPECT_FALSE(subscriber.actor.last_retrying);
}

TEST_P(Subscribing, AbortEndsAtOnceAndIsFinal) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)}, {.reconnect = true});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->abort();
    EXPECT_THAT(subscriber.actor.closed, IsEmpty()) << "no callback within a call";
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::local);
    EXPECT_FALSE(subscriber.actor.last_retrying);
}

TEST_P(Subscribing, AMessageLimitAsLargeAsThePublishersIsEnough) {
    BufferedPublishSocket::Options small;
    small.page_size_bytes = 1024;
    small.page_count = 4;
    auto publisher = buffered(small);
    ASSERT_LT(publisher->message_limit(), small.publisher.largest_message_bytes);
    SubscribeSocket::Options exact;
    exact.largest_message_bytes = publisher->message_limit();
    auto& subscriber = subscribe({range(1, 1)}, exact);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, exact.largest_message_bytes), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    EXPECT_THAT(subscriber.actor.closed, IsEmpty());
}

// --- refusals -------------------------------------------------------------------------------

TEST_P(Subscribing, ARefusedUnsubscriptionIsReportedAndChangesNothing) {
    auto publisher = unbuffered({.publisher = {.ranges_per_subscriber_limit = 1}});
    auto& subscriber = subscribe({range(1, 9)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->unsubscribe(range(5, 5));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.unsubscription_refused.size() == 1; }));
    EXPECT_THAT(subscriber.actor.refused, IsEmpty());
    netio::RegisteredBuffer memory{64};
    EXPECT_EQ(publisher->publish(Fid{5}, memory.slice(), Cookie{1}), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    EXPECT_THAT(subscriber.socket->wanted(), ElementsAre(range(1, 9)));
}

TEST_P(Subscribing, RefusedFidsAreNotRequestedByTheNextConnection) {
    auto publisher = unbuffered({.publisher = {.ranges_per_subscriber_limit = 1}});
    auto& subscriber = subscribe({range(1, 1)}, {.reconnect = true});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->subscribe(range(5, 5));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.refused.size() == 1; }));
    EXPECT_THAT(subscriber.socket->wanted(), ElementsAre(range(1, 1)));
    publisher.reset();
    publisher_actor.subscribed.clear();
    PublishSocket next{transport(),
                       {.publisher = {.listen = {address}, .allow_remote_anonymous = true}},
                       publisher_actor};
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    EXPECT_THAT(publisher_actor.subscribed, ElementsAre(range(1, 1)));
}

// --- many fids ------------------------------------------------------------------------------

// With quadratic cost the loop stopped for seconds.
TEST_P(Subscribing, TheMaximumOfSingleFidsIsRequestedWithAPolicyAtOnce) {
    const std::uint64_t count = Publisher::Options{}.ranges_per_subscriber_limit;
    auto publisher = unbuffered({});
    std::vector<FidRange> fids;
    for (std::uint64_t i = 0; i < count; ++i)
        fids.push_back(range(2 * i, 2 * i));
    auto& subscriber = subscribe(fids, {}, SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == count; }));
    EXPECT_THAT(subscriber.actor.refused, IsEmpty());
}

// --- what a publisher cannot make a subscriber do -------------------------------------------

// Rejects every peer and asks each for larger buffers.
class Greedy final : private netio::Listener::Handler {
  public:
    Greedy(netio::Transport& transport, const netio::Address& at, std::uint32_t first)
        : bytes_{first}, listener_{transport.listen(transport.providers_at(at).front(), at,
                                                    {.allow_remote_anonymous = true}, *this)} {}

    netio::Address address() const { return listener_->address(); }
    int requests = 0;
    std::uint32_t step = 1;
    std::function<void()> at_request;

  private:
    void on_request(netio::ConnectionRequest& request) override {
        ++requests;
        if (at_request) at_request();
        netio::ConnectionData data;
        const netio::Rejection rejection{.code = netio::RejectCode::receive_too_small,
                                         .required_bytes = bytes_};
        bytes_ += step;
        request.reject(std::span{data}.first(netio::encode(rejection, data)));
    }
    std::uint32_t bytes_;
    std::unique_ptr<netio::Listener> listener_;
};

TEST_P(Subscribing, BuffersGrowForAPublisherUpToALimitOnly) {
    const SubscribeSocket::Options defaults;
    Greedy greedy{transport(), bed.address(),
                  static_cast<std::uint32_t>(defaults.receive_buffer_limit_bytes + 1)};
    address = greedy.address();
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::rejected);
    EXPECT_THAT(subscriber.actor.closed[0].detail, HasSubstr("receive_buffer_limit_bytes is"));
    EXPECT_FALSE(subscriber.actor.last_retrying);
    EXPECT_EQ(greedy.requests, 1);
}

TEST_P(Subscribing, GrowingDemandsAreRetriedOnlyAtTheRetryInterval) {
    const SubscribeSocket::Options defaults;
    Greedy greedy{transport(), bed.address(),
                  static_cast<std::uint32_t>(defaults.session.receive_buffer_bytes + 1)};
    address = greedy.address();
    auto& subscriber = subscribe({range(1, 1)});
    const netio::TimePoint begin = loop().now();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 4; }));
    EXPECT_TRUE(subscriber.actor.last_retrying);
    EXPECT_EQ(greedy.requests, 8) << "each attempt may grow once";
    EXPECT_GE(loop().now() - begin, 3 * defaults.retry_interval);
}

// Only the simulator can be made to refuse connections.
class SubscribingInTheSimulator : public Subscribing {};

TEST_P(SubscribingInTheSimulator, AnAttemptThatCannotStartIsRetried) {
    auto publisher = buffered({});
    bed.sim()->refuse_connecting(true);
    auto& impatient = subscribe({range(1, 1)}, {.wait_for_publisher = false});
    ASSERT_TRUE(run_until([&] { return !impatient.actor.closed.empty(); }));
    EXPECT_FALSE(impatient.actor.last_retrying);
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 2; }));
    EXPECT_TRUE(subscriber.actor.last_retrying);
    EXPECT_THAT(subscriber.actor.closed[0].detail, HasSubstr("cannot open an endpoint"));
    bed.sim()->refuse_connecting(false);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
}

TEST_P(SubscribingInTheSimulator, ALookupThatCannotStartIsRetried) {
    auto publisher = buffered({});
    bed.sim()->refuse_searching(true);
    auto& subscriber =
        subscribe({range(1, 1)}, {.fallback_addresses = {{.host = "elsewhere", .port = 7}}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 2; }));
    EXPECT_TRUE(subscriber.actor.last_retrying);
    EXPECT_THAT(subscriber.actor.closed[1].detail, HasSubstr(to_string(address) + ": no thread"));
    EXPECT_THAT(subscriber.actor.closed[1].detail, HasSubstr("elsewhere:7: no thread"));
    bed.sim()->refuse_searching(false);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
}

// One address belongs to a publisher that wants larger buffers, and no connection can be opened
// with those.
TEST_P(SubscribingInTheSimulator, WithoutLargerBuffersTheNextAddressIsTried) {
    auto publisher = buffered({});
    const netio::Address right = address;
    const SubscribeSocket::Options defaults;
    Greedy greedy{transport(), bed.address(),
                  static_cast<std::uint32_t>(defaults.session.receive_buffer_bytes + 1)};
    address = greedy.address();
    greedy.at_request = [&] { bed.sim()->refuse_connecting(greedy.requests == 1); };
    auto& subscriber = subscribe({range(1, 1)}, {.fallback_addresses = {right}});
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_TRUE(subscriber.actor.last_retrying);
    EXPECT_THAT(subscriber.actor.closed[0].detail, HasSubstr("cannot open an endpoint"));
    EXPECT_THAT(bed.seen().routes_failed, SizeIs(2));
    EXPECT_EQ(greedy.requests, 1);
    bed.sim()->refuse_connecting(false);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    EXPECT_EQ(greedy.requests, 3) << "with small buffers and with larger ones";
}

INSTANTIATE_TEST_SUITE_P(Beds, Subscribing, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, SubscribingInTheSimulator, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::subscriber_test
