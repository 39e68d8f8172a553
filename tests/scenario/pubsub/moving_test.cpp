// SPDX-License-Identifier: Apache-2.0

// A fid that moves from one publisher to another, both running, while its subscriber is slow.

#include "tests/scenario/pubsub/several_publishers.hpp"

namespace netio::pubsub::test::moving_test {
namespace {

constexpr Fid moving{3};
constexpr std::uint64_t there = 1000; // first number at the second publisher

// Records the message numbers in order; each publisher uses the numbers from its base on.
class Follower final : public Subscriptions::Handler {
  public:
    void on_subscribed(Subscriptions&, const Subscriptions::Source& source,
                       const FidRange&) override {
        subscribed.push_back(source.name);
    }
    void on_message(Subscriptions&, const Subscriptions::Source& source, Fid,
                    std::span<const std::byte> message, std::uint8_t) override {
        std::uint64_t number = 0;
        std::memcpy(&number, message.data(), sizeof number);
        numbers.push_back(number);
        EXPECT_EQ(source.name, number < there ? "one" : "other");
    }
    void on_gap(Subscriptions&, const Subscriptions::Source& source, Fid,
                std::uint64_t count) override {
        dropped += count;
        EXPECT_EQ(source.name, "one");
        gaps_behind = numbers.size();
    }
    void on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source&, Fid,
                                    std::uint64_t) override {
        ADD_FAILURE() << "its publisher was running";
    }

    std::vector<std::string> subscribed;
    std::vector<std::uint64_t> numbers;
    std::uint64_t dropped = 0;
    std::size_t gaps_behind = 0;
};

class MovingFids : public SeveralPublishers {
  protected:
    std::unique_ptr<BufferedPublishSocket> small(PublisherActor& its) {
        return std::make_unique<BufferedPublishSocket>(
            transport(),
            BufferedPublishSocket::Options{
                .publisher = {.listen = {bed.address()}, .allow_remote_anonymous = true},
                .page_size_bytes = 1024,
                .page_count = 8},
            its);
    }
    void announce_at(const std::string& name, const BufferedPublishSocket& socket,
                     const std::vector<FidRange>& fids) {
        Announcement announcement{.name = name, .instance = 1};
        for (const FidRange& each : fids)
            announcement.fids.push_back({.fids = each, .meaning = {}});
        announcement.addresses = {"tcp:" + to_string(socket.endpoints().front().address)};
        bus.tell().on_announced(announcement);
    }
    void move_while_paused(std::optional<SlowPolicy> policy, std::size_t bytes) {
        PublisherActor at_one;
        PublisherActor at_other;
        const auto one = small(at_one);
        const auto other = small(at_other);
        Subscriptions::Options found = options({});
        found.bus = &bus;
        found.socket.session.receive_count = 4;
        Subscriptions all{transport(), found, follower};
        const std::array wanted{range(0, 9)};
        all.subscribe(wanted, policy);
        announce_at("one", *one, {range(0, 4)});
        announce_at("other", *other, {range(5, 9)});
        ASSERT_TRUE(run_until([&] { return follower.subscribed.size() == 2; }));
        all.pause();
        for (std::uint64_t number = 0; number < 50; ++number)
            ASSERT_EQ(publish(*one, moving, number, bytes), Status::ok);
        one->flush();
        announce_at("one", *one, {range(0, 2), range(4, 4)});
        announce_at("other", *other, {range(3, 3), range(5, 9)});
        ASSERT_TRUE(run_until([&] { return at_other.subscribed.size() == 2; }));
        ASSERT_EQ(publish(*other, moving, there, 40), Status::ok);
        other->flush();
        EXPECT_TRUE(follower.numbers.empty());
        all.resume();
        ASSERT_TRUE(run_until([&] {
            return follower.numbers.size() + follower.dropped == 51 && !at_one.unsubscribed.empty();
        }));
        ASSERT_EQ(publish(*one, moving, 50, 40), Status::no_subscribers);
    }

    Follower follower;
};

INSTANTIATE_TEST_SUITE_P(Beds, MovingFids, netio::test::simulated_beds(), bed_name);

TEST_P(MovingFids, DeliverAllOfTheFormerPublisherBeforeTheNext) {
    ASSERT_NO_FATAL_FAILURE(move_while_paused({}, 40));
    EXPECT_EQ(follower.dropped, 0U);
    EXPECT_EQ(follower.numbers.size(), 51U);
    // In order for each publisher; no loss is reported between two publishers.
    std::vector<std::uint64_t> of_one;
    for (const std::uint64_t number : follower.numbers)
        if (number < there) of_one.push_back(number);
    for (std::uint64_t number = 0; number < 50; ++number)
        EXPECT_EQ(of_one.at(number), number);
}

TEST_P(MovingFids, ReportTheLossesOfTheFormerPublisher) {
    ASSERT_NO_FATAL_FAILURE(move_while_paused(SlowPolicy::drop, 900));
    EXPECT_GT(follower.dropped, 0U) << "it was too slow";
    EXPECT_GT(follower.numbers.size(), 4U);
    EXPECT_EQ(std::ranges::count(follower.numbers, there), 1);
    EXPECT_EQ(follower.numbers.size() - 1 + follower.dropped, 50U);
}

} // namespace
} // namespace netio::pubsub::test::moving_test
