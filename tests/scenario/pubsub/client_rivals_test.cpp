// SPDX-License-Identifier: Apache-2.0

// Publishers that are silent, refuse, claim each other's fids or lose some, as seen by their
// subscriber.

#include "tests/scenario/pubsub/several_publishers.hpp"
#include "tests/scenario/pubsub/silent_port.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::pubsub::test::client_rivals_test {
namespace {

using netio::TimePoint;
using testing::ElementsAre;

// Receives ends and conflicts, and then does what the test wants.
class Listening final : public Subscriptions::Handler {
  public:
    void on_message(Subscriptions&, const Subscriptions::Source&, Fid, std::span<const std::byte>,
                    std::uint8_t) override {}
    void on_contest(Subscriptions&, const Subscriptions::Contest&) override {
        ++contests;
        if (at_contest) at_contest();
    }
    void on_closed(Subscriptions&, const Subscriptions::Source&,
                   const Subscriptions::Ending&) override {
        ++closed;
        if (at_closed) at_closed();
    }
    void on_ended(Subscriptions&) override { ++ended; }

    int contests = 0;
    int closed = 0;
    int ended = 0;
    std::function<void()> at_contest, at_closed;
};

class Rivals : public SeveralPublishers {
  protected:
    Subscriptions::Options on_bus() {
        Subscriptions::Options found = options({});
        found.bus = &bus;
        return found;
    }
    Subscriptions::Options with_key() {
        files.permit(7, "services=pubsub fids=0-79:block connections=16");
        keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
        Subscriptions::Options found = on_bus();
        found.socket.key = std::make_shared<ClientKey>(
            ClientKey::Options{.file = files.client(7), .protection = {}});
        return found;
    }
    void announce_mute(int count, std::size_t addresses = 1) {
        for (int i = 0; i < count; ++i) {
            Announcement mute{.name = "a.false.word." + std::to_string(i),
                              .fids = {{.fids = range(0, 63), .meaning = {}}}};
            for (std::size_t at = 0; at < addresses; ++at)
                mute.addresses.push_back("tcp:" + to_string(ports_.at(at)->address()));
            bus.tell().on_announced(mute);
        }
    }
    std::size_t requests() const { return ports_.front()->requests(); }
    // How often the address is in the reason of the last end.
    std::size_t told_of(const netio::Address& place) const {
        const std::string text = to_string(place);
        std::size_t count = 0;
        for (std::size_t at = 0; (at = actor.reason.find(text, at)) != std::string::npos; ++at)
            ++count;
        return count;
    }
    void SetUp() override {
        for (int i = 0; i < 4; ++i)
            ports_.push_back(std::make_unique<SilentPort>(transport(), bed.address()));
    }

    netio::test::KeyFiles files;

  private:
    std::vector<std::unique_ptr<SilentPort>> ports_;
};

INSTANTIATE_TEST_SUITE_P(Beds, Rivals, netio::test::simulated_beds(), bed_name);

TEST_P(Rivals, AreTriedEightAtATimeWhileOneHasTheFids) {
    Subscriptions all{transport(), with_key(), actor};
    all.subscribe(range(0, 9));
    announce_mute(20);
    bed.let_pass(1s);
    EXPECT_EQ(requests(), 9U);
    bed.let_pass(5s); // duration of an attempt
    EXPECT_GT(requests(), 16U) << "eight others are tried";
    EXPECT_LT(requests(), 20U);
}

TEST_P(Rivals, AreTriedOneAfterAnotherInTheAvailableSlots) {
    Subscriptions::Options few = with_key();
    few.publisher_limit = 2;
    Subscriptions all{transport(), few, actor};
    all.subscribe(range(0, 9));
    announce_mute(3);
    Made& real = publisher();
    announce("real", real, range(0, 63));
    bed.let_pass(1s);
    EXPECT_EQ(requests(), 2U) << "as many as there are slots";
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_THAT(actor.subscribed["real"], ElementsAre(range(0, 9)));
}

TEST_P(Rivals, AreNotTriedWhileTheOneThatHasTheFidsAnswers) {
    Subscriptions all{transport(), with_key(), actor};
    all.subscribe(range(0, 9));
    announce("real", publisher(), range(0, 63));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    announce_mute(3);
    bed.let_pass(20s);
    EXPECT_EQ(requests(), 0U);
}

TEST_P(Rivals, ReleaseTheirSlotsAsSoonAsItAnswers) {
    Subscriptions::Options few = with_key();
    few.publisher_limit = 2;
    Subscriptions all{transport(), few, actor};
    all.subscribe(range(0, 79));
    announce("real", publisher(), range(0, 63));
    announce_mute(1);
    ASSERT_TRUE(run_until([&] { return requests() == 1; }));
    ASSERT_TRUE(actor.connected.empty()) << "its attempt is pending, the rival has the other slot";
    announce("other", publisher(), range(64, 79));
    bed.let_pass(1s); // a fifth of an attempt's duration
    EXPECT_EQ(actor.subscriptions, 2);
    EXPECT_THAT(actor.subscribed["other"], ElementsAre(range(64, 79)));
}

TEST_P(Rivals, HaveLaterRequestedFidsForOneAttemptEach) {
    Subscriptions all{transport(), on_bus(), actor};
    announce_mute(1, 4);
    Made& real = publisher();
    announce("real", real, range(0, 63));
    bed.let_pass(20s);
    EXPECT_EQ(requests(), 0U) << "it wants none of their fids";
    const TimePoint begin = loop().now();
    all.subscribe(range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_LE(loop().now() - begin, 6s) << "its other addresses take three times as long";
    EXPECT_THAT(actor.subscribed["real"], ElementsAre(range(0, 9)));
}

TEST_P(Rivals, AreReportedOneByOneUntilTheHandlerDestroysTheSocket) {
    Listening listening;
    auto all = std::make_unique<Subscriptions>(transport(), on_bus(), listening);
    all->subscribe(range(0, 29));
    announce("one", publisher(), range(0, 9));
    announce("two", publisher(), range(10, 19));
    announce("both", publisher(), range(0, 19));
    EXPECT_EQ(listening.contests, 2);
    listening.at_contest = [&] { all.reset(); };
    announce("more", publisher(), range(0, 19));
    EXPECT_EQ(all, nullptr);
    EXPECT_EQ(listening.contests, 3);
}

TEST_P(Rivals, ThatRefuseForGoodEndNothingUnlessSomethingIsWanted) {
    with_key();
    Made& strict = publisher(); // admits only peers with a key
    Subscriptions all{transport(), options({strict.address}), actor};
    ASSERT_TRUE(run_until([&] { return actor.closed == 1; }));
    EXPECT_FALSE(actor.retrying);
    bed.let_pass(1s);
    EXPECT_EQ(actor.ended, 0);
    all.subscribe(range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.ended == 1; }));
    EXPECT_EQ(actor.closed, 2);
}

// Fids that are requested before the report may be granted.
TEST_P(Rivals, ThatAllRefuseAreAnEndUnlessItSubscribesBeforeTheReport) {
    with_key();
    Made& strict = publisher();
    Listening listening;
    std::optional<Subscriptions> all;
    netio::Timer next{loop(), [&] { all->subscribe(range(10, 19)); }};
    listening.at_closed = [&] {
        if (listening.closed == 1) next.start(netio::Duration::zero());
    };
    all.emplace(transport(), options({strict.address}), listening);
    all->subscribe(range(0, 9));
    ASSERT_TRUE(run_until([&] { return listening.ended > 0; }));
    EXPECT_EQ(listening.closed, 2);
    bed.let_pass(1s);
    EXPECT_EQ(listening.ended, 1);
}

TEST_P(Rivals, AreReachedAtTheirOwnAddressesOnceEach) {
    Made& one = publisher();
    Made& other = publisher();
    Made& elsewhere_of_all = publisher();
    one.socket.reset();
    other.socket.reset();
    Subscriptions::Options found = on_bus();
    found.socket.fallback_addresses = {elsewhere_of_all.address}; // which do not count
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    const auto announce_at = [this](const std::string& name, std::vector<std::string> addresses) {
        bus.tell().on_announced({.name = name,
                                 .instance = 1,
                                 .fids = {{.fids = range(0, 9), .meaning = {}}},
                                 .addresses = std::move(addresses)});
    };
    const std::string one_address = to_string(one.address);
    const std::string other_address = to_string(other.address);
    announce_at("one", {"tcp:" + one_address});
    ASSERT_TRUE(run_until([&] { return actor.closed == 1; }));
    const std::size_t once = told_of(one.address);
    ASSERT_GT(once, 0U);
    bus.tell().on_gone("one");
    const int before = actor.closed;
    announce_at("two", {"tcp:" + one_address, "verbs:" + one_address, "tcp:" + other_address});
    ASSERT_TRUE(run_until([&] { return actor.closed > before; }));
    EXPECT_EQ(told_of(one.address), once);
    EXPECT_EQ(told_of(other.address), once);
    EXPECT_EQ(elsewhere_of_all.actor.connected, 0);
}

TEST_P(Rivals, ThatDropMessagesAreShownWithTheirLosses) {
    constexpr std::uint64_t count = 200;
    PublisherActor at_one;
    BufferedPublishSocket one{transport(),
                              {.publisher = {.listen = {bed.address()},
                                             .allow_remote_anonymous = true,
                                             .slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 1024,
                               .page_count = 8},
                              at_one};
    Subscriptions::Options at_address = options({one.endpoints().front().address});
    at_address.socket.session.receive_count = 4;
    Subscriptions all{transport(), at_address, actor};
    all.subscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    all.pause();
    for (std::uint64_t number = 0; number < count; ++number)
        ASSERT_EQ(publish(one, Fid{1}, number, 900), Status::ok);
    one.flush();
    all.resume();
    const auto row = [&] {
        const Subscriptions::PublisherStats stats = all.publisher_stats().front();
        const Account::Row* const found = stats.fids.find(Fid{1});
        return found == nullptr ? Account::Row{} : *found;
    };
    ASSERT_TRUE(run_until([&] { return row().messages + row().lost == count; }));
    ASSERT_GT(row().lost, 0U);
    for (const bool is_there : {true, false}) {
        SCOPED_TRACE(is_there);
        const SubscriptionsSnapshot shown = all.snapshot();
        EXPECT_EQ(shown.publishers.at(0).connected, is_there);
        EXPECT_EQ(shown.publishers.at(0).lost, row().lost);
        EXPECT_EQ(shown.publishers.at(0).messages, row().messages);
        EXPECT_EQ(shown.publishers.at(0).bytes, row().bytes);
        EXPECT_EQ(shown.fids.at(0).lost, row().lost);
        EXPECT_EQ(all.sums().bytes, row().bytes);
        if (!is_there) break;
        one.close();
        ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
    }
}

} // namespace
} // namespace netio::pubsub::test::client_rivals_test
