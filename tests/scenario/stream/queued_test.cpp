// SPDX-License-Identifier: Apache-2.0
// Streams that deliver their completions into a queue.

#include "stream/socket/queued_stream.hpp"
#include "tests/scenario/stream/pair.hpp"

#include <array>

namespace netio::stream::test::queued_test {
namespace {

using Kind = netio::QueueEvent::Kind;
using QueuedStream = netio::Queued<StreamSocket>;

class QueuedStreams : public testing::TestWithParam<Stage>, private StreamListener::Handler {
  protected:
    void establish(std::size_t queue_limit = 64) {
        options.remote_writes = std::get<1>(GetParam());
        queue = std::make_unique<netio::CompletionQueue>(
            netio::CompletionQueue::Options{.queue_limit_events = queue_limit});
        listener = std::make_unique<StreamListener>(
            bed.transport(),
            StreamListener::Options{.listen = {bed.address()}, .allow_remote_anonymous = true},
            static_cast<StreamListener::Handler&>(*this));
        client = std::make_unique<QueuedStream>(*queue, 1, bed.transport(), options);
        (*client)->connect(listener->endpoints().front().address);
        ASSERT_TRUE(await(Kind::connected, 1) && await(Kind::connected, 2));
    }
    // Whether this event has come; the events before it are collected.
    bool await(Kind kind, std::uint64_t tag) {
        return bed.run_until([&] {
            collect();
            return std::ranges::any_of(seen, [&](const netio::QueueEvent& event) {
                return event.kind == kind && event.tag == tag;
            });
        });
    }
    void collect() {
        std::array<netio::QueueEvent, 8> events;
        const std::size_t count = queue->dequeue(events, std::chrono::milliseconds{0});
        for (std::size_t i = 0; i < count; ++i)
            seen.push_back(std::move(events[i]));
    }
    std::size_t number_of(Kind kind, std::uint64_t tag) const {
        return static_cast<std::size_t>(
            std::ranges::count_if(seen, [&](const netio::QueueEvent& event) {
                return event.kind == kind && event.tag == tag;
            }));
    }

    netio::test::TestBed bed{std::get<0>(GetParam())};
    StreamSocket::Options options;
    RegisteredBuffer outgoing{100'000};
    RegisteredBuffer incoming{100'000, netio::Access::remote_write};
    std::unique_ptr<netio::CompletionQueue> queue;
    std::unique_ptr<StreamListener> listener;
    std::unique_ptr<QueuedStream> client, server;
    std::vector<netio::QueueEvent> seen;

  private:
    void on_incoming(IncomingStream& peer) override {
        server = std::make_unique<QueuedStream>(*queue, 2, bed.loop(), peer, options);
    }
};

INSTANTIATE_TEST_SUITE_P(Stages, QueuedStreams, all_stages(), stage_name);

TEST_P(QueuedStreams, EachOperationHasOneEventInOrderUntilTheEnd) {
    establish();
    for (std::uint64_t i = 0; i < 10; ++i) {
        ASSERT_EQ(server->receive(incoming.slice(i * 1'000, 1'000), Cookie{i}, Fill::all),
                  Status::ok);
        ASSERT_EQ(client->send(outgoing.slice(i * 1'000, 1'000), Cookie{100 + i}), Status::ok);
    }
    ASSERT_EQ(server->receive(incoming.slice(0, 10), Cookie{10}, Fill::some), Status::ok);
    (*client)->close();
    ASSERT_TRUE(await(Kind::end_of_stream, 2));
    (*server)->close();
    ASSERT_TRUE(await(Kind::closed, 1) && await(Kind::closed, 2));
    std::uint64_t received = 0;
    std::uint64_t sent = 100;
    for (const netio::QueueEvent& event : seen) {
        if (event.kind == Kind::sent) {
            EXPECT_EQ(event.cookie, Cookie{sent++});
        }
        if (event.kind != Kind::received) continue;
        EXPECT_EQ(event.count, received < 10 ? 1'000U : 0U);
        EXPECT_TRUE(event.end_of_stream || received < 10) << received;
        EXPECT_EQ(event.cookie, Cookie{received++});
    }
    EXPECT_EQ(received, 11U);
    EXPECT_EQ(sent, 110U);
    EXPECT_EQ(seen.back().closed->reason, CloseReason::orderly);
}

// The queue has room for what is outstanding: a user that takes nothing out of it stops the peer.
TEST_P(QueuedStreams, AFullQueueRefusesOperationsUntilEventsAreTaken) {
    establish(4);
    std::uint64_t sends = 0;
    ASSERT_TRUE(bed.run_until([&] {
        // Another one, as long as the queue permits it.
        const Status status = client->send(outgoing.slice(0, 10), Cookie{sends});
        if (status == Status::ok) ++sends;
        return status == Status::again && queue->size() == 4;
    }));
    EXPECT_EQ(sends, 4U);
    EXPECT_EQ(server->receive(incoming.slice(), Cookie{0}, Fill::some), Status::again);
    ASSERT_TRUE(await(Kind::writable, 1));
    ASSERT_TRUE(await(Kind::writable, 2)) << "each that was refused";
    EXPECT_EQ(number_of(Kind::writable, 1), 1U);
    EXPECT_EQ(number_of(Kind::sent, 1), 4U);
    EXPECT_EQ(server->receive(incoming.slice(), Cookie{0}, Fill::some), Status::ok);
    ASSERT_TRUE(await(Kind::received, 2));
}

TEST_P(QueuedStreams, DestroyedWithOperationsItLeavesItsEventsAndFreesTheirRoom) {
    establish(4);
    for (std::uint64_t i = 0; i < 4; ++i)
        ASSERT_EQ(server->receive(incoming.slice(0, 10), Cookie{i}, Fill::all), Status::ok);
    EXPECT_EQ(client->send(outgoing.slice(0, 10), Cookie{0}), Status::again);
    server.reset();
    EXPECT_EQ(client->send(outgoing.slice(0, 10), Cookie{0}), Status::ok);
    ASSERT_TRUE(await(Kind::closed, 1));
    EXPECT_EQ(number_of(Kind::sent, 1), 1U);
    client.reset();
    queue.reset();
}

} // namespace
} // namespace netio::stream::test::queued_test
