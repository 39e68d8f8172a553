// SPDX-License-Identifier: Apache-2.0

// A publisher with two loops, each with a part of the fids and its own socket.

#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_shards.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace netio::pubsub::test::owned_test {
namespace {

using netio::Cookie;
using netio::Status;

class Owned : public PubSubScenario {
  protected:
    const FidShards shards = FidShards::divide({range(0, 7)}, 2);

    std::unique_ptr<BufferedPublishSocket> shard(std::size_t number) {
        auto socket = buffered({.publisher = {.fids = shards.of(number)}, .page_size_bytes = 1024});
        addresses.push_back(address);
        return socket;
    }

    std::vector<netio::Address> addresses;
};

class Counting final : public Subscriptions::Handler {
  public:
    void on_subscribed(Subscriptions&, const Subscriptions::Source&, const FidRange&) override {
        ++subscribed;
    }
    void on_refused(Subscriptions&, const Subscriptions::Source&, const FidRange&,
                    Subscriptions::Refusal) override {
        ++refused;
    }
    void on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                    std::span<const std::byte>, std::uint8_t) override {
        ++messages[fid];
        ++message_count;
    }
    void on_ended(Subscriptions&) override { ++ended; }

    std::map<Fid, int> messages;
    int message_count = 0;
    int subscribed = 0;
    int refused = 0;
    int ended = 0;
};

TEST_P(Owned, AFidOfAnotherLoopIsRefusedAndLeavesNoTrace) {
    auto publisher = shard(0);
    EXPECT_EQ(publish(*publisher, Fid{0}, 0, 40), Status::no_subscribers);
    EXPECT_EQ(publish(*publisher, Fid{4}, 0, 40), Status::not_owned);
    // A subscription to it is accepted: this subscriber requests all its fids from all loops.
    auto& subscriber = subscribe({range(0, 7)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    EXPECT_EQ(publish(*publisher, Fid{4}, 0, 40), Status::not_owned);
    EXPECT_EQ(publish(*publisher, Fid{4}, 0, 4000), Status::not_owned); // larger than a page
    EXPECT_EQ(publish(*publisher, Fid{8}, 0, 40), Status::not_owned);   // owned by no loop
    EXPECT_EQ(publish(*publisher, Fid{3}, 0, 40), Status::ok);
    EXPECT_EQ(publisher->counters().messages, 1U);
    EXPECT_EQ(publisher->counters().without_subscribers, 1U);
    EXPECT_EQ(publisher->snapshot().fid_count, 2U);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    EXPECT_EQ(subscriber.actor.closed.front().reason, netio::CloseReason::orderly);
    EXPECT_EQ(subscriber.actor.messages, 1U);
    EXPECT_EQ(subscriber.actor.lost, 0U);
}

TEST_P(Owned, AFidOfAnotherLoopIsRefusedUnbufferedToo) {
    netio::RegisteredBuffer memory{64};
    auto publisher = unbuffered({.publisher = {.fids = shards.of(1)}});
    auto& subscriber = subscribe({range(0, 7)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    EXPECT_EQ(publisher->publish(Fid{3}, memory.slice(), Cookie{1}), Status::not_owned);
    auto [status, ticket] = publisher->try_publish(Fid{3}, memory.slice(), Cookie{1});
    EXPECT_EQ(status, Status::not_owned);
    EXPECT_FALSE(ticket.is_open());
    EXPECT_EQ(publisher->publish(Fid{4}, memory.slice(), Cookie{2}), Status::ok);
    ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == 1; }));
    EXPECT_EQ(publisher_actor.completions.count(2), 1U);
    EXPECT_EQ(publisher->counters().messages, 1U);
}

TEST_P(Owned, ASubscriberOfARangeAtTheAddressesOfAllLoopsGetsEachFidOnce) {
    auto first = shard(0);
    auto second = shard(1);
    Counting seen;
    Subscriptions all{transport(), {.publishers = addresses}, seen};
    all.subscribe(range(1, 6));
    ASSERT_TRUE(run_until([&] { return seen.subscribed == 2; }));
    constexpr int rounds = 10;
    for (int round = 0; round < rounds; ++round) {
        for (std::uint64_t fid = 0; fid < 8; ++fid) {
            // A user that does not know a fid's loop tries the other one.
            const bool is_first = shards.owner(Fid{fid}) == 0;
            BufferedPublishSocket& owner = is_first ? *first : *second;
            BufferedPublishSocket& other = is_first ? *second : *first;
            const bool wanted = fid >= 1 && fid <= 6;
            EXPECT_EQ(publish(other, Fid{fid}, 0, 40), Status::not_owned) << fid;
            EXPECT_EQ(publish(owner, Fid{fid}, 0, 40), wanted ? Status::ok : Status::no_subscribers)
                << fid;
        }
    }
    first->close();
    second->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 2; }));
    EXPECT_EQ(seen.refused, 0);
    EXPECT_EQ(seen.message_count, 6 * rounds);
    for (std::uint64_t fid = 1; fid <= 6; ++fid)
        EXPECT_EQ(seen.messages[Fid{fid}], rounds) << fid;
    for (const Subscriptions::PublisherStats& stats : all.publisher_stats())
        EXPECT_TRUE(stats.complete) << stats.source.name;
}

TEST_P(Owned, ARangeThatEndsBeforeItBeginsIsRefusedByName) {
    try {
        buffered({.publisher = {.fids = std::vector{range(3, 1)}}});
        ADD_FAILURE() << "it was accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("fids: 0x3-0x1"));
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, Owned, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::owned_test
