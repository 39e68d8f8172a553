// SPDX-License-Identifier: Apache-2.0

// A subscriber that finds its publishers in a registry: its counters must stay exact whatever
// happens to the publishers, the connections and the registry.

#include "pubsub/client/subscriptions.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/sim_discovery.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

namespace netio::pubsub::test::finding_test {
namespace {

using namespace std::chrono_literals;
using netio::Duration;
using netio::Status;
using netio::test::SimDiscovery;
using netio::test::simulated_beds;

// Three publishers of two fids each. They are killed, restarted, also under another name at the
// same address, and closed; connections break and are refused; leases expire, the registry is
// unreachable, and an absent publisher is announced with their fids. A message is identified by its
// publisher's life and its number. For each fid exactly the next message arrives, or a loss is
// reported to the subscriber.
class Findings final : private Subscriptions::Handler {
  public:
    Findings(TestBed& bed, std::uint64_t seed)
        : bed_{bed}, random_{seed},
          new_names_{seed % 2 == 0}, bus_{bed.loop()}, all_{bed.transport(), options(), *this} {
        all_.subscribe(range(0, 2 * count - 1));
        for (std::size_t i = 0; i < count; ++i) {
            Place& place = places_[i];
            place.actor.at_subscribe = [&place] {
                place.accepted_life = place.life;
                place.accepted = place.published;
            };
            start(i);
            announce(i);
        }
    }

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i)
            step();
        bed_.sim()->refuse_endpoints(false);
        bus_.heal();
        bus_.expire("liar");
        for (const std::string& name : left_)
            bus_.expire(name);
        for (std::size_t i = 0; i < count; ++i)
            announce(i);
        for (Place& place : places_) {
            ASSERT_TRUE(bed_.run_until([&] { return place.known && place.served == place.life; }));
            // A subscriber that gets this message is connected.
            for (int left = 10000; publish(place, 0, 8) != Status::ok; --left) {
                ASSERT_GT(left, 0) << place.name << " has no subscriber";
                pass_time(10ms);
            }
            place.socket->flush();
            ASSERT_TRUE(bed_.run_until(
                [&] { return place.served == place.life && place.next == place.published; }));
        }
        std::uint64_t unknown_tails = 0;
        for (const Subscriptions::PublisherStats& stats : all_.publisher_stats())
            unknown_tails += stats.unknown_tails;
        EXPECT_LE(unknown_changes_, unknown_tails) << "no message is lost without a report";
        if (!new_names_) {
            EXPECT_EQ(unknown_changes_, unknown_tails);
        }
    }

    std::uint64_t changes = 0;
    std::uint64_t losses = 0;
    std::uint64_t messages = 0;
    std::uint64_t contests = 0;
    std::uint64_t renamed = 0;  // reported with the new name on the existing connection
    std::uint64_t replaced = 0; // on another connection, with unknown tail of the former one

  private:
    static constexpr std::size_t count = 3;
    using Numbers = std::array<std::uint64_t, 2>;

    struct Place {
        PublisherActor actor;
        std::unique_ptr<BufferedPublishSocket> socket;
        netio::Address address;
        std::string name;
        std::uint64_t life = 0;
        Numbers published{};
        std::uint64_t accepted_life = 0; // at its latest subscription
        Numbers accepted{};
        std::map<std::uint64_t, Numbers> ended; // messages published in each life
        // State known by the subscriber.
        bool known = false;
        std::uint64_t served = 0;
        std::string by;                  // the publisher name of its latest subscription
        std::set<std::uint64_t> unknown; // lives with an unknown tail
        Numbers next{};
    };

    Subscriptions::Options options() {
        Subscriptions::Options options;
        options.bus = &bus_;
        options.socket.retry_interval = 1ms;
        options.socket.retry_limit = 8ms;
        options.socket.session.receive_count = 4;
        return options;
    }
    Place& place_of(const Subscriptions::Source& source) {
        return places_.at(static_cast<std::size_t>(source.name.back() - '0'));
    }

    void start(std::size_t i) {
        Place& place = places_.at(i);
        place.socket.reset();
        place.ended[place.life] = place.published;
        place.life = ++last_life_;
        if (place.name.empty() || (new_names_ && random_() % 2 == 0)) {
            if (!place.name.empty()) left_.push_back(place.name);
            place.name = "life" + std::to_string(place.life) + "of" + std::to_string(i);
        }
        place.published = {};
        place.actor.ended = 0;
        place.socket = std::make_unique<BufferedPublishSocket>(
            bed_.transport(),
            BufferedPublishSocket::Options{
                .publisher = {.listen = {place.address.port != 0 ? place.address : bed_.address()},
                              .allow_remote_anonymous = true},
                .page_size_bytes = 1024,
                .page_count = 16},
            place.actor);
        place.address = place.socket->endpoints().front().address;
    }
    void announce(std::size_t i) {
        Announcement announcement{.name = places_.at(i).name,
                                  .instance = places_.at(i).life,
                                  .fids = {{.fids = range(2 * i, 2 * i + 1), .meaning = {}}}};
        announcement.addresses = {"tcp:" + to_string(places_.at(i).address)};
        bus_.announce(announcement);
    }
    Status publish(Place& place, std::size_t which, std::size_t size) {
        const auto at = static_cast<std::size_t>(&place - places_.data());
        const Fid fid{2 * at + which};
        const Status status = place.socket->publish(
            fid, make_message(fid, place.life << 32 | place.published.at(which), size));
        if (status == Status::ok || status == Status::no_subscribers) ++place.published.at(which);
        return status;
    }
    void pass_time(Duration time) {
        const netio::TimePoint begin = bed_.loop().now();
        netio::Timer wake{bed_.loop(), [] {}};
        wake.start(time);
        ASSERT_TRUE(bed_.run_until([&] { return bed_.loop().now() - begin >= time; }));
    }
    void step() {
        const std::size_t i = random_() % count;
        switch (random_() % 24) {
        case 0:
            return bed_.sim()->sever(bed_.sim()->next_connection() - 1 - random_() % 6);
        case 1:
            if (random_() % 3 == 0) start(i);
            if (random_() % 2 == 0) announce(i);
            return;
        case 2:
            if (random_() % 4 != 0) return;
            places_.at(i).socket->close();
            ASSERT_TRUE(bed_.run_until([&] { return places_.at(i).actor.ended > 0; }));
            return start(i);
        case 3:
            return bed_.sim()->refuse_endpoints(random_() % 2 == 0);
        case 4:
            if (!left_.empty() && random_() % 2 == 0) {
                bus_.expire(left_.front());
                left_.erase(left_.begin());
                return;
            }
            return random_() % 3 == 0 ? bus_.expire(places_.at(i).name) : announce(i);
        case 5:
            return random_() % 2 == 0 ? bus_.partition() : bus_.heal();
        case 6:
            return lie();
        case 7:
        case 8:
        case 9:
            return pass_time(std::chrono::microseconds{random_() % 5000});
        default:
            for (std::uint64_t left = random_() % 20; left > 0; --left) {
                // `again`: the others do not wait for it here.
                if (publish(places_.at(i), random_() % 2, 8 + random_() % 200) == Status::again)
                    return pass_time(1ms);
            }
        }
    }
    void lie() {
        if (random_() % 2 == 0) return bus_.expire("liar");
        bus_.announce({.name = "liar",
                       .instance = 1,
                       .fids = {{.fids = range(0, 99), .meaning = {}}},
                       .addresses = {"tcp:10.9.9.9:9", "tcp:10.9.9.8:9"}});
    }

    void on_subscribed(Subscriptions&, const Subscriptions::Source& source,
                       const FidRange&) override {
        Place& place = place_of(source);
        // Without a loss in one life, or without one in the former life.
        const Numbers& until =
            place.served == place.accepted_life ? place.accepted : place.ended.at(place.served);
        if (place.known && place.next != until) {
            place.unknown.insert(place.served);
            EXPECT_LE(place.unknown.size(), unknown_tails(place))
                << "no message is lost without a report";
            ++replaced;
        }
        if (place.known && place.by != source.name && place.next == until) ++renamed;
        place.known = true;
        place.by = source.name;
        place.served = place.accepted_life;
        place.next = place.accepted;
    }
    // Over all connections to it, whatever its names were.
    std::uint64_t unknown_tails(const Place& place) const {
        std::uint64_t sum = 0;
        for (const Subscriptions::PublisherStats& stats : all_.publisher_stats())
            if (stats.source.name.back() == place.name.back()) sum += stats.unknown_tails;
        return sum;
    }
    void on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                    std::span<const std::byte> message, std::uint8_t) override {
        std::uint64_t number = 0;
        std::memcpy(&number, message.data(), 8);
        Place& place = places_.at(to_integer(fid) / 2);
        EXPECT_EQ(number >> 32, place.served);
        EXPECT_EQ(number & UINT32_MAX, place.next.at(to_integer(fid) % 2)++);
        ++messages;
    }
    void on_gap(Subscriptions&, const Subscriptions::Source&, Fid, std::uint64_t) override {
        ADD_FAILURE() << "the publisher blocks";
    }
    void on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source&, Fid fid,
                                    std::uint64_t missing) override {
        places_.at(to_integer(fid) / 2).next.at(to_integer(fid) % 2) += missing;
        ++losses;
    }
    void on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                              const PublisherChange& change) override {
        Place& place = place_of(source);
        ++changes;
        if (!change.tail_known) {
            ++unknown_changes_;
            if (place.known && place.served != place.life) place.unknown.insert(place.served);
        }
        if (place.known && place.served == place.life) return; // on another connection
        if (place.known && change.tail_known) {
            EXPECT_EQ(place.next, place.ended.at(place.served));
        }
        place.known = false;
    }
    void on_contest(Subscriptions&, const Subscriptions::Contest&) override { ++contests; }

    TestBed& bed_;
    std::mt19937_64 random_;
    bool new_names_;
    std::vector<std::string> left_; // registry names until their leases expire
    SimDiscovery bus_;
    std::array<Place, count> places_;
    std::uint64_t last_life_ = 0;
    std::uint64_t unknown_changes_ = 0;
    Subscriptions all_;
};

using FoundOnABus = PubSubScenario;

INSTANTIATE_TEST_SUITE_P(Beds, FoundOnABus, simulated_beds(), bed_name);

TEST_P(FoundOnABus, UnderAllFaultsEachMessageArrivesOrIsReportedLost) {
    Findings sums{bed, 0};
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        TestBed own{GetParam(), seed};
        Findings findings{own, seed};
        findings.run(300);
        if (HasFailure()) return;
        sums.changes += findings.changes;
        sums.losses += findings.losses;
        sums.messages += findings.messages;
        sums.contests += findings.contests;
        sums.renamed += findings.renamed;
        sums.replaced += findings.replaced;
    }
    EXPECT_GT(sums.messages, 10000U);
    EXPECT_GT(sums.changes, 20U);
    EXPECT_GT(sums.losses, 60U);
    EXPECT_GT(sums.contests, 10U);
    EXPECT_GT(sums.renamed, 5U);
    EXPECT_GT(sums.replaced, 5U);
}

} // namespace
} // namespace netio::pubsub::test::finding_test
