// SPDX-License-Identifier: Apache-2.0

// Reports to a client about publishers that do not admit it, or refuse a part of its fids.

#include "netio/session/client_key.hpp"
#include "tests/scenario/pubsub/announced_publisher.hpp"
#include "tests/scenario/pubsub/clients.hpp"
#include "tests/support/key_files.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::test::client_refused_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Refusal = Subscriptions::Refusal;

// Collects a client's reports for the test's thread.
class Told {
  public:
    void take(const std::string& event) {
        const std::lock_guard lock{mutex_};
        events_.push_back(event);
    }
    void take(const FidRange& fids, Refusal refusal) {
        const std::lock_guard lock{mutex_};
        refused_.emplace_back(fids, refusal);
    }
    std::vector<std::string> events() const {
        const std::lock_guard lock{mutex_};
        return events_;
    }
    std::vector<std::pair<FidRange, Refusal>> refused() const {
        const std::lock_guard lock{mutex_};
        return refused_;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<std::string> events_;
    std::vector<std::pair<FidRange, Refusal>> refused_;
};

class RefusedClient : public testing::Test {
  protected:
    Client::Options telling(Client::Options options) {
        options.on_event = [this](const std::string& event) { told.take(event); };
        return options;
    }
    Client::Options with_key(AnnouncedPublisher& publisher) {
        Client::Options options;
        options.publishers = {publisher.address()};
        options.socket.retry_interval = 1ms;
        options.socket.key = std::make_shared<ClientKey>(
            ClientKey::Options{.file = files.client(7), .protection = {}});
        return telling(std::move(options));
    }
    Client::Events events() {
        Client::Events events;
        events.on_refused = [this](const Subscriptions::Source&, const FidRange& fids,
                                   Refusal refusal) { told.take(fids, refusal); };
        return events;
    }

    netio::test::KeyFiles files;
    Told told;
};

TEST_F(RefusedClient, IsNotifiedOfEachRejectionOfItsKeyUntilItIsAdmitted) {
    files.permit(7, "services=pubsub fids=0-63:block");
    files.revoke(7);
    AnnouncedPublisher publisher{{.bus = {}, .key_file = files.site()}, "one", range(0, 9)};
    Client client{with_key(publisher)};
    for (int i = 0; i < 3; ++i) {
        std::future<Answer> answer = client.subscribe({range(1, 3)});
        ASSERT_EQ(answer.wait_for(deadline), std::future_status::ready);
        EXPECT_EQ(answer.get(), Answer::refused);
    }
    EXPECT_THAT(told.events(), Contains(HasSubstr("does not admit")));
    EXPECT_THAT(told.events(), Contains(HasSubstr("all configured publishers reject this client")));
    files.permit(7, "services=pubsub fids=0-63:block");
    Answer answer = Answer::refused;
    while (answer == Answer::refused) // until the publisher has noticed it
        answer = client.subscribe({range(4, 4)}, {}, deadline);
    EXPECT_EQ(answer, Answer::accepted);
    EXPECT_EQ(client.subscribe({range(1, 3)}, {}, deadline), Answer::accepted);
    client.close();
}

TEST_F(RefusedClient, IsNotifiedOfTheFidsThatNarrowedRightsRemove) {
    files.permit(7, "services=pubsub fids=0-9:block");
    AnnouncedPublisher publisher{{.bus = {}, .key_file = files.site()}, "one", range(0, 9)};
    Client client{with_key(publisher), events()};
    ASSERT_EQ(client.subscribe({range(1, 1), range(8, 8)}, {}, deadline), Answer::accepted);
    files.permit(7, "services=pubsub fids=0-5:block");
    wait_until([&] { return client.counters().refused == 1; });
    EXPECT_EQ(client.subscribe({range(9, 9)}, {}, deadline), Answer::not_permitted);
    EXPECT_THAT(told.refused(), ElementsAre(std::pair{range(8, 8), Refusal::not_permitted},
                                            std::pair{range(9, 9), Refusal::not_permitted}));
    EXPECT_THAT(told.events(), Contains(HasSubstr("refuses 0x8: the key does not permit")));
}

TEST_F(RefusedClient, GetsTheReasonWithTheAnswerAndAfterALostConnection) {
    Client::Options narrow = publishing();
    narrow.publish->publisher.slow_policy = SlowPolicy::drop;
    auto publisher = std::make_unique<Client>(narrow);
    const Address address = publisher->endpoints().front().address;
    Client client{telling(subscribing(*publisher)), events()};
    EXPECT_EQ(client.subscribe({range(0, 0)}, SlowPolicy::block, deadline), Answer::policy);
    ASSERT_EQ(client.subscribe({range(1, 1), range(5, 5)}, {}, deadline), Answer::accepted);
    publisher.reset();
    narrow.publish->publisher.listen = {address};
    narrow.publish->publisher.ranges_per_subscriber_limit = 1;
    publisher = std::make_unique<Client>(narrow);
    wait_until([&] { return told.refused().size() >= 2; }); // it follows the counter
    EXPECT_EQ(told.refused().at(0), (std::pair{range(0, 0), Refusal::policy}));
    EXPECT_EQ(told.refused().at(1).second, Refusal::no_room);
    EXPECT_EQ(client.subscribe({range(7, 7), range(9, 9)}, {}, deadline), Answer::no_room);
    ASSERT_EQ(client.subscribe({range(7, 7)}, {}, deadline), Answer::accepted);
    EXPECT_EQ(client.counters().restarts, 1U);
    EXPECT_EQ(client.counters().unknown_tails, 1U);
    EXPECT_THAT(told.events(), Contains(HasSubstr("no more ranges")));
}

} // namespace
} // namespace netio::pubsub::test::client_refused_test
