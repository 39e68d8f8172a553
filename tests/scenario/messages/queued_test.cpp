// SPDX-License-Identifier: Apache-2.0
// Sockets of messages that deliver into a completion queue.

#include "netio/messages/queued.hpp"

#include "tests/scenario/messages/receiver.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace netio::test::queued_test {
namespace {

using namespace std::chrono_literals;
using Kind = QueueEvent::Kind;

class QueuedMessages : public testing::TestWithParam<Bed> {
  protected:
    void listen(std::size_t receive_count = 8) {
        ListenSocket::Options options{.listen = {bed.address()}, .allow_remote_anonymous = true};
        options.session.receive_count = receive_count;
        options.session.window_limit = 0;
        listener = std::make_unique<Queued<ListenSocket>>(received, 9, bed.transport(), options);
        address = (*listener)->endpoints().front().address;
    }
    Queued<SendSocket>& connect(std::uint64_t tag) {
        auto& sender = *senders.emplace_back(std::make_unique<Queued<SendSocket>>(
            sent, tag, bed.transport(), SendSocket::Options{}));
        sender->connect(address);
        EXPECT_TRUE(bed.run_until([&] { return sender->is_connected(); }));
        return sender;
    }
    static std::vector<QueueEvent> take(CompletionQueue& queue, std::size_t most = 8) {
        std::vector<QueueEvent> events(most);
        events.resize(queue.dequeue(events, 0ms));
        return events;
    }

    TestBed bed{GetParam()};
    Address address;
    RegisteredBuffer memory{64 * 1024};
    CompletionQueue received{{.queue_limit_events = 8}};
    CompletionQueue sent{{.queue_limit_events = 32}};
    std::unique_ptr<Queued<ListenSocket>> listener;
    std::vector<std::unique_ptr<Queued<SendSocket>>> senders;
};

INSTANTIATE_TEST_SUITE_P(Beds, QueuedMessages, all_beds(), bed_name);

TEST_P(QueuedMessages, ComeOutWithTheirSenderAndImmediateDataAfterAllSocketsAreGone) {
    listen();
    Queued<SendSocket>& one = connect(1);
    Queued<SendSocket>& two = connect(2);
    std::ranges::copy(content(50'000, 3), memory.data());
    ASSERT_EQ(one.send(memory.slice(0, 50'000), Cookie{5}, 77), Status::ok);
    ASSERT_EQ(two.send(memory.slice(0, 40), Cookie{6}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return received.size() == 4; }));
    ASSERT_TRUE(bed.run_until([&] { return sent.size() == 4; }));
    senders.clear();
    listener.reset();
    for (QueueEvent& event : take(sent)) {
        if (event.kind == Kind::connected) continue;
        EXPECT_EQ(event.kind, Kind::sent);
        EXPECT_EQ(event.cookie, Cookie{4 + event.tag});
    }
    std::size_t messages = 0;
    for (QueueEvent& event : take(received)) {
        EXPECT_EQ(event.tag, 9U);
        if (event.kind == Kind::connected) continue;
        EXPECT_EQ(event.kind, Kind::message);
        const bool is_first = event.immediate == 77U;
        const std::vector<std::byte> expected = content(is_first ? 50'000U : 40U, 3);
        EXPECT_TRUE(std::ranges::equal(event.bytes.bytes(), expected));
        EXPECT_EQ(event.peer, is_first ? 1U : 2U);
        ++messages;
    }
    EXPECT_EQ(messages, 2U);
}

// The bound of the queue holds for messages of many senders, and nothing is lost.
TEST_P(QueuedMessages, AFullQueueStopsAllSendersUntilMessagesAreTaken) {
    constexpr std::uint64_t each = 100;
    listen();
    for (std::uint64_t tag = 0; tag < 3; ++tag)
        connect(tag);
    std::vector<std::uint64_t> next(3);
    std::vector<std::uint64_t> expected(4);
    std::uint64_t arrived = 0;
    ASSERT_TRUE(bed.run_until([&] {
        take(sent, 64); // first: a turn may sleep until something happens
        for (std::size_t i = 0; i < 3; ++i) {
            while (next[i] < each &&
                   senders[i]->send(memory.slice(0, 100), Cookie{i}, next[i]) == Status::ok)
                ++next[i];
        }
        EXPECT_LE(received.size(), 9U) << "one more than the limit";
        const bool is_last = std::ranges::count(next, each) == 3;
        if (!is_last && received.size() < 8) return false;
        for (const QueueEvent& event : take(received, 5)) {
            if (event.kind != Kind::message) continue;
            EXPECT_EQ(event.immediate, expected[event.peer]++) << "in order";
            ++arrived;
        }
        return arrived == 3 * each;
    })) << arrived;
}

TEST_P(QueuedMessages, ASenderWaitsForRoomAndIsNotified) {
    listen();
    CompletionQueue small{{.queue_limit_events = 2}};
    {
        Queued<SendSocket> sender{small, 1, bed.transport(), {}};
        sender->connect(address);
        ASSERT_TRUE(bed.run_until([&] { return small.size() == 1; }));
        EXPECT_EQ(sender.send(memory.slice(0, 10), Cookie{1}), Status::ok);
        EXPECT_EQ(sender.send(memory.slice(0, 10), Cookie{2}), Status::again);
        ASSERT_TRUE(bed.run_until([&] { return small.size() == 2; }));
        EXPECT_EQ(take(small).size(), 2U);
        ASSERT_TRUE(bed.run_until([&] { return small.size() == 1; }));
        EXPECT_EQ(take(small).at(0).kind, Kind::writable);
        EXPECT_EQ(sender.send(memory.slice(0, 9), Cookie{2}), Status::ok);
        EXPECT_EQ(sender.send(memory.slice(0, 1), Cookie{3}), Status::ok);
        // Refused for another reason: the room is free again.
        RegisteredBuffer large{1 << 20};
        ASSERT_TRUE(bed.run_until([&] { return small.size() == 2; }));
        take(small);
        EXPECT_EQ(sender.send(large.slice(), Cookie{4}), Status::too_large);
        EXPECT_EQ(sender.send(large.slice(), Cookie{4}), Status::too_large);
        EXPECT_EQ(sender.send(large.slice(), Cookie{4}), Status::too_large);
        sender->close();
        ASSERT_TRUE(bed.run_until([&] { return small.size() == 1; }));
        EXPECT_EQ(take(small).at(0).closed->reason, CloseReason::orderly);
    }
}

// Its messages are copies: only what a user waits for is an event, once per wait.
TEST_P(QueuedMessages, ABufferedSenderReportsItsSpaceAndItsEnd) {
    listen();
    CompletionQueue events;
    Queued<BufferedSendSocket> sender{
        events, 6, bed.transport(), {.page_size_bytes = 1000, .page_count = 2}};
    sender->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return events.size() == 1; }));
    EXPECT_EQ(take(events).at(0).kind, Kind::connected);
    std::size_t refusals = 0;
    std::size_t writables = 0;
    std::size_t accepted = 0;
    std::size_t arrived = 0;
    ASSERT_TRUE(bed.run_until([&] {
        for (const QueueEvent& event : take(received, 64))
            arrived += event.kind == Kind::message ? 1 : 0;
        for (const QueueEvent& event : take(events)) {
            EXPECT_EQ(event.kind, Kind::writable);
            EXPECT_EQ(event.tag, 6U);
            ++writables;
        }
        bool is_full = false;
        while (refusals == writables && accepted < 100 && !is_full) {
            is_full = sender->send(content(400, 1)) != Status::ok;
            is_full ? ++refusals : ++accepted;
        }
        if (accepted == 100) sender->flush();
        return arrived == 100;
    })) << arrived;
    EXPECT_GT(refusals, 5U);
    EXPECT_EQ(refusals, writables);
    sender->close();
    ASSERT_TRUE(bed.run_until([&] { return events.size() == 1; }));
    EXPECT_EQ(take(events).at(0).closed->reason, CloseReason::orderly);
}

// A socket may be destroyed while it is stopped; its task of the loop then does nothing.
TEST_P(QueuedMessages, AListenerThatIsStoppedMayBeDestroyed) {
    listen(32);
    connect(0);
    std::uint64_t number = 0;
    ASSERT_TRUE(bed.run_until([&] {
        if (senders[0]->send(memory.slice(0, 10), Cookie{0}, number) == Status::ok) ++number;
        take(sent);
        return received.size() >= 8 && number > 16;
    }));
    EXPECT_EQ(take(received).size(), 8U); // the task that resumes it is posted
    listener.reset();
    ASSERT_TRUE(bed.run_until([&] { return !(*senders[0])->is_connected(); }));
    EXPECT_LE(received.size(), 1U);
}

// Both sides of a connection deliver into queues of four events.
class QueuedTwoWays : public testing::TestWithParam<Bed> {
  protected:
    using TwoWay = Queued<MessageSocket>;

    void connect(const MessageSocket::Options& options = {}) {
        listener.emplace(
            bed.transport(),
            MessageListener::Options{.listen = {bed.address()}, .allow_remote_anonymous = true},
            [&](IncomingPeer& peer) {
                far = std::make_unique<TwoWay>(there, 2, bed.loop(), peer, options);
            });
        near = std::make_unique<TwoWay>(here, 1, bed.transport(), options);
        (*near)->connect(listener->endpoints().front().address);
        EXPECT_EQ(next(here).kind, Kind::connected);
        EXPECT_EQ(next(there).kind, Kind::connected);
    }
    QueueEvent next(CompletionQueue& queue) {
        std::array<QueueEvent, 1> event;
        EXPECT_TRUE(bed.run_until([&] { return queue.dequeue(event, 0ms) == 1; }));
        return event[0];
    }

    TestBed bed{GetParam()};
    CompletionQueue here{{.queue_limit_events = 4}};
    CompletionQueue there{{.queue_limit_events = 4}};
    RegisteredBuffer memory{64 * 1024};
    std::optional<MessageListener> listener;
    std::unique_ptr<TwoWay> near;
    std::unique_ptr<TwoWay> far;
};

INSTANTIATE_TEST_SUITE_P(Beds, QueuedTwoWays, all_beds(), bed_name);

TEST_P(QueuedTwoWays, CarryMessagesUntilBothSidesHaveFinished) {
    connect();
    std::ranges::copy(content(20'000, 3), memory.data());
    ASSERT_EQ(near->send(memory.slice(0, 20'000), Cookie{5}, 77), Status::ok);
    ASSERT_EQ(far->send(std::as_bytes(std::span{"reply"}).first(5)), Status::ok);
    const QueueEvent request = next(there);
    EXPECT_EQ(request.kind, Kind::message);
    EXPECT_EQ(request.tag, 2U);
    EXPECT_EQ(request.immediate, 77U);
    bool is_sent = false;
    bool has_reply = false;
    for (int i = 0; i < 2; ++i) {
        const QueueEvent event = next(here);
        is_sent |= event.kind == Kind::sent && event.cookie == Cookie{5};
        has_reply |= event.kind == Kind::message && event.bytes.text() == "reply";
    }
    EXPECT_TRUE(is_sent && has_reply);
    (*near)->finish();
    EXPECT_EQ(next(there).kind, Kind::end_of_stream);
    (*far)->finish();
    EXPECT_EQ(next(here).kind, Kind::end_of_stream);
    for (CompletionQueue* const queue : {&here, &there}) {
        const QueueEvent last = next(*queue);
        ASSERT_EQ(last.kind, Kind::closed);
        EXPECT_EQ(last.closed->reason, CloseReason::orderly);
        EXPECT_FALSE(last.retrying);
    }
    EXPECT_EQ(near->send(memory.slice(0, 1), Cookie{6}), Status::closed);
    near.reset();
    far.reset();
    EXPECT_TRUE(std::ranges::equal(request.bytes.bytes(), content(20'000, 3)));
}

// Sends without a pause to a queue that is emptied now and then.
TEST_P(QueuedTwoWays, StopAtAFullQueueAndLoseNothing) {
    constexpr std::uint64_t count = 60;
    MessageSocket::Options options{.page_size_bytes = 1024, .page_count = 2};
    options.session.receive_count = 8;
    options.session.window_limit = 0;
    connect(options);
    const std::vector<std::byte> message = content(900, 1);
    std::uint64_t sent = 0;
    std::uint64_t arrived = 0;
    bool may_send = true;
    std::size_t turns = 0;
    std::array<QueueEvent, 3> events;
    ASSERT_TRUE(bed.run_until([&] {
        for (QueueEvent& event : std::span{events}.first(here.dequeue(events, 0ms))) {
            EXPECT_EQ(event.kind, Kind::writable) << "only after `again`";
            EXPECT_FALSE(std::exchange(may_send, true));
        }
        while (may_send && sent < count) {
            const Status status = near->send(message);
            may_send = status == Status::ok;
            sent += may_send ? 1 : 0;
            EXPECT_TRUE(may_send || status == Status::again);
        }
        EXPECT_LE(there.size(), 5U) << "one more than the limit";
        if (sent < count && ++turns % 20 != 0 && there.size() < 4) return false;
        for (QueueEvent& event : std::span{events}.first(there.dequeue(events, 0ms))) {
            EXPECT_TRUE(std::ranges::equal(event.bytes.bytes(), message));
            ++arrived;
        }
        return arrived == count;
    })) << arrived;
    // Space in the queue is awaited as well.
    for (std::uint64_t cookie = 0; cookie < 4; ++cookie)
        ASSERT_EQ(far->send(memory.slice(0, 1), Cookie{cookie}), Status::ok);
    ASSERT_EQ(far->send(memory.slice(0, 1), Cookie{4}), Status::again);
    std::uint64_t completed = 0;
    std::size_t writable = 0;
    while (completed + writable < 5) {
        const QueueEvent event = next(there);
        if (event.kind == Kind::writable) {
            ++writable;
        } else {
            EXPECT_EQ(event.cookie, Cookie{completed++});
        }
    }
    EXPECT_EQ(writable, 1U);
    // A paused socket may be destroyed.
    ASSERT_TRUE(bed.run_until([&] { return here.size() >= 4; }));
    near.reset();
    EXPECT_EQ(far->send(memory.slice(0, 1), Cookie{5}), Status::ok);
}

} // namespace
} // namespace netio::test::queued_test
