// SPDX-License-Identifier: Apache-2.0

// Every kind of end: subscribers and publishers that leave during a transfer, sockets that are
// destroyed inside their own handlers, subscribers that wait for their publisher.

#include "netio/session/session_listener.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::closing_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;

using Closing = PubSubScenario;

// Publishes `count` messages of fid 1 from one buffer, as fast as they are accepted.
class Pump {
  public:
    Pump(PublishSocket& socket, PublisherActor& actor, std::uint64_t count, std::size_t bytes)
        : socket_{socket}, actor_{actor}, count_{count}, bytes_{bytes}, memory_{bytes} {
        actor.at_room = [this] { go(); };
    }
    void go() {
        while (next_ < count_) {
            const Status status = socket_.publish(Fid{1}, memory_.slice(0, bytes_), Cookie{next_});
            if (status == Status::again) return;
            if (status == Status::ok) accepted_.push_back(next_);
            ++next_;
        }
    }
    bool done() const { return next_ == count_; }
    void expect_all_completed_once() const {
        EXPECT_EQ(actor_.completions.size(), accepted_.size());
        for (const std::uint64_t key : accepted_) {
            const auto found = actor_.completions.find(key);
            ASSERT_TRUE(found != actor_.completions.end()) << "key " << key << " never came back";
            EXPECT_EQ(found->second, 1) << "key " << key;
        }
    }
    std::size_t accepted() const { return accepted_.size(); }

  private:
    PublishSocket& socket_;
    PublisherActor& actor_;
    std::uint64_t count_;
    std::size_t bytes_;
    netio::RegisteredBuffer memory_;
    std::uint64_t next_ = 0;
    std::vector<std::uint64_t> accepted_;
};

TEST_P(Closing, ASubscriberThatVanishesDuringATransferLeaksNothing) {
    auto publisher = unbuffered({.outstanding_limit = 32, .queue_limit_messages = 8});
    auto& stays = subscribe({range(1, 1)});
    auto& leaves = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until(
        [&] { return stays.actor.subscribed.size() == 1 && leaves.actor.subscribed.size() == 1; }));
    Pump pump{*publisher, publisher_actor, 2000, 20000};
    leaves.actor.at_message = [&](SubscribeSocket&) {
        if (leaves.actor.messages == 100) leaves.socket.reset(); // in its own handler
    };
    pump.go();
    ASSERT_TRUE(run_until([&] { return pump.done(); }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(leaves.actor.messages, 100U);
    EXPECT_EQ(stays.actor.messages, 2000U);
    EXPECT_EQ(stays.actor.lost, 0U);
    pump.expect_all_completed_once();
    ASSERT_GE(publisher_actor.closed.size(), 1U);
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::lost);
}

TEST_P(Closing, WithTheLastSubscriberEveryKeyCompletes) {
    auto publisher = unbuffered({.outstanding_limit = 64});
    auto& only = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return only.actor.subscribed.size() == 1; }));
    Pump pump{*publisher, publisher_actor, 1000, 50000};
    only.actor.at_message = [&](SubscribeSocket&) { only.socket.reset(); };
    pump.go();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1 && pump.done(); }));
    EXPECT_EQ(publisher->outstanding(), 0U);
    EXPECT_GT(pump.accepted(), 10U);
    pump.expect_all_completed_once();
}

TEST_P(Closing, APublisherThatVanishesIsALossAndHalfAMessageIsNotDelivered) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{8 << 20};
    std::ranges::copy(make_message(Fid{1}, 0, 64), memory.data());
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(0, 64), Cookie{1}), Status::ok);
    ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == 1; }));
    std::ranges::copy(make_message(Fid{1}, 1, memory.size()), memory.data());
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{2}), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    publisher.reset();
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::lost);
    EXPECT_EQ(subscriber.actor.messages, 1U);
    EXPECT_EQ(subscriber.actor.totals, 0);
    EXPECT_FALSE(subscriber.actor.last_retrying);
}

TEST_P(Closing, ASubscriberWaitsForItsPublisherAndReconnectsToTheNext) {
    {
        auto first = unbuffered({}); // only to get a free address
    }
    auto& subscriber = subscribe({range(1, 1)}, {.reconnect = true});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() >= 2; }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::refused);
    EXPECT_TRUE(subscriber.actor.last_retrying);
    netio::RegisteredBuffer memory{64};
    for (std::uint64_t round = 0; round < 3; ++round) {
        PublishSocket::Options options{
            .publisher = {.listen = {address}, .allow_remote_anonymous = true}};
        PublishSocket publisher{transport(), options, publisher_actor};
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == round + 1; }));
        std::ranges::copy(make_message(Fid{1}, round, 64), memory.data());
        ASSERT_EQ(publisher.publish(Fid{1}, memory.slice(), Cookie{round}), Status::ok);
        ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == round + 1; }));
    }
    subscriber.actor.expect_contiguous(Fid{1}, 0, 3);
}

// Accepts every peer and ends each connection without a message, like a publisher that is so busy
// that the handshake exceeds its deadline.
class Doorman final : netio::SessionListener::Handler, netio::Session::Handler {
  public:
    Doorman(netio::Transport& transport, const netio::Address& at)
        : listener_{transport,
                    {.service = netio::Service::publish_subscribe,
                     .listen = {at},
                     .allow_remote_anonymous = true,
                     .service_bytes = 4},
                    *this} {}
    netio::Address address() const { return listener_.endpoints().front().address; }

  private:
    void on_incoming(netio::IncomingSession& incoming) override {
        netio::Hello hello{.service = netio::Service::publish_subscribe, .service_data = {}};
        hello.service_data.size = 4;
        links_.push_back(incoming.accept(hello, {}, *this));
    }
    void on_accept_failed(const std::string& peer_address, const netio::FabricError& why) override {
        ADD_FAILURE() << peer_address << ": " << why.what();
    }
    void on_open(netio::Session& session) override { session.abort(); }
    void on_frame(netio::Session&, const netio::IncomingFrame&) override {}
    void on_sent(netio::Session&, Cookie, netio::Completion::Outcome) override {}
    void on_writable(netio::Session&) override {}
    void on_closed(netio::Session&, const netio::Closed&) override {}

    std::vector<std::unique_ptr<netio::Session>> links_;
    netio::SessionListener listener_;
};

TEST_P(Closing, AnAdmittedButUnansweredSubscriberRetries) {
    auto doorman = std::make_unique<Doorman>(transport(), bed.address());
    address = doorman->address();
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 2; }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::lost);
    EXPECT_EQ(subscriber.actor.connected, 2);
    EXPECT_TRUE(subscriber.actor.last_retrying);
    doorman.reset();
    PublishSocket publisher{transport(),
                            {.publisher = {.listen = {address}, .allow_remote_anonymous = true}},
                            publisher_actor};
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
}

TEST_P(Closing, WithoutReconnectingALostPublisherIsTheEnd) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    publisher.reset();
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_FALSE(subscriber.actor.last_retrying);
    EXPECT_FALSE(subscriber.socket->is_connected());
}

TEST_P(Closing, CloseEndsInOrderOnBothSides) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->close();
    ASSERT_TRUE(run_until(
        [&] { return !subscriber.actor.closed.empty() && !publisher_actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(subscriber.actor.closed.size(), 1U);
}

TEST_P(Closing, CloseIsReportedLastAlsoBetweenTwoAttempts) {
    {
        auto first = unbuffered({}); // only to get a free address
    }
    auto& subscriber = subscribe({range(1, 1)}, {.retry_interval = std::chrono::hours{1}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    subscriber.socket->close();
    subscriber.socket->close();
    EXPECT_EQ(subscriber.actor.closed.size(), 1U) << "no callback within a call";
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 2; }));
    EXPECT_EQ(subscriber.actor.closed[1].reason, CloseReason::local);
    EXPECT_FALSE(subscriber.actor.last_retrying);
    loop().run_once();
    EXPECT_EQ(subscriber.actor.closed.size(), 2U);
}

TEST_P(Closing, TheAddressIsFreeWhenTheCloseBegins) {
    auto first = buffered({});
    auto& paused = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return paused.actor.subscribed.size() == 1; }));
    paused.socket->pause();
    ASSERT_EQ(publish(*first, Fid{1}, 0, 40), Status::ok);
    first->close();
    BufferedPublishSocket second{
        transport(),
        {.publisher = {.listen = {address}, .allow_remote_anonymous = true}},
        static_cast<PublishSocketBase::Handler&>(publisher_actor)};
    EXPECT_EQ(first->endpoints().front().address, address);
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    EXPECT_TRUE(publisher_actor.closed.empty()) << "the first one waits for its subscriber";
    first->abort();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
}

TEST_P(Closing, AfterCloseNothingIsDelivered) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.actor.at_message = [](SubscribeSocket& socket) { socket.close(); };
    for (std::uint64_t i = 0; i < 100; ++i) // one page
        ASSERT_EQ(publish(*publisher, Fid{1}, i, 40), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return !publisher_actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.messages, 1U);
}

// --- destroyed in every handler -------------------------------------------------------------

TEST_P(Closing, APublisherMayBeDestroyedInEachOfItsHandlers) {
    using Hook = std::function<void()> PublisherActor::*;
    const Hook hooks[] = {&PublisherActor::at_connected,   &PublisherActor::at_subscribe,
                          &PublisherActor::at_unsubscribe, &PublisherActor::at_closed,
                          &PublisherActor::at_room,        &PublisherActor::at_ended};
    constexpr std::size_t at_completed = std::size(hooks); // only for zero-copy memory
    netio::RegisteredBuffer memory{100000};
    for (std::size_t i = 0; i < 2 * std::size(hooks) + 1; ++i) {
        publisher_actor = {};
        std::unique_ptr<PublishSocket> lent;
        std::unique_ptr<BufferedPublishSocket> pages;
        if (i <= at_completed)
            lent = unbuffered({.outstanding_limit = 4, .queue_limit_messages = 2});
        else
            pages = buffered({.page_size_bytes = 1024, .page_count = 4});
        bool destroyed = false;
        const auto destroy = [&] {
            lent.reset();
            pages.reset();
            destroyed = true;
        };
        if (i == at_completed)
            publisher_actor.at_completed = [&](std::uint64_t) { destroy(); };
        else
            publisher_actor.*hooks[i < at_completed ? i : i - at_completed - 1] = destroy;
        auto& first = subscribe({range(1, 1), range(3, 3)});
        auto& second = subscribe({range(1, 1), range(4, 4)});
        const auto subscribed = [&] {
            return first.actor.subscribed.size() == 2 && second.actor.subscribed.size() == 2;
        };
        ASSERT_TRUE(run_until([&] { return destroyed || subscribed(); })) << i;
        for (std::uint64_t n = 0; !destroyed && n < 20; ++n)
            static_cast<void>(lent ? lent->publish(Fid{1}, memory.slice(), Cookie{n})
                                   : publish(*pages, Fid{1}, n, 900));
        if (!destroyed) first.socket->unsubscribe(range(3, 3));
        ASSERT_TRUE(run_until([&] { return destroyed || first.actor.unsubscribed.size() == 1; }))
            << i;
        if (!destroyed) second.socket.reset();
        ASSERT_TRUE(run_until([&] { return destroyed || !publisher_actor.closed.empty(); })) << i;
        if (!destroyed) lent ? lent->close() : pages->close();
        ASSERT_TRUE(run_until([&] { return destroyed; })) << "hook " << i;
        // The other side is notified.
        if (first.socket && first.socket->is_connected()) {
            ASSERT_TRUE(run_until([&] { return !first.actor.closed.empty(); })) << i;
        }
        subscribers.clear();
    }
}

TEST_P(Closing, TwoHundredSubscribersComeGetEverythingAndGo) {
    auto publisher = buffered({.page_size_bytes = 4096, .page_count = 64});
    for (std::uint64_t i = 0; i < 200; ++i)
        subscribe({range(i % 10, i % 10)},
                  {.session = {.receive_buffer_bytes = 8192, .receive_count = 8}});
    ASSERT_TRUE(run_until([&] {
        return std::ranges::all_of(
            subscribers, [](const auto& each) { return each->actor.subscribed.size() == 1; });
    }));
    EXPECT_EQ(publisher->counters().subscribers, 200U);
    std::uint64_t next = 0;
    publisher_actor.at_room = [&] {
        for (; next < 2000; ++next)
            if (publish(*publisher, Fid{next % 10}, next / 10, 100) != Status::ok) return;
        publisher->close();
    };
    publisher_actor.at_room();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (std::size_t i = 0; i < subscribers.size(); ++i) {
        subscribers[i]->actor.expect_contiguous(Fid{i % 10}, 0, 200);
        EXPECT_EQ(subscribers[i]->actor.lost, 0U);
    }
}

TEST_P(Closing, APublisherReportsThatAllSubscribersHaveConfirmed) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 100), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
    subscriber.actor.expect_contiguous(Fid{1}, 0, 1);
}

TEST_P(Closing, AnAbortedPublisherReportsEverySubscriberAndThenItsEnd) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{100};
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{7}), Status::ok);
    publisher_actor.at_ended = [&] {
        EXPECT_EQ(publisher_actor.closed.size(), 1U);
        EXPECT_EQ(publisher_actor.completions[7], 1);
    };
    publisher->abort();
    EXPECT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{8}), Status::closed);
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::local);
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
}

INSTANTIATE_TEST_SUITE_P(Beds, Closing, all_beds(), bed_name);

// Its handshake had already begun: it is notified of the end like all others, but the publisher
// does not report it.
TEST_P(Closing, ASubscriberConnectingDuringTheCloseIsNotServed) {
    auto publisher = unbuffered({.publisher = {.close_timeout = std::chrono::milliseconds{100}}});
    Impostor late{transport(), address, netio::Service::publish_subscribe};
    ASSERT_TRUE(run_until([&] { return late.connected; }));
    publisher->close();
    late.send_open();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.connected, 0);
}

using ClosingWithoutRegistrations = PubSubScenario;

TEST_P(ClosingWithoutRegistrations, APageEndsItsLinkAndNotThePublisher) {
    auto publisher = buffered({});
    auto& first = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return first.actor.subscribed.size() == 1; }));
    bed.sim()->refuse_registrations(true);
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 100), Status::ok); // sent by the flush timer
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::failed);
    EXPECT_THAT(publisher_actor.closed[0].detail, testing::HasSubstr("regist"));
    ASSERT_TRUE(run_until([&] { return first.actor.closed.size() == 1; }));
    bed.sim()->refuse_registrations(false);

    auto& second = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return second.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 100), Status::ok);
    ASSERT_TRUE(run_until([&] { return second.actor.messages == 1; }));
}

TEST_P(ClosingWithoutRegistrations, AnUnbufferedMessageIsCompletedOnceAndEndsItsLink) {
    auto publisher = unbuffered({});
    auto& first = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return first.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{100'000};
    bed.sim()->refuse_registrations(true);
    const Status status = publisher->publish(Fid{1}, memory.slice(), Cookie{7});
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::failed);
    if (status == Status::ok) {
        ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == 1; }));
    }
    EXPECT_EQ(publisher_actor.completions[7], status == Status::ok ? 1 : 0);
    bed.sim()->refuse_registrations(false);
}

INSTANTIATE_TEST_SUITE_P(Beds, ClosingWithoutRegistrations, netio::test::simulated_beds(),
                         bed_name);

} // namespace
} // namespace netio::pubsub::test::closing_test
