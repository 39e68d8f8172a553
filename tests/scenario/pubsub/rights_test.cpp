// SPDX-License-Identifier: Apache-2.0

// Which fids a subscriber's key permits, and how long its subscriber may block the publisher.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/squatter.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace netio::pubsub::test::rights_test {
namespace {

using access::Protection;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

class Rights : public PubSubScenario {
  protected:
    void serve(const std::string& rights, SlowPolicy own = SlowPolicy::block,
               Protection least = Protection::none) {
        files.permit(7, rights);
        keys = std::make_shared<ServerKeys>(
            loop(), ServerKeys::Options{.file = files.site(), .min_protection = least});
        publisher = buffered({.publisher = {.keys = keys, .slow_policy = own}});
    }
    Subscription& ask(const std::vector<FidRange>& ranges, std::optional<SlowPolicy> policy = {},
                      Protection protection = Protection::none) {
        SubscribeSocket::Options options;
        options.key = std::make_shared<ClientKey>(
            ClientKey::Options{.file = files.client(7), .protection = protection});
        return subscribe(ranges, options, policy);
    }
    // Without a handler of its own, a refusal counts as an answer to the subscription.
    static std::size_t answers(const Subscription& subscription) {
        return subscription.actor.subscribed.size() + subscription.actor.refused.size();
    }
    static SubscribeSocket::Options returning(const std::string& key_file) {
        SubscribeSocket::Options options;
        options.key = std::make_shared<ClientKey>(ClientKey::Options{.file = key_file});
        options.reconnect = true;
        options.retry_interval = std::chrono::milliseconds{1};
        return options;
    }
    static std::ptrdiff_t rejections(const Subscription& subscription) {
        return std::ranges::count(subscription.actor.closed, CloseReason::rejected,
                                  &netio::Closed::reason);
    }
    // Starts another publisher at the address, with the keys of these files.
    void restart(const netio::test::KeyFiles& of_site) {
        keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = of_site.site()});
        publisher = std::make_unique<BufferedPublishSocket>(
            transport(),
            BufferedPublishSocket::Options{
                .publisher = {.listen = {address}, .allow_remote_anonymous = true, .keys = keys}},
            publisher_actor);
    }
    void publish_one(Fid fid) {
        ASSERT_EQ(publish(*publisher, fid, 0, 100), netio::Status::ok);
        publisher->flush();
    }

    netio::test::KeyFiles files;
    std::shared_ptr<ServerKeys> keys;
    std::unique_ptr<BufferedPublishSocket> publisher;
};

TEST_P(Rights, PermitTheFidsOfTheKeyAndNoOthers) {
    serve("services=pubsub fids=10-19,30");
    Subscription& subscription = ask({range(10, 12), range(18, 21), range(30, 30)});
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 3; }));
    EXPECT_THAT(subscription.actor.subscribed, UnorderedElementsAre(range(10, 12), range(30, 30)));
    EXPECT_THAT(subscription.actor.refused, ElementsAre(range(18, 21)));
    EXPECT_THAT(subscription.socket->wanted(), ElementsAre(range(10, 12), range(30, 30)));
    EXPECT_THAT(publisher_actor.subscribed, SizeIs(2));
    ASSERT_EQ(publish(*publisher, Fid{19}, 0, 100), netio::Status::no_subscribers);
    publish_one(Fid{11});
    ASSERT_TRUE(run_until([&] { return subscription.actor.messages == 1; }));
}

TEST_P(Rights, CoverAdjacentRanges) {
    serve("services=pubsub fids=0-9:drop!,10-19:block");
    Subscription& subscription = ask({range(5, 14)});
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 1; }));
    EXPECT_THAT(subscription.actor.refused, IsEmpty());
    publish_one(Fid{5});
    publish_one(Fid{14});
    ASSERT_TRUE(run_until([&] { return subscription.actor.messages == 2; }));
}

TEST_P(Rights, LimitThePolicyToThatOfTheKey) {
    serve("services=pubsub fids=0-9:disconnect");
    Subscription& blocking = ask({range(0, 9)}, SlowPolicy::block);
    Subscription& dropping = ask({range(0, 9)}, SlowPolicy::drop);
    Subscription& modest = ask({range(0, 9)}, SlowPolicy::disconnect);
    ASSERT_TRUE(run_until(
        [&] { return answers(blocking) == 1 && answers(dropping) == 1 && answers(modest) == 1; }));
    EXPECT_THAT(blocking.actor.refused, SizeIs(1));
    EXPECT_THAT(dropping.actor.subscribed, SizeIs(1));
    EXPECT_THAT(modest.actor.subscribed, SizeIs(1));
}

// A key that forces drop, whatever policy is requested: it never blocks the publisher.
TEST_P(Rights, ForceAPolicyOnSubscribersWithTheKey) {
    serve("services=pubsub fids=0-9:drop!");
    Subscription& subscription = ask({range(0, 9)}, SlowPolicy::block);
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 1; }));
    EXPECT_THAT(subscription.actor.subscribed, SizeIs(1));
    subscription.socket->pause();
    for (std::uint64_t number = 0; publisher->counters().dropped == 0; ++number) {
        ASSERT_LT(number, 1'000'000U);
        ASSERT_NE(publish(*publisher, Fid{1}, number, 60000), netio::Status::again)
            << "policy drop blocks no publication";
        ASSERT_TRUE(run_until([] { return true; }));
    }
}

// An unbuffered publisher does not support conflation, so drop is the next weaker policy.
TEST_P(Rights, GiveDropWhereTheNewestCannotBeKept) {
    files.permit(7, "services=pubsub fids=0-9:newest,10-19:newest!");
    keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    const auto unkept = unbuffered({.publisher = {.keys = keys}});
    for (const FidRange& fids : {range(0, 9), range(10, 19)}) {
        Subscription& unasked = ask({fids});
        Subscription& dropping = ask({fids}, SlowPolicy::drop);
        Subscription& explicit_newest = ask({fids}, SlowPolicy::newest);
        ASSERT_TRUE(run_until([&] {
            return answers(unasked) == 1 && answers(dropping) == 1 &&
                   !explicit_newest.actor.policy_refused.empty();
        }));
        EXPECT_THAT(unasked.actor.subscribed, ElementsAre(fids));
        EXPECT_THAT(dropping.actor.subscribed, ElementsAre(fids));
        EXPECT_THAT(explicit_newest.actor.policy_refused, ElementsAre(fids))
            << "it asked for a policy that does not exist here";
    }
}

TEST_P(Rights, ForceThatTheNewestIsKept) {
    serve("services=pubsub fids=0-9:newest!,10-19:newest");
    Subscription& subscription = ask({range(0, 9)}, SlowPolicy::block);
    Subscription& unasked = ask({range(10, 19)});
    Subscription& greedy = ask({range(10, 19)}, SlowPolicy::disconnect);
    ASSERT_TRUE(run_until([&] {
        return answers(subscription) == 1 && answers(unasked) == 1 && answers(greedy) == 1;
    }));
    EXPECT_THAT(greedy.actor.refused, SizeIs(1));
    subscription.socket->pause();
    std::uint64_t number = 0;
    for (; publisher->counters().dropped == 0; ++number) {
        ASSERT_LT(number, 1'000'000U);
        ASSERT_NE(publish(*publisher, Fid{1}, number, 60000), netio::Status::again)
            << "conflation blocks no publication";
        ASSERT_TRUE(run_until([] { return true; }));
    }
    publisher->flush();
    subscription.socket->resume();
    const std::vector<Arrived>& arrived = subscription.actor.by_fid[Fid{1}];
    ASSERT_TRUE(run_until([&] { return !arrived.empty() && arrived.back().number == number - 1; }));
    EXPECT_GT(subscription.actor.gaps[Fid{1}], 0U);
}

// The default policy of a key gives no more than the publisher's own policy.
TEST_P(Rights, GiveNoMoreThanThePublisherDoes) {
    serve("services=pubsub fids=0-9:block!,20-29:block", SlowPolicy::drop);
    Subscription& subscription = ask({range(0, 9), range(20, 29)});
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 2; }));
    EXPECT_THAT(subscription.actor.subscribed, SizeIs(2));
    Subscription& asking = ask({range(20, 29)}, SlowPolicy::block);
    ASSERT_TRUE(run_until([&] { return asking.actor.policy_refused.size() == 1; }));
}

TEST_P(Rights, PermitNothingWithoutFids) {
    serve("services=pubsub");
    Subscription& subscription = ask({range(0, UINT64_MAX)});
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 1; }));
    EXPECT_THAT(subscription.actor.refused, SizeIs(1));
}

TEST_P(Rights, ASubscriberWithoutTheKeyGivesUpWithAReason) {
    serve("services=pubsub fids=0-9");
    Subscription& stranger = subscribe({range(0, 9)});
    ASSERT_TRUE(run_until([&] { return !stranger.actor.closed.empty(); }));
    EXPECT_EQ(stranger.actor.closed[0].reason, CloseReason::rejected);
    EXPECT_FALSE(stranger.actor.last_retrying);
    EXPECT_THAT(stranger.actor.closed[0].detail, testing::HasSubstr("it asks for a key"));
}

// Requests that do not fit into one slot, the totals and their answer all carry tags.
TEST_P(Rights, WithTagsSubscribePublishAndEndInOrder) {
    serve("services=pubsub fids=0-1000000", SlowPolicy::block, Protection::peers);
    std::vector<FidRange> ranges;
    for (std::uint64_t i = 0; i < 600; ++i)
        ranges.push_back(range(3 * i, 3 * i));
    Subscription& subscription = ask(ranges, {}, Protection::peers);
    ASSERT_TRUE(run_until([&] { return answers(subscription) == ranges.size(); }));
    EXPECT_THAT(subscription.actor.refused, IsEmpty());
    subscription.socket->unsubscribe(range(0, 0));
    ASSERT_TRUE(run_until([&] { return subscription.actor.unsubscribed.size() == 1; }));
    for (const FidRange& each : std::span{ranges}.subspan(1))
        publish_one(each.first);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return !subscription.actor.closed.empty(); }));
    EXPECT_EQ(subscription.actor.closed[0].reason, CloseReason::orderly)
        << subscription.actor.closed[0].detail;
    EXPECT_EQ(subscription.actor.totals, 1);
    EXPECT_EQ(subscription.actor.lost, 0U);
    EXPECT_EQ(subscription.actor.messages, ranges.size() - 1);
}

// It retries, because its key may be restored.
TEST_P(Rights, ThatAreRevokedEndEachReconnectionWithThem) {
    serve("services=pubsub fids=0-9");
    Subscription& subscription = subscribe({range(0, 9)}, returning(files.client(7)));
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 1; }));
    files.revoke(7);
    ASSERT_TRUE(run_until([&] { return rejections(subscription) >= 3; }));
    EXPECT_TRUE(subscription.actor.last_retrying);
    files.permit(7, "services=pubsub fids=0-9");
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 2; }));
    publish_one(Fid{5});
    ASSERT_TRUE(run_until([&] { return subscription.actor.messages == 1; }));
}

// The operator started the publisher with the file of another site and then corrects this.
TEST_P(Rights, OfAPublisherThatHadTheWrongFileForAWhileEndNoSubscription) {
    serve("services=pubsub fids=0-9");
    Subscription& subscription = subscribe({range(0, 9)}, returning(files.client(7)));
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 1; }));
    publisher.reset();
    const netio::test::KeyFiles of_others;
    restart(of_others);
    ASSERT_TRUE(run_until([&] { return rejections(subscription) >= 2; }));
    EXPECT_TRUE(subscription.actor.last_retrying);
    publisher.reset();
    restart(files);
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 2; }));
    publish_one(Fid{5});
    ASSERT_TRUE(run_until([&] { return subscription.actor.messages == 1; }));
}

// The publisher stopped, and another process took its port before it returned.
TEST_P(Rights, AnotherServerAtThePublishersAddressEndsNoSubscription) {
    serve("services=pubsub fids=0-9");
    SubscribeSocket::Options options = returning(files.client(7));
    options.retry_limit = options.retry_interval; // so that it asks many times
    Subscription& subscription = subscribe({range(0, 9)}, options);
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 1; }));
    publisher.reset();
    using netio::test::Squatter;
    auto stranger =
        std::make_unique<Squatter>(transport(), address, netio::Service::publish_subscribe);
    const std::vector<netio::Closed>& closed = subscription.actor.closed;
    const auto has_ended_with = [&](CloseReason reason) {
        return std::ranges::count(closed, reason, &netio::Closed::reason) > 0;
    };
    ASSERT_TRUE(run_until([&] {
        return (!closed.empty() && !subscription.actor.last_retrying) ||
               (stranger->requests > Squatter::answers && has_ended_with(CloseReason::rejected) &&
                has_ended_with(CloseReason::not_admitted) &&
                has_ended_with(CloseReason::protocol_error));
    }));
    EXPECT_TRUE(subscription.actor.last_retrying) << closed.back().detail;
    stranger.reset();
    restart(files);
    ASSERT_TRUE(run_until([&] { return answers(subscription) == 2; }));
    publish_one(Fid{5});
    ASSERT_TRUE(run_until([&] { return subscription.actor.messages == 1; }));
}

TEST_P(Rights, ANeverAdmittedSubscriberGivesUpAlsoWithReconnect) {
    serve("services=pubsub fids=0-9");
    Subscription& subscription = subscribe({range(0, 9)}, returning(files.forged(7)));
    ASSERT_TRUE(run_until([&] { return !subscription.actor.closed.empty(); }));
    EXPECT_EQ(subscription.actor.closed[0].reason, CloseReason::rejected);
    EXPECT_FALSE(subscription.actor.last_retrying);
}

INSTANTIATE_TEST_SUITE_P(Beds, Rights, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::rights_test
