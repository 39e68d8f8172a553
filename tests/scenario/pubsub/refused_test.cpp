// SPDX-License-Identifier: Apache-2.0

// Publishers that refuse permanently, and later admit the subscriber.

#include "tests/scenario/pubsub/several_publishers.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::refused_test {
namespace {

using testing::ElementsAre;

constexpr FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

class Refused : public SeveralPublishers {
  protected:
    Refused() {
        files.permit(7, rights);
        files.revoke(7);
        keys = keys_of(files);
    }
    std::shared_ptr<ServerKeys> keys_of(const netio::test::KeyFiles& site) {
        return std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = site.site()});
    }
    Subscriptions::Options with_key(std::vector<netio::Address> publishers) {
        Subscriptions::Options made = options(std::move(publishers));
        made.socket.retry_limit = 100ms;
        made.socket.key = std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7)});
        return made;
    }

    static constexpr const char* rights = "services=pubsub fids=0-63:block";
    netio::test::KeyFiles files;
};

INSTANTIATE_TEST_SUITE_P(Beds, Refused, all_beds(), bed_name);

TEST_P(Refused, APublisherInARegistryIsRetriedAfterALongPause) {
    Subscriptions::Options found = with_key({});
    found.bus = &bus;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 5));
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.closed == 1; }));
    EXPECT_FALSE(actor.retrying);
    const netio::TimePoint first = loop().now();
    ASSERT_TRUE(run_until([&] { return actor.closed == 2; }));
    EXPECT_GE(loop().now() - first, 1s) << "ten times retry_limit";
    files.permit(7, rights);
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_THAT(actor.subscribed["one"], ElementsAre(range(0, 5)));
    EXPECT_EQ(actor.ended, 0);
}

TEST_P(Refused, ALateAdmissionRequestsOnlyFidsWithoutAPublisher) {
    Subscriptions::Options found = with_key({});
    found.bus = &bus;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.closed == 1; }));
    files.permit(7, rights);
    keys = keys_of(files); // it has read the file; the first server reads it later
    Made& other = publisher();
    announce("other", other, range(0, 3));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_THAT(actor.subscribed["other"], ElementsAre(range(0, 3)));
    EXPECT_THAT(actor.subscribed["one"], ElementsAre(range(4, 9)));
}

// This event is the only notification for a user that waits for an answer.
TEST_P(Refused, ByAllGivenPublishersReportsTheEndAndRetriesOnSubscribe) {
    Made& one = publisher();
    Subscriptions all{transport(), with_key({one.address}), actor};
    all.subscribe(range(0, 5));
    ASSERT_TRUE(run_until([&] { return actor.ended == 1; }));
    all.subscribe(range(6, 6));
    ASSERT_TRUE(run_until([&] { return actor.ended == 2; }));
    files.permit(7, rights);
    while (actor.subscriptions == 0) {
        const int before = actor.ended;
        all.subscribe(range(7, 7));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions > 0 || actor.ended > before; }));
    }
    all.close();
    ASSERT_TRUE(run_until([&] { return all.connected_count() == 0; }));
}

} // namespace
} // namespace netio::pubsub::test::refused_test
