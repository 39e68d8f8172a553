// SPDX-License-Identifier: Apache-2.0
// Subscribers that keep what they receive.

#include "netio/memory/receive_memory.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
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
        options.session.receive_memory = keep_memory;
        options.reconnect = reconnects;
        options.retry_interval = std::chrono::milliseconds{1};
        options.retry_limit = std::chrono::milliseconds{5};
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
    std::shared_ptr<ReceiveMemory> keep_memory;
    bool reconnects = false;
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

// --- memory of the user's -------------------------------------------------------------------

class KeepingInOwnMemory : public Keeping {
  protected:
    // As many buffers as the window has, and `more`.
    void give(std::size_t more) {
        const std::size_t each = ReceiveMemory::bytes_in_use(receive_buffer_bytes + 16);
        users.resize((8 + more) * each);
        memory = std::make_shared<ReceiveMemory>(users);
        keep_memory = memory;
    }
    bool is_in_own_memory(const KeptBytes& kept) const {
        const std::less_equal<const std::byte*> before;
        return before(users.data(), kept.bytes().data()) &&
               before(kept.bytes().data() + kept.size(), users.data() + users.size());
    }

    std::vector<std::byte> users;
    std::shared_ptr<ReceiveMemory> memory;
};

TEST_P(KeepingInOwnMemory, KeptMessagesStayThereAndTheConnectionStallsWhenItIsUsedUp) {
    give(3);
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    auto socket = keep_all(range(1, 1), std::size_t{64} << 20, SlowPolicy::drop);
    std::uint64_t published = 0;
    const auto publish_more = [&] {
        if (publish(*publisher, Fid{1}, published, 50000) == netio::Status::ok) ++published;
        publisher->flush();
    };
    ASSERT_TRUE(run_until([&] {
        publish_more();
        return published == 200;
    }));
    EXPECT_LE(actor.messages, 11U) << "one for each buffer";
    EXPECT_GE(actor.messages, 6U);
    EXPECT_EQ(actor.intact(), actor.messages);
    for (const auto& [fid, kept] : actor.kept)
        EXPECT_TRUE(is_in_own_memory(kept));
    // What is returned on another thread lets the connection continue.
    const std::size_t before = actor.messages;
    std::jthread{[&] { actor.kept.clear(); }}.join();
    ASSERT_TRUE(run_until([&] {
        publish_more();
        return actor.messages > before;
    }));
    publisher->close();
    ASSERT_TRUE(run_until([&] {
        actor.kept.clear();
        return !actor.ends.empty();
    }));
    EXPECT_EQ(actor.ends[0].reason, netio::CloseReason::orderly) << to_string(actor.ends[0]);
    EXPECT_EQ(actor.messages + actor.dropped, published);
    socket.reset();
    EXPECT_EQ(memory->free_bytes(), memory->size());
}

// The next connection does not receive into what is kept of the former one.
TEST_P(KeepingInOwnMemory, AReconnectionWaitsUntilEnoughIsFree) {
    give(2);
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    reconnects = true;
    auto socket = keep_all(range(1, 1), std::size_t{64} << 20);
    publish_all(*publisher, 5, {50000}, [&] { return actor.messages == 5; });
    const std::uint16_t port = address.port;
    publisher.reset();
    ASSERT_TRUE(run_until([&] { return !actor.ends.empty(); }));
    BufferedPublishSocket::Options options{.page_size_bytes = 60 * 1024, .page_count = 64};
    options.publisher.listen = {{address.host, port}};
    options.publisher.allow_remote_anonymous = true;
    publisher = std::make_unique<BufferedPublishSocket>(transport(), options, publisher_actor);
    ASSERT_TRUE(run_until([&] {
        return actor.ends.back().detail.find("not enough of it is free") != std::string::npos;
    }));
    EXPECT_EQ(actor.subscribed, 1);
    EXPECT_EQ(actor.intact(), 5U);
    while (actor.kept.size() > 2)
        actor.kept.pop_front();
    ASSERT_TRUE(run_until([&] { return actor.subscribed == 2; }));
    std::size_t sent = 5;
    ASSERT_TRUE(run_until([&] {
        if (sent < 7 && publish(*publisher, Fid{1}, sent, 50000) == netio::Status::ok) ++sent;
        publisher->flush();
        return actor.messages == 7;
    }));
    EXPECT_EQ(actor.intact(), 4U);
}

// A subscriber that closes in order gets the rest, whatever its user keeps.
TEST_P(KeepingInOwnMemory, AStalledConnectionClosesInOrder) {
    give(0);
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    auto socket = keep_all(range(1, 1), std::size_t{64} << 20, SlowPolicy::drop);
    publish_all(*publisher, 100, {50000}, [&] { return actor.kept.size() >= 6; });
    socket->close();
    ASSERT_TRUE(run_until([&] { return !actor.ends.empty(); }));
    EXPECT_EQ(actor.ends[0].reason, netio::CloseReason::orderly) << to_string(actor.ends[0]);
    EXPECT_EQ(actor.intact(), actor.kept.size());
}

// --- whole pages ----------------------------------------------------------------------------

// Keeps each page.
class PageActor final : public SubscribeSocket::Handler {
  public:
    void on_subscribed(SubscribeSocket&, const FidRange&) override { ++subscribed; }
    void on_message(SubscribeSocket&, Fid, std::span<const std::byte>, std::uint8_t) override {
        ADD_FAILURE() << "messages come in pages";
    }
    void on_page(SubscribeSocket& socket, const PageView& page) override {
        std::size_t count = 0;
        for (const MessageView& message : page) {
            EXPECT_TRUE(std::ranges::equal(
                message.bytes(), make_message(message.fid(), messages + count, message.size())));
            ++count;
        }
        EXPECT_EQ(page.size(), count);
        messages += count;
        kept.push_back(page.keep());
        if (pauses) socket.pause();
    }
    void on_gap(SubscribeSocket&, Fid, std::uint64_t count) override { dropped += count; }
    void on_closed(SubscribeSocket&, const netio::Closed& closed, bool) override {
        ends.push_back(closed);
    }

    int subscribed = 0;
    std::uint64_t messages = 0;
    std::uint64_t dropped = 0;
    bool pauses = false;
    std::deque<KeptPage> kept;
    std::vector<netio::Closed> ends;
};

class WholePages : public PubSubScenario {};

TEST_P(WholePages, KeptAsOneHoldAllMessagesOfEverySizeAfterTheSocket) {
    const std::vector<std::size_t> sizes{40, 60, 9000, 40, 20000, 40, 300000};
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    PageActor actor;
    SubscribeSocket::Options options;
    options.publisher = address;
    options.session.receive_buffer_bytes = receive_buffer_bytes;
    options.whole_pages = true;
    auto socket = std::make_unique<SubscribeSocket>(transport(), options, actor);
    socket->subscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return actor.subscribed == 1; }));
    std::size_t sent = 0;
    ASSERT_TRUE(run_until([&] {
        while (sent < 140 &&
               publish(*publisher, Fid{1}, sent, sizes[sent % sizes.size()]) == netio::Status::ok)
            ++sent;
        publisher->flush();
        return actor.messages == 140;
    })) << actor.messages;
    EXPECT_EQ(socket->counters().messages, 140U);
    EXPECT_LT(actor.kept.size(), 140U);
    socket.reset();
    std::uint64_t number = 0;
    std::jthread{[&] {
        for (const KeptPage& page : actor.kept) {
            for (const MessageView& message : page)
                EXPECT_TRUE(std::ranges::equal(
                    message.bytes(), make_message(message.fid(), number++, message.size())));
        }
    }}.join();
    EXPECT_EQ(number, 140U);
}

TEST_P(WholePages, APauseAppliesFromTheNextPageOnAndLosesNothing) {
    auto publisher = buffered({.page_size_bytes = 4096, .page_count = 64});
    PageActor actor;
    actor.pauses = true;
    SubscribeSocket::Options options;
    options.publisher = address;
    options.whole_pages = true;
    SubscribeSocket socket{transport(), options, actor};
    socket.subscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return actor.subscribed == 1; }));
    std::size_t sent = 0;
    ASSERT_TRUE(run_until([&] {
        while (sent < 1000 && publish(*publisher, Fid{1}, sent, 100) == netio::Status::ok)
            ++sent;
        publisher->flush();
        if (socket.is_paused()) socket.resume();
        return actor.messages == 1000;
    })) << actor.messages;
    publisher->close();
    ASSERT_TRUE(run_until([&] {
        if (socket.is_paused()) socket.resume();
        return !actor.ends.empty();
    }));
    EXPECT_EQ(actor.ends[0].reason, netio::CloseReason::orderly);
    EXPECT_EQ(socket.arrivals().difference().value().lost, 0U);
}

TEST_P(WholePages, AMessageThatComesAloneIsAPageWithOneMessage) {
    auto publisher = unbuffered({});
    PageActor actor;
    SubscribeSocket::Options options;
    options.publisher = address;
    options.whole_pages = true;
    SubscribeSocket socket{transport(), options, actor};
    socket.subscribe(range(7, 7));
    ASSERT_TRUE(run_until([&] { return actor.subscribed == 1; }));
    const auto message = make_message(Fid{7}, 0, 100'000);
    RegisteredBuffer memory{message.size()};
    std::ranges::copy(message, memory.data());
    const std::array slices{memory.slice()};
    ASSERT_EQ(publisher->publishv(Fid{7}, slices, netio::Cookie{1}, {.status = 5, .header = {}}),
              netio::Status::ok);
    ASSERT_TRUE(run_until([&] { return actor.kept.size() == 1; }));
    ASSERT_EQ(actor.kept[0].size(), 1U);
    const auto only = actor.kept[0].begin();
    EXPECT_EQ(only->fid(), Fid{7});
    EXPECT_EQ(only->status(), 5);
    EXPECT_TRUE(std::ranges::equal(actor.kept[0].bytes(), message));
}

INSTANTIATE_TEST_SUITE_P(Beds, KeepingInOwnMemory, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, WholePages, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, Keeping, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::keep_test
