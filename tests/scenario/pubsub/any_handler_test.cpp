// SPDX-License-Identifier: Apache-2.0

// What a subscriber may do in every callback: close, abort or destroy the socket.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/key_files.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::any_handler_test {
namespace {

using Hook = std::function<void(SubscribeSocket&)> SubscriberActor::*;

const Hook hooks[] = {
    &SubscriberActor::at_connected,     &SubscriberActor::at_subscribed,
    &SubscriberActor::at_unsubscribed,  &SubscriberActor::at_unsubscription_refused,
    &SubscriberActor::at_message,       &SubscriberActor::at_gap,
    &SubscriberActor::at_refused,       &SubscriberActor::at_policy_refused,
    &SubscriberActor::at_not_permitted, &SubscriberActor::at_lost_while_disconnected,
    &SubscriberActor::at_changed,       &SubscriberActor::at_totals};

class AnyHandler : public PubSubScenario {
  protected:
    AnyHandler() { files.permit(7, "services=pubsub fids=0-29:block"); }

    // Starts a publisher, at the address of the former one if there was one.
    void serve() {
        publisher.reset();
        publisher_actor = {};
        BufferedPublishSocket::Options options{
            .publisher = {.keys = std::make_shared<ServerKeys>(
                              loop(), ServerKeys::Options{.file = files.site()}),
                          .slow_policy = SlowPolicy::drop,
                          .ranges_per_subscriber_limit = 4},
            .page_size_bytes = 1024,
            .page_count = 64,
            .queue_limit_bytes = 4096};
        options.publisher.listen = {address.port != 0 ? address : bed.address()};
        options.publisher.allow_remote_anonymous = true;
        publisher = std::make_unique<BufferedPublishSocket>(transport(), options, publisher_actor);
        address = publisher->endpoints().front().address;
    }
    // It subscribes to two published fids, a third one that it unsubscribes from, and a range from
    // which it cannot unsubscribe in part.
    void ask(std::shared_ptr<ResumeState> resume_state = {}) {
        SubscribeSocket::Options options;
        options.publisher = address;
        options.key = std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7)});
        options.session.receive_count = 4;
        options.reconnect = true;
        options.retry_interval = std::chrono::milliseconds{1};
        options.resume_state = std::move(resume_state);
        subscription.socket =
            std::make_unique<SubscribeSocket>(transport(), options, subscription.actor);
        subscription.socket->subscribe(
            std::vector{range(1, 1), range(3, 3), range(5, 5), range(20, 29)});
    }
    void publish_both(std::uint64_t count) {
        for (std::uint64_t n = 0; n < count; ++n)
            for (const std::uint64_t fid : {1U, 3U})
                static_cast<void>(publish(*publisher, Fid{fid}, n, 300));
        publisher->flush();
    }
    std::uint64_t accounted_for() const {
        std::uint64_t sum = subscription.actor.messages;
        for (const auto& [fid, count] : subscription.actor.gaps)
            sum += count;
        return sum;
    }

    // Causes every callback that a subscriber can get, until it is `over`.
    void tell_everything(const std::function<bool()>& over) {
        subscription.socket.reset();
        subscription.actor = {};
        address = {};
        prepare();
        const SubscriberActor& actor = subscription.actor;
        const auto ended = [&](const std::function<bool()>& done) {
            EXPECT_TRUE(run_until([&] { return over() || done(); }));
            return over() || HasFailure();
        };
        serve();
        ask();
        if (ended([&] { return actor.subscribed.size() == 4; })) return;
        SubscribeSocket& socket = *subscription.socket;
        socket.subscribe(range(7, 7), SlowPolicy::block);
        socket.subscribe(std::vector{range(11, 11), range(13, 13)});
        socket.subscribe(range(40, 40));
        socket.unsubscribe(range(25, 25));
        socket.unsubscribe(range(5, 5));
        if (ended([&] { return actor.unsubscribed.size() == 1; })) return;
        publish_both(100);
        if (ended([&] { return accounted_for() == 200; })) return;

        // Another socket continues the state of the first one.
        const std::shared_ptr<ResumeState> resume_state = subscription.socket->resume_state();
        subscription.socket.reset();
        if (ended([&] { return publisher_actor.closed.size() == 1; })) return;
        publish_both(3);
        ask(resume_state);
        if (ended([&] { return actor.subscribed.size() == 8; })) return;

        publisher->close();
        if (ended([&] { return !actor.closed.empty(); })) return;
        serve();
        if (ended([&] { return actor.subscribed.size() == 12; })) return;
        ADD_FAILURE() << "every callback was made, but no action was taken";
    }

    netio::test::KeyFiles files;
    std::unique_ptr<BufferedPublishSocket> publisher;
    Subscription subscription;
    std::function<void()> prepare; // sets the hook
};

TEST_P(AnyHandler, ThatClosesTheSocketIsFollowedByTheEndOnly) {
    const SubscriberActor& actor = subscription.actor;
    const auto event_count = [&] {
        std::size_t gaps = 0;
        for (const auto& [fid, counts] : actor.gap_counts)
            gaps += counts.size();
        return static_cast<std::size_t>(actor.connected + actor.totals) + actor.messages + gaps +
               actor.lost_while_disconnected.size() + actor.changes.size() +
               actor.subscribed.size() + actor.unsubscribed.size() + actor.refused.size() +
               actor.policy_refused.size() + actor.unsubscription_refused.size();
    };
    for (const bool at_once : {false, true}) {
        for (std::size_t i = 0; i < std::size(hooks); ++i) {
            SCOPED_TRACE("hook " + std::to_string(i) + (at_once ? ", abort" : ", close"));
            std::optional<std::size_t> when_closed;
            std::size_t ends_before = 0;
            prepare = [&] {
                subscription.actor.*hooks[i] = [&](SubscribeSocket& socket) {
                    EXPECT_FALSE(when_closed) << "it was the last callback before the end";
                    at_once ? socket.abort() : socket.close();
                    when_closed = event_count();
                    ends_before = actor.closed.size();
                };
            };
            tell_everything([&] { return when_closed.has_value(); });
            ASSERT_FALSE(HasFailure());
            ASSERT_TRUE(run_until([&] { return actor.closed.size() > ends_before; }));
            for (int turn = 0; turn < 20; ++turn)
                loop().run_once();
            EXPECT_EQ(event_count(), *when_closed);
            EXPECT_EQ(actor.closed.size(), ends_before + 1);
            EXPECT_FALSE(actor.last_retrying);
        }
    }
}

TEST_P(AnyHandler, MayDestroyItsSocket) {
    std::vector<Hook> all{std::begin(hooks), std::end(hooks)};
    all.push_back(&SubscriberActor::at_closed);
    for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE("hook " + std::to_string(i));
        bool destroyed = false;
        prepare = [&] {
            subscription.actor.*all[i] = [&](SubscribeSocket&) {
                EXPECT_FALSE(destroyed);
                subscription.socket.reset();
                destroyed = true;
            };
        };
        tell_everything([&] { return destroyed; });
        ASSERT_FALSE(HasFailure());
        for (int turn = 0; turn < 20; ++turn)
            loop().run_once();
        publisher->close();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, AnyHandler, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::any_handler_test
