// SPDX-License-Identifier: Apache-2.0

// Messages of many slices, over providers with a low or high limit of pieces. The simulator notices
// memory that changes while it is borrowed, so it shows which pieces were borrowed and which were
// copied.

#include "tests/scenario/pubsub/actors.hpp"
#include "tests/support/sim_transport.hpp"

#include <cstring>
#include <vector>

namespace netio::pubsub::test::pieces_test {
namespace {

using netio::Cookie;
using netio::Status;
using netio::test::SimProfile;
using netio::test::SimTransport;
using netio::test::SimWorld;

constexpr FidRange all{Fid{1}, Fid{1}};

SimProfile rdma_with(std::size_t pieces) {
    SimProfile profile = netio::test::verbs_profile();
    profile.capabilities.segment_limit = pieces;
    return profile;
}

// A publisher and a subscriber over a provider with this limit of pieces.
class Pieces {
  public:
    static constexpr std::size_t piece_bytes = 1000;
    static constexpr std::size_t receive_count = 64;

    explicit Pieces(std::size_t pieces)
        : transport_{loop_, world_, rdma_with(pieces), 1},
          publisher{transport_,
                    {.publisher = {.listen = {{"127.0.0.1", 0}}, .allow_remote_anonymous = true},
                     .outstanding_limit = 1000},
                    publisher_actor},
          subscriber{transport_,
                     {.publisher = publisher.endpoints().front().address,
                      .session = {.receive_count = receive_count}},
                     subscriber_actor} {
        subscriber.subscribe(all);
        EXPECT_TRUE(run_until([&] { return subscriber_actor.subscribed.size() == 1; }));
    }

    bool run_until(const std::function<bool()>& done) {
        for (int i = 0; i < 100'000 && !done(); ++i)
            loop_.run_once(world_.now() + std::chrono::seconds{1});
        return done();
    }
    std::vector<Slice> message(std::size_t pieces) {
        std::vector<Slice> slices;
        for (std::size_t i = 0; i < pieces; ++i)
            slices.push_back(memory.slice(i * piece_bytes, piece_bytes));
        return slices;
    }
    PublishSocket::Attempt try_publish(std::size_t pieces, Cookie cookie) {
        return publisher.try_publishv(Fid{1}, message(pieces), cookie, {});
    }
    bool lent_memory_changed() const { return !transport_.violations().empty(); }

  private:
    SimWorld world_;
    EventLoop loop_{EventLoop::Options{}, world_};
    SimTransport transport_;

  public:
    RegisteredBuffer memory{28 * piece_bytes};
    PublisherActor publisher_actor;
    PublishSocket publisher;
    SubscriberActor subscriber_actor;
    SubscribeSocket subscriber;
};

// Returns how many pieces of a message are sent in place: a change there is noticed, a change of a
// copied piece is not.
std::size_t lent_of(std::size_t pieces, std::size_t limit) {
    std::size_t lent = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
        Pieces world{limit};
        EXPECT_EQ(world.try_publish(pieces, Cookie{1}).status, Status::ok);
        std::memset(world.memory.data() + i * Pieces::piece_bytes, 0x55, Pieces::piece_bytes);
        EXPECT_TRUE(world.run_until([&] { return world.publisher_actor.completions[1] == 1; }));
        if (world.lent_memory_changed()) ++lent;
    }
    return lent;
}

TEST(ManyPieces, NoneIsCopiedWithinTheProvidersLimit) {
    EXPECT_EQ(lent_of(28, 30), 28U);
    EXPECT_EQ(lent_of(15, 16), 15U);
    EXPECT_EQ(lent_of(7, 8), 7U);
    EXPECT_EQ(lent_of(3, 4), 3U);
}

TEST(ManyPieces, OnlyThoseBeyondTheLimitAreCopied) {
    EXPECT_EQ(lent_of(28, 16), 14U) << "one piece is the header, one is the copied part";
    EXPECT_EQ(lent_of(28, 4), 2U);
}

TEST(ManyPieces, DoNotReduceTheMessagesInFlightAndQueueNothing) {
    for (const std::size_t limit : {4U, 30U}) {
        std::size_t of_few = 0;
        for (const std::size_t pieces : {3U, 28U}) {
            Pieces world{limit};
            std::uint64_t taken = 0;
            while (world.try_publish(pieces, Cookie{taken}).status == Status::ok)
                ++taken;
            const auto subscribers = world.publisher.snapshot().subscribers;
            ASSERT_EQ(subscribers.size(), 1U);
            EXPECT_EQ(subscribers.front().waiting, 0U) << pieces << " pieces";
            EXPECT_EQ(subscribers.front().posted, taken) << pieces << " pieces";
            if (of_few == 0) of_few = taken;
            EXPECT_EQ(taken, of_few) << pieces << " pieces";
            EXPECT_GE(taken, Pieces::receive_count - 2);
            EXPECT_TRUE(world.run_until([&] { return world.subscriber_actor.messages == taken; }));
            EXPECT_FALSE(world.lent_memory_changed());
        }
    }
}

TEST(ManyPieces, ThePublisherReportsHowManyLeaveWithoutACopy) {
    EXPECT_EQ(Pieces{4}.publisher.segment_limit(), 3U);
    EXPECT_EQ(Pieces{16}.publisher.segment_limit(), 15U);
    EXPECT_EQ(Pieces{30}.publisher.segment_limit(), 28U);
    Pieces world{4};
    world.subscriber.close();
    ASSERT_TRUE(world.run_until([&] { return world.publisher.counters().subscribers == 0; }));
    EXPECT_EQ(world.publisher.segment_limit(), 28U) << "there is no subscriber that needs a copy";
}

} // namespace
} // namespace netio::pubsub::test::pieces_test
