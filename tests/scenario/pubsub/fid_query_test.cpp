// SPDX-License-Identifier: Apache-2.0

// A publisher reports which fids it publishes, and a subscriber that receives nothing learns the
// reason.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/subscriber/fid_query.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/key_files.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::fid_query_test {
namespace {

using namespace std::chrono_literals;
using netio::Status;
using netio::test::simulated_beds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class FidQueries : public PubSubScenario {
  protected:
    FidQuery::Result ask(FidQuery::Options options = {}) {
        options.publisher = address;
        std::optional<FidQuery::Result> result;
        const FidQuery query{transport(), std::move(options),
                             [&](const FidQuery::Result& found) { result = found; }};
        EXPECT_TRUE(run_until([&] { return result.has_value(); }));
        return result.value_or(FidQuery::Result{});
    }
    void publish_all(BufferedPublishSocket& publisher, const std::vector<std::uint64_t>& fids) {
        for (const std::uint64_t fid : fids)
            static_cast<void>(publish(publisher, Fid{fid}, 0, 40));
    }
    void pass(netio::Duration time) {
        const netio::TimePoint begin = loop().now();
        netio::Timer wake{loop(), [] {}};
        wake.start(time);
        ASSERT_TRUE(run_until([&] { return loop().now() - begin >= time; }));
    }
};
using Silence = FidQueries; // in virtual time

INSTANTIATE_TEST_SUITE_P(Beds, FidQueries, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, Silence, simulated_beds(), bed_name);

TEST_P(FidQueries, GetTheWholeListInPagesOfAnyPublisher) {
    auto publisher = buffered({});
    EXPECT_THAT(ask().fids, IsEmpty());
    std::vector<std::uint64_t> fids;
    std::vector<FidRange> expected;
    for (std::uint64_t i = 0; i < 1000; ++i) { // four pages
        fids.insert(fids.end(), {4 * i, 4 * i + 1});
        expected.push_back(range(4 * i, 4 * i + 1));
    }
    publish_all(*publisher, fids);
    const FidQuery::Result all = ask();
    EXPECT_EQ(all.failure, "");
    EXPECT_EQ(all.fids, expected);
    EXPECT_TRUE(all.is_complete);
    EXPECT_NE(all.provider, "");
    const FidQuery::Result some = ask({.range_limit = 300});
    EXPECT_THAT(some.fids, SizeIs(300));
    EXPECT_FALSE(some.is_complete);
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 3; }));
    for (const netio::Closed& closed : publisher_actor.closed)
        EXPECT_EQ(closed.reason, netio::CloseReason::orderly) << closed.detail;

    auto unbuffered_one = unbuffered({});
    netio::RegisteredBuffer memory{64};
    ASSERT_EQ(unbuffered_one->publish(Fid{7}, memory.slice(), netio::Cookie{1}),
              Status::no_subscribers);
    EXPECT_THAT(ask().fids, ElementsAre(range(7, 7)));
}

TEST_P(FidQueries, NameTheNearestFids) {
    auto publisher = buffered({.page_size_bytes = 1 << 20, .page_count = 8}); // larger frames
    publish_all(*publisher, {3, 4, 9, 20});
    const FidQuery::Result result = ask({.near = {range(5, 5), range(8, 12), range(0, 2)}});
    ASSERT_THAT(result.near, SizeIs(3)) << result.failure;
    EXPECT_FALSE(result.near[0].is_published);
    EXPECT_EQ(to_string(result.near[0]), "nothing is published under 0x5 so far; the nearest "
                                         "published fids are 0x3-0x4, 0x9 and 0x14");
    EXPECT_TRUE(result.near[1].is_published);
    EXPECT_FALSE(result.near[2].is_published);
    EXPECT_EQ(result.near[2].nearest.front(), range(3, 4));
}

TEST_P(FidQueries, ShowOnlyWhatTheKeyPermits) {
    netio::test::KeyFiles files;
    files.permit(7, "services=pubsub fids=4-8,30");
    const auto keys =
        std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    auto publisher = buffered({.publisher = {.keys = keys}});
    publish_all(*publisher, {3, 4, 9, 20, 31});
    const auto key = std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7)});
    EXPECT_THAT(ask({.key = key}).fids, ElementsAre(range(4, 4)));
    const FidQuery::Result near = ask({.key = key, .near = {range(30, 30)}});
    ASSERT_THAT(near.near, SizeIs(1)) << near.failure;
    EXPECT_THAT(near.near[0].nearest, ElementsAre(range(4, 4)));
    EXPECT_NE(ask().failure, "") << "without a key";
}

TEST_P(FidQueries, SayWhyThereIsNoAnswer) {
    buffered({}).reset(); // it was there before
    EXPECT_THAT(ask().failure, HasSubstr(to_string(address)));
}

TEST_P(Silence, IsExplainedOnceAndOnlyForUnpublishedFids) {
    auto publisher = buffered({});
    publish_all(*publisher, {1, 2, 9});
    auto& subscriber = subscribe({range(2, 2), range(5, 5), range(9, 9)}, {.silence_hint = 5000ms});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 3; }));
    ASSERT_EQ(publish(*publisher, Fid{2}, 1, 40), Status::ok);
    publisher->flush();
    pass(4s);
    EXPECT_THAT(subscriber.actor.nothing_published, IsEmpty());
    pass(10s);
    EXPECT_THAT(subscriber.actor.nothing_published,
                ElementsAre("nothing is published under 0x5 so far; the nearest published fids "
                            "are 0x1-0x2 and 0x9"))
        << "a message of fid 2 has arrived, and fid 9 is published occasionally";
    EXPECT_TRUE(subscriber.socket->is_connected());
    for (int i = 0; i < 4; ++i)
        pass(50s);
    EXPECT_THAT(subscriber.actor.nothing_published, SizeIs(1));
    // The next accepted subscription is a new one.
    subscriber.socket->subscribe(range(6, 6));
    pass(10s);
    ASSERT_THAT(subscriber.actor.nothing_published, SizeIs(2));
    EXPECT_THAT(subscriber.actor.nothing_published[1], HasSubstr("under 0x5-0x6 so far"));
}

TEST_P(Silence, IsNotExplainedByAPublisherThatIsGone) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(5, 5)}, {.reconnect = true, .silence_hint = 5000ms});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    publisher.reset();
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    pass(30s);
    EXPECT_THAT(subscriber.actor.nothing_published, IsEmpty());
}

TEST_P(Silence, MayEndTheSocketInItsHandler) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(5, 5), range(7, 7)}, {.silence_hint = 5000ms});
    subscriber.actor.at_nothing_published = [&](SubscribeSocket&) { subscriber.socket.reset(); };
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.nothing_published.empty(); }));
    pass(10s);
    EXPECT_THAT(subscriber.actor.nothing_published, SizeIs(1));
}

} // namespace
} // namespace netio::pubsub::test::fid_query_test
