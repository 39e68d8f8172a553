// SPDX-License-Identifier: Apache-2.0

// Subscribers that reconnect, and what is reported to them about the time between.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <random>

namespace netio::pubsub::test::reconnecting_test {
namespace {

using namespace std::chrono_literals;
using netio::Cookie;
using netio::Status;
using netio::test::simulated_beds;
using testing::IsEmpty;
using testing::SizeIs;

class Reconnecting : public PubSubScenario {
  protected:
    static SubscribeSocket::Options returning() {
        return {.session = {.receive_count = 4}, .reconnect = true, .retry_interval = 1ms};
    }
    // Breaks the connection of a subscriber; its publisher keeps running.
    void lose(const Subscription& subscriber) {
        const std::size_t before = subscriber.actor.closed.size();
        bed.sim()->sever(bed.sim()->next_connection() - 1);
        ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == before + 1; }));
    }
};
using Restarting = Reconnecting; // on every bed

INSTANTIATE_TEST_SUITE_P(Beds, Reconnecting, simulated_beds(), bed_name);

TEST_P(Reconnecting, MessagesPublishedDuringTheLossAreReportedForEachFid) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 9)}, returning());
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t n = 0; n < 5; ++n)
        ASSERT_EQ(publish(*publisher, Fid{1}, n, 40), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 5; }));
    lose(subscriber);
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    for (std::uint64_t n = 5; n < 8; ++n)
        ASSERT_EQ(publish(*publisher, Fid{1}, n, 40), Status::no_subscribers);
    ASSERT_EQ(publish(*publisher, Fid{2}, 0, 40), Status::no_subscribers);
    ASSERT_EQ(publish(*publisher, Fid{20}, 0, 40), Status::no_subscribers);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    EXPECT_EQ(subscriber.actor.lost_while_disconnected,
              (std::map<Fid, std::uint64_t>{{Fid{1}, 3U}, {Fid{2}, 1U}}));
    EXPECT_THAT(subscriber.actor.changes, IsEmpty());
    ASSERT_EQ(publish(*publisher, Fid{1}, 8, 40), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 6; }));
    EXPECT_EQ(subscriber.actor.by_fid[Fid{1}].back().number, 8U);
}

TEST_P(Reconnecting, ZeroCopyMessagesInFlightAreReportedLost) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)}, returning());
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{64};
    for (std::uint64_t n = 0; n < 20; ++n)
        ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{n}), Status::ok);
    lose(subscriber);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    EXPECT_EQ(subscriber.actor.messages + subscriber.actor.lost_while_disconnected[Fid{1}], 20U);
}

TEST_P(Reconnecting, WithoutAReconnectionNoPositionsAreReported) {
    auto publisher = buffered({});
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::no_subscribers);
    auto& subscriber = subscribe({range(1, 9)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    EXPECT_EQ(subscriber.socket->publisher_instance(), 0U);
    auto& other = subscribe({range(1, 9)}, returning());
    ASSERT_TRUE(run_until([&] { return other.actor.subscribed.size() == 1; }));
    EXPECT_NE(other.socket->publisher_instance(), 0U);
    EXPECT_THAT(other.actor.lost_while_disconnected, IsEmpty())
        << "messages from before its first connection";
}

TEST_P(Reconnecting, AChangeOfPolicyLosesNothing) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 9)}, returning());
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
    publisher->flush();
    subscriber.socket->subscribe(range(1, 1), SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    lose(subscriber);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.connected == 2; }));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() >= 3; }));
    EXPECT_THAT(subscriber.actor.lost_while_disconnected, IsEmpty());
    EXPECT_EQ(subscriber.actor.messages, 1U);
}

// Fids unsubscribed at any moment between two connections lose nothing; the others do.
TEST_P(Reconnecting, CountsNoLossesForFidsUnsubscribedWhileDisconnected) {
    enum class When { away, connecting, asked };
    for (const When when : {When::away, When::connecting, When::asked}) {
        for (const bool soon : {false, true}) { // it is subscribed again
            SCOPED_TRACE(static_cast<int>(when) * 2 + static_cast<int>(soon));
            auto publisher = buffered({});
            auto& subscriber = subscribe({range(1, 9)}, returning());
            const auto unsubscribe = [&](SubscribeSocket& socket) {
                socket.unsubscribe(range(3, 4));
                if (soon) socket.subscribe(range(3, 4));
            };
            ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
            for (const std::uint64_t fid : {3U, 4U, 5U})
                ASSERT_EQ(publish(*publisher, Fid{fid}, 0, 40), Status::ok);
            publisher->flush();
            ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 3; }));
            publisher_actor.closed.clear();
            lose(subscriber);
            ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
            for (const std::uint64_t fid : {3U, 4U, 5U})
                ASSERT_EQ(publish(*publisher, Fid{fid}, 1, 40), Status::no_subscribers);
            if (when == When::away) unsubscribe(*subscriber.socket);
            // Here the request for all of them is in transit.
            if (when == When::asked) subscriber.actor.at_connected = unsubscribe;
            if (when == When::connecting) {
                const auto next = bed.sim()->next_connection();
                ASSERT_TRUE(run_until([&] { return bed.sim()->next_connection() > next; }));
                unsubscribe(*subscriber.socket);
            }
            ASSERT_TRUE(run_until([&] { return subscriber.actor.connected == 2; }));
            if (!soon) subscriber.socket->subscribe(range(3, 4));
            ASSERT_TRUE(run_until([&] {
                return publisher->publish(Fid{3}, make_message(Fid{3}, 2, 40)) == Status::ok;
            }));
            publisher->flush();
            ASSERT_TRUE(run_until([&] { return subscriber.actor.messages >= 4; }));
            EXPECT_EQ(subscriber.actor.lost_while_disconnected,
                      (std::map<Fid, std::uint64_t>{{Fid{5}, 1U}}));
            subscribers.clear();
        }
    }
}

// on_closed without `retrying` is not the last event, except after close() and abort().
TEST_P(Reconnecting, ConnectsAgainOnSubscribeUnlessItWasClosed) {
    auto publisher = buffered({});
    for (const bool reconnect : {false, true}) {
        SubscribeSocket::Options options = returning();
        options.reconnect = reconnect;
        auto& subscriber = subscribe({range(1, 9)}, options);
        const auto ended = [&] {
            return !subscriber.actor.closed.empty() && !subscriber.actor.last_retrying;
        };
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        subscriber.socket->unsubscribe(range(1, 9));
        ASSERT_TRUE(run_until(ended));
        EXPECT_EQ(subscriber.actor.closed.back().reason, netio::CloseReason::orderly);
        subscriber.socket->subscribe(range(1, 1));
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
        EXPECT_EQ(subscriber.actor.connected, 2);
        if (!reconnect) {
            subscriber.actor.closed.clear();
            lose(subscriber);
            ASSERT_TRUE(ended());
            subscriber.socket->subscribe(range(2, 2));
            ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() >= 3; }));
            EXPECT_EQ(subscriber.actor.subscribed.back(), range(1, 2)) << "all its subscriptions";
        }
        subscriber.actor.closed.clear();
        subscriber.socket->close();
        ASSERT_TRUE(run_until(ended));
        const int connected = subscriber.actor.connected;
        subscriber.socket->subscribe(range(1, 1));
        const netio::TimePoint begin = loop().now();
        netio::Timer wake{loop(), [] {}};
        wake.start(10s);
        ASSERT_TRUE(run_until([&] { return loop().now() - begin >= 10s; }));
        EXPECT_EQ(subscriber.actor.connected, connected);
        EXPECT_THAT(subscriber.actor.closed, SizeIs(1));
    }
}

TEST_P(Reconnecting, AttemptsBecomeRarer) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)}, returning());
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    publisher.reset();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    const netio::TimePoint begin = loop().now();
    ASSERT_TRUE(run_until([&] { return loop().now() - begin > 20s; }));
    EXPECT_LT(subscriber.actor.closed.size(), 30U);
    EXPECT_GT(subscriber.actor.closed.size(), 10U);
}

// One subscriber of four fids, and a publisher that loses the connection, refuses it, is restarted,
// and drops messages. Each message is identified by its number. From the reports the subscriber
// knows the next number of each fid: exactly that one arrives, or the publisher ended with an
// unknown tail.
class Vicissitudes {
  public:
    Vicissitudes(TestBed& bed, std::uint64_t seed) : bed_{bed}, random_{seed} {
        publishing_.at_subscribe = [this] {
            accepted_at_ = published_;
            accepted_by_ = publisher_number_;
        };
        actor_.at_message = [this](SubscribeSocket&) {
            for (auto& [fid, arrived] : actor_.by_fid) {
                for (const Arrived& message : arrived)
                    EXPECT_EQ(message.number, next_[fid]++);
                arrived.clear();
            }
        };
        actor_.at_gap = [this](SubscribeSocket&) { pass(actor_.gaps); };
        actor_.at_lost_while_disconnected = [this](SubscribeSocket&) {
            ++told_missing;
            pass(actor_.lost_while_disconnected);
        };
        actor_.at_changed = [this](SubscribeSocket&) {
            ++changes;
            const bool was_known = std::exchange(is_known_, false);
            if (was_known && actor_.changes.back().tail_known) {
                EXPECT_EQ(next_, ended_at_.at(served_by_));
            }
        };
        actor_.at_subscribed = [this](SubscribeSocket& socket) {
            if (is_known_) {
                EXPECT_EQ(next_, accepted_at_);
            }
            next_ = accepted_at_;
            is_known_ = true;
            served_by_ = accepted_by_;
            EXPECT_NE(socket.publisher_instance(), 0U);
        };
        actor_.at_totals = [this](SubscribeSocket& socket) {
            // It includes the counts of the loss reports.
            for (std::uint64_t fid = 0; fid < 4; ++fid) {
                const auto difference = socket.arrivals().difference(Fid{fid}).value();
                next_[Fid{fid}] += difference.lost - socket.arrivals().dropped(Fid{fid});
            }
        };
        start();
        socket_ = std::make_unique<SubscribeSocket>(
            bed_.transport(),
            SubscribeSocket::Options{.publisher = address_,
                                     .session = {.receive_count = 4},
                                     .reconnect = true,
                                     .retry_interval = 1ms,
                                     .retry_limit = 8ms},
            actor_);
        socket_->subscribe(range(0, 3), SlowPolicy::drop);
    }

    void run(int steps) {
        for (int i = 0; i < steps; ++i)
            step();
        bed_.sim()->refuse_endpoints(false);
        socket_->resume();
        ASSERT_TRUE(bed_.run_until([&] { return served_by_ == publisher_number_; }));
        publisher_->flush();
        ASSERT_TRUE(bed_.run_until([&] { return next_ == published_; }));
        const Fid fid{0}; // a subscriber that gets this is connected
        while (publisher_->publish(fid, make_message(fid, published_[fid], 8)) != Status::ok)
            pass_time(10ms);
        ++published_[fid];
        ASSERT_TRUE(bed_.run_until([&] { return next_ == published_; }));
        publisher_->close();
        ASSERT_TRUE(bed_.run_until([&] { return publishing_.ended > 0; }));
        EXPECT_EQ(publishing_.end.reason, netio::CloseReason::orderly);
        EXPECT_EQ(next_, published_);
    }

    int changes = 0;
    int told_missing = 0;

  private:
    using Numbers = std::map<Fid, std::uint64_t>;

    void start() {
        publisher_.reset();
        ended_at_.push_back(published_);
        published_ = {{Fid{0}, 0U}, {Fid{1}, 0U}, {Fid{2}, 0U}, {Fid{3}, 0U}};
        ++publisher_number_;
        publishing_.ended = 0;
        const netio::Address at = address_.port != 0 ? address_ : bed_.address();
        publisher_ = std::make_unique<BufferedPublishSocket>(
            bed_.transport(),
            BufferedPublishSocket::Options{.publisher = {.listen = {at},
                                                         .allow_remote_anonymous = true,
                                                         .slow_policy = SlowPolicy::drop},
                                           .page_size_bytes = 1024,
                                           .page_count = 16,
                                           .queue_limit_bytes = 4096},
            publishing_);
        address_ = publisher_->endpoints().front().address;
    }
    void pass(std::map<Fid, std::uint64_t>& counts) {
        for (const auto& [fid, count] : counts)
            next_[fid] += count;
        counts.clear();
    }
    void publish_some() {
        const Fid fid{random_() % 4};
        for (std::uint64_t left = random_() % 40; left > 0; --left) {
            const std::size_t size = random_() % 16 == 0 ? 2500 : 8 + random_() % 200;
            const Status status =
                publisher_->publish(fid, make_message(fid, published_[fid], size));
            if (status == Status::ok || status == Status::no_subscribers) ++published_[fid];
        }
    }
    void pass_time(Duration time) {
        const netio::TimePoint begin = bed_.loop().now();
        netio::Timer wake{bed_.loop(), [] {}};
        wake.start(time);
        ASSERT_TRUE(bed_.run_until([&] { return bed_.loop().now() - begin >= time; }));
    }
    void step() {
        switch (random_() % 20) {
        case 0:
            bed_.sim()->sever(bed_.sim()->next_connection() - 1);
            break;
        case 1:
            if (random_() % 4 == 0) start();
            break;
        case 2:
            if (random_() % 4 != 0) break;
            publisher_->close();
            ASSERT_TRUE(bed_.run_until([&] { return publishing_.ended > 0; }));
            start();
            break;
        case 3:
            bed_.sim()->refuse_endpoints(random_() % 2 == 0);
            break;
        case 4:
            random_() % 2 == 0 ? socket_->pause() : socket_->resume();
            break;
        case 5:
        case 6:
        case 7:
        case 8:
            pass_time(std::chrono::microseconds{random_() % 3000});
            break;
        default:
            publish_some();
        }
    }

    TestBed& bed_;
    std::mt19937_64 random_;
    PublisherActor publishing_;
    SubscriberActor actor_;
    netio::Address address_;
    Numbers published_;             // of each fid, by this publisher
    Numbers accepted_at_;           // when it last accepted a subscription
    std::vector<Numbers> ended_at_; // by publisher, whose numbers begin at 1
    Numbers next_;                  // expected by the subscriber
    bool is_known_ = false;
    std::size_t publisher_number_ = 0;
    std::size_t accepted_by_ = 0;
    std::size_t served_by_ = 0;
    std::unique_ptr<BufferedPublishSocket> publisher_;
    std::unique_ptr<SubscribeSocket> socket_;
};

TEST_P(Reconnecting, UnderAllFaultsEachMessageArrivesOrIsReportedLost) {
    int changes = 0;
    int told_missing = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        TestBed own{GetParam(), seed};
        Vicissitudes vicissitudes{own, seed};
        vicissitudes.run(300);
        changes += vicissitudes.changes;
        told_missing += vicissitudes.told_missing;
        if (HasFailure()) return;
    }
    EXPECT_GT(changes, 20);
    EXPECT_GT(told_missing, 60);
}

// --- the publisher is restarted -------------------------------------------------------------

INSTANTIATE_TEST_SUITE_P(Beds, Restarting, all_beds(), bed_name);

TEST_P(Restarting, ReportsANewPublisherAndWhetherTheFormerTailIsKnown) {
    for (const bool in_order : {false, true}) {
        auto publisher = buffered({});
        auto& subscriber = subscribe({range(1, 1)}, returning());
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        const std::uint64_t former = subscriber.socket->publisher_instance();
        ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
        publisher_actor.ended = 0;
        if (in_order) {
            publisher->close();
            ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
        }
        publisher.reset();
        BufferedPublishSocket next{
            transport(),
            {.publisher = {.listen = {address}, .allow_remote_anonymous = true}},
            publisher_actor};
        ASSERT_EQ(publish(next, Fid{1}, 0, 40), Status::no_subscribers);
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
        ASSERT_THAT(subscriber.actor.changes, SizeIs(1));
        EXPECT_EQ(subscriber.actor.changes[0].former, former);
        EXPECT_EQ(subscriber.actor.changes[0].now, subscriber.socket->publisher_instance());
        EXPECT_EQ(subscriber.actor.changes[0].tail_known, in_order);
        EXPECT_THAT(subscriber.actor.lost_while_disconnected, IsEmpty())
            << "not countable for a new publisher";
        subscribers.clear();
    }
}

} // namespace
} // namespace netio::pubsub::test::reconnecting_test
