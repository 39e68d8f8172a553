// SPDX-License-Identifier: Apache-2.0
// Subscribers that keep what they receive.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

namespace netio::pubsub::test::keep_test {
namespace {

constexpr std::size_t receive_buffer_bytes = 64 * 1024;

// Keeps each message.
class KeepingActor final : public SubscribeSocket::Handler {
  public:
    void on_subscribed(SubscribeSocket&, const FidRange&) override { ++subscribed; }
    void on_message(SubscribeSocket& socket, Fid fid, std::span<const std::byte> message,
                    std::uint8_t) override {
        ++messages;
        kept.emplace_back(fid, socket.keep(message));
    }
    void on_gap(SubscribeSocket&, Fid, std::uint64_t count) override { dropped += count; }
    void on_closed(SubscribeSocket&, const netio::Closed& closed, bool) override {
        ends.push_back(closed);
    }

    // The number of kept messages; each is what was published.
    std::size_t intact() const {
        return static_cast<std::size_t>(std::ranges::count_if(kept, [](const auto& each) {
            const std::span<const std::byte> bytes = each.second.bytes();
            std::uint64_t number = 0;
            std::memcpy(&number, bytes.data(), sizeof number);
            return std::ranges::equal(bytes, make_message(each.first, number, bytes.size()));
        }));
    }

    int subscribed = 0;
    std::size_t messages = 0;
    std::uint64_t dropped = 0;
    std::deque<std::pair<Fid, KeptBytes>> kept;
    std::vector<netio::Closed> ends;
};

class Keeping : public PubSubScenario {
  protected:
    std::unique_ptr<SubscribeSocket> keep_all(const FidRange& fids, std::size_t keep_limit,
                                              std::optional<SlowPolicy> policy = {}) {
        SubscribeSocket::Options options;
        options.publisher = address;
        options.session.receive_buffer_bytes = receive_buffer_bytes;
        options.session.receive_count = 8;
        options.session.window_limit = 0;
        options.session.keep_limit_bytes = keep_limit;
        auto socket = std::make_unique<SubscribeSocket>(transport(), options, actor);
        socket->subscribe(fids, policy);
        EXPECT_TRUE(run_until([&] { return actor.subscribed == 1; }));
        return socket;
    }
    // Publishes messages of these sizes in turn, as fast as the publisher permits.
    void publish_all(BufferedPublishSocket& publisher, std::size_t count,
                     const std::vector<std::size_t>& sizes, const std::function<bool()>& ends) {
        std::size_t sent = 0;
        EXPECT_TRUE(run_until([&] {
            while (sent < count && publish(publisher, Fid{1}, sent, sizes[sent % sizes.size()]) ==
                                       netio::Status::ok)
                ++sent;
            if (sent == count) publisher.flush();
            const bool is_over = ends();
            return sent == count && is_over;
        })) << sent;
    }

    KeepingActor actor;
};

TEST_P(Keeping, KeptMessagesStayIntactWhileOthersArriveAndAfterTheSocket) {
    // In pages with others, in pages of their own, and in fragments.
    const std::vector<std::size_t> sizes{40, 9000, 20000, 60000, 300000};
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    auto socket = keep_all(range(1, 1), std::size_t{64} << 20);
    publish_all(*publisher, 100, sizes, [&] { return actor.messages == 100; });
    EXPECT_EQ(actor.intact(), 100U);
    EXPECT_GT(socket->kept().bytes, std::size_t{20} * (9000 + 20000 + 60000 + 300000));
    socket.reset();
    EXPECT_EQ(actor.intact(), 100U);
    // And in any order, on any thread.
    std::jthread{[&] {
        while (!actor.kept.empty()) {
            std::swap(actor.kept.front(), actor.kept[actor.kept.size() / 2]);
            actor.kept.pop_front();
        }
    }}.join();
}

TEST_P(Keeping, ASmallMessageHoldsNoReceiveBuffer) {
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    auto socket = keep_all(range(1, 1), receive_buffer_bytes);
    publish_all(*publisher, 1000, {40}, [&] { return actor.messages == 1000; });
    EXPECT_EQ(actor.intact(), 1000U);
    EXPECT_EQ(socket->kept().bytes, KeepPool::slab_bytes) << "1,000 messages fit into one slab";
}

// The limit holds for one connection: its policy decides what becomes of it, and others go on.
TEST_P(Keeping, BeyondTheLimitTheConnectionStallsAndOthersGoOn) {
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    auto socket = keep_all(range(1, 1), 4 * receive_buffer_bytes, SlowPolicy::drop);
    Subscription& other = subscribe({range(1, 1)}, {}, SlowPolicy::block);
    ASSERT_TRUE(run_until([&] { return other.actor.subscribed.size() == 1; }));
    publish_all(*publisher, 400, {30000}, [&] { return other.actor.messages == 400; });
    other.actor.expect_contiguous(Fid{1}, 0, 400);
    EXPECT_LT(actor.messages, 400U);
    // Eight buffers of the window and four in their place, with two messages each.
    EXPECT_LE(actor.messages, 2U * (8 + 4));
    EXPECT_EQ(actor.intact(), actor.messages);
    EXPECT_LE(socket->kept().bytes, (8U + 4U) * receive_buffer_bytes);
    EXPECT_TRUE(actor.ends.empty());
    // What is returned on another thread lets the connection continue.
    const std::size_t before = actor.messages;
    std::jthread{[&] { actor.kept.clear(); }}.join();
    std::uint64_t published = 400;
    ASSERT_TRUE(run_until([&] { // until the publisher has the credits
        if (publish(*publisher, Fid{1}, published, 30000) == netio::Status::ok) ++published;
        publisher->flush();
        return actor.messages > before;
    }));
    publisher->close();
    ASSERT_TRUE(run_until([&] {
        if (actor.kept.size() > 4) actor.kept.clear();
        return !actor.ends.empty();
    }));
    EXPECT_EQ(actor.ends[0].reason, netio::CloseReason::orderly);
    EXPECT_EQ(actor.messages + actor.dropped, published)
        << "each message has arrived or is reported";
}

// The subscriber ends in order, whatever its user keeps.
TEST_P(Keeping, AConnectionBeyondTheLimitClosesInOrder) {
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    auto socket = keep_all(range(1, 1), 0, SlowPolicy::drop);
    publish_all(*publisher, 100, {50000}, [&] { return actor.kept.size() >= 6; });
    socket->close();
    ASSERT_TRUE(run_until([&] { return !actor.ends.empty(); }));
    EXPECT_EQ(actor.ends[0].reason, netio::CloseReason::orderly) << to_string(actor.ends[0]);
    EXPECT_EQ(actor.intact(), actor.kept.size());
}

// With a limit below a slab, a small message is lent with its buffer, and the others stay in use.
TEST_P(Keeping, AFewSmallMessagesDoNotStopAConnectionWithoutABudget) {
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    auto socket = keep_all(range(1, 1), 0);
    publish_all(*publisher, 5000, {40}, [&] {
        while (actor.kept.size() > 3)
            actor.kept.erase(actor.kept.begin() + 1);
        return actor.messages == 5000;
    });
    EXPECT_EQ(actor.intact(), actor.kept.size());
}

TEST_P(Keeping, WithoutABudgetEachKeptBufferIsMissingUntilItIsReturned) {
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    auto socket = keep_all(range(1, 1), 0);
    publish_all(*publisher, 200, {50000}, [&] {
        EXPECT_LE(actor.kept.size(), 8U);
        if (actor.kept.size() >= 5) actor.kept.pop_front();
        return actor.messages == 200;
    });
    EXPECT_EQ(actor.intact(), actor.kept.size());
}

INSTANTIATE_TEST_SUITE_P(Beds, Keeping, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::keep_test
