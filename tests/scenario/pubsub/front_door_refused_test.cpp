// SPDX-License-Identifier: Apache-2.0

// What a subscriber learns of publishers that do not admit it, or refuse a part of its fids.

#include "netio/session/client_key.hpp"
#include "tests/scenario/pubsub/announced_publisher.hpp"
#include "tests/scenario/pubsub/front_door.hpp"
#include "tests/support/key_files.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netio::front_door_refused_test {
namespace {

using namespace front_door_test;
using pubsub::test::AnnouncedPublisher;
using testing::ElementsAre;
using testing::HasSubstr;
using Refusal = Subscriber::Refusal;

class RefusedSubscriber : public FrontDoor {
  protected:
    Subscriber::Options with_key() {
        Subscriber::Options options = quick();
        options.key = std::make_shared<ClientKey>(
            ClientKey::Options{.file = files.client(7), .protection = {}});
        return options;
    }
    Subscriber::Options collecting(Subscriber::Options options) {
        options.on_refused = [this](const Subscriber::Source&, const FidRange& fids,
                                    Refusal refusal) {
            const std::lock_guard lock{mutex};
            refused_.emplace_back(fids, refusal);
        };
        return options;
    }
    std::vector<std::pair<FidRange, Refusal>> refused() const {
        const std::lock_guard lock{mutex};
        return refused_;
    }

    netio::test::KeyFiles files;
    mutable std::mutex mutex;
    std::vector<std::pair<FidRange, Refusal>> refused_;
};

TEST_F(RefusedSubscriber, EndsWithEachRejectionOfItsKeyUntilItIsAdmitted) {
    files.permit(7, "services=pubsub fids=0-63:block");
    files.revoke(7);
    AnnouncedPublisher publisher{{.bus = {}, .key_file = files.site()}, "one", {0, 9}};
    for (int i = 0; i < 3; ++i) {
        Subscriber subscriber{publisher.address(), with_key()};
        subscriber.subscribe({1, 3});
        EXPECT_FALSE(subscriber.wait_until_subscribed(deadline)) << "it does not wait so long";
        try {
            subscriber.receive(deadline);
            ADD_FAILURE() << "it was admitted";
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("does not admit"));
        }
    }
    files.permit(7, "services=pubsub fids=0-63:block");
    for (bool is_admitted = false; !is_admitted;) { // until the publisher has noticed it
        Subscriber subscriber{publisher.address(), with_key()};
        subscriber.subscribe(4);
        is_admitted = subscriber.wait_until_subscribed(deadline);
    }
}

TEST_F(RefusedSubscriber, IsNotifiedOfTheFidsThatNarrowedRightsRemove) {
    files.permit(7, "services=pubsub fids=0-9:block");
    AnnouncedPublisher publisher{{.bus = {}, .key_file = files.site()}, "one", {0, 9}};
    Subscriber subscriber{publisher.address(), collecting(with_key())};
    subscribe(subscriber, FidSet{{1, 1}, {8, 8}});
    files.permit(7, "services=pubsub fids=0-5:block");
    wait_until([&] { return refused().size() == 1; });
    subscriber.subscribe(9);
    EXPECT_FALSE(subscriber.wait_until_subscribed(FidSet{{9, 9}}, deadline));
    EXPECT_THAT(refused(), ElementsAre(std::pair{FidRange{8, 8}, Refusal::not_permitted},
                                       std::pair{FidRange{9, 9}, Refusal::not_permitted}));
    EXPECT_EQ(lines.count("refuses the subscription to fids 0x8: the key does not permit"), 1U);
}

TEST_F(RefusedSubscriber, GetsTheReasonAlsoAfterALostConnection) {
    Publisher::Options narrow{.slow_policy = SlowPolicy::drop};
    std::optional<Publisher> publisher;
    publisher.emplace(any_port, narrow);
    const Address address = publisher->address();
    Subscriber::Options options = collecting(quick());
    options.reconnect = Reconnect::always;
    Subscriber subscriber{address, options};
    subscriber.subscribe(Fid{0}, SlowPolicy::block);
    EXPECT_FALSE(subscriber.wait_until_subscribed(FidSet{{0, 0}}, deadline));
    subscribe(subscriber, FidSet{{1, 1}, {5, 5}});
    narrow.socket.publisher.ranges_per_subscriber_limit = 1;
    publisher.emplace(address, narrow);
    wait_until([&] { return refused().size() >= 2; });
    EXPECT_EQ(refused().at(0), (std::pair{FidRange{0, 0}, Refusal::policy}));
    EXPECT_EQ(refused().at(1).second, Refusal::too_many_ranges);
    subscriber.subscribe(FidSet{{7, 7}, {9, 9}});
    EXPECT_FALSE(subscriber.wait_until_subscribed(FidSet{{7, 9}}, deadline));
    EXPECT_GE(lines.count("no more ranges"), 2U);
    // A publisher is known to be another one when it has accepted a subscription.
    subscribe(subscriber, FidSet{{1, 1}});
    EXPECT_EQ(subscriber.stats().restarts, 1U);
}

} // namespace
} // namespace netio::front_door_refused_test
