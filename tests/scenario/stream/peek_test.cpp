// SPDX-License-Identifier: Apache-2.0
// A user that reads bytes where they lie in the ring, without a receive.

#include "netio/memory/receive_memory.hpp"
#include "tests/scenario/stream/flow.hpp"

#include <stdexcept>

namespace netio::stream::test::peek_test {
namespace {

// Reads all that has arrived, at most `step` bytes at a time.
class Reader final : public StreamSocket::Handler {
  public:
    explicit Reader(std::size_t step = SIZE_MAX) : step_{step} {}

    void on_connected(StreamSocket&) override { connected = true; }
    void on_send_completed(StreamSocket&, Cookie, Outcome) override {}
    void on_received(StreamSocket&, const Received& got) override {
        received += got.bytes;
        receiving = false;
    }
    void on_readable(StreamSocket& stream) override {
        EXPECT_FALSE(stream.peek().empty());
        ++readable;
        if (reads) read(stream);
    }
    void on_end_of_stream(StreamSocket& stream) override {
        EXPECT_TRUE(stream.peek().empty());
        ended = true;
    }
    void on_lost(StreamSocket& stream, std::uint64_t bytes) override {
        lost = bytes;
        read(stream);
    }
    void on_closed(StreamSocket&, const Closed& why) override { closed = why; }

    void read(StreamSocket& stream) {
        for (auto bytes = stream.peek(); !bytes.empty(); bytes = stream.peek()) {
            bytes = bytes.first(std::min(step_, bytes.size()));
            for (const std::byte each : bytes)
                wrong += each != content(1, received++) ? 1U : 0U;
            stream.consume(bytes.size());
            ++parts;
        }
    }

    bool connected = false;
    bool reads = true;
    bool receiving = false;
    bool ended = false;
    std::size_t readable = 0;
    std::size_t parts = 0;
    std::uint64_t received = 0;
    std::uint64_t wrong = 0;
    std::uint64_t lost = 0;
    std::optional<Closed> closed;
    std::unique_ptr<StreamSocket> socket;

  private:
    std::size_t step_;
};

class Peeking : public testing::TestWithParam<Stage>, private StreamListener::Handler {
  protected:
    void establish(std::uint64_t ring_bytes) {
        options.remote_writes = std::get<1>(GetParam());
        options.receiver = improved_receiver(ring_bytes);
        listener = std::make_unique<StreamListener>(
            bed.transport(),
            StreamListener::Options{.listen = {bed.address()}, .allow_remote_anonymous = true},
            static_cast<StreamListener::Handler&>(*this));
        client.socket = std::make_unique<StreamSocket>(bed.transport(), options, client);
        client.socket->connect(listener->endpoints().front().address);
        ASSERT_TRUE(bed.run_until([&] { return client.connected && reader.connected; }));
    }
    void send_all(std::uint64_t total, std::size_t each) {
        ASSERT_TRUE(bed.run_until([&] {
            while (client.sent < total && client.sends - client.sends_completed < 4) {
                const auto left = static_cast<std::size_t>(total - client.sent);
                if (client.send(std::min(left, each)) != Status::ok) break;
            }
            if (reader.reads && idle_turns++ % 3 == 0) reader.read(*reader.socket);
            return reader.received == total || !reader.reads;
        }));
    }

    netio::test::TestBed bed{std::get<0>(GetParam())};
    StreamSocket::Options options;
    Side client{1};
    Reader reader{777};
    std::unique_ptr<StreamListener> listener;
    std::size_t idle_turns = 0;

  private:
    void on_incoming(IncomingStream& incoming) override {
        reader.socket = incoming.accept(options, reader);
    }
};

INSTANTIATE_TEST_SUITE_P(Stages, Peeking, all_stages(), stage_name);

TEST_P(Peeking, AllBytesAreReadInTheRingWhichIsFreeAgain) {
    establish(10'000);
    send_all(200'000, 3'333);
    EXPECT_EQ(reader.wrong, 0U);
    EXPECT_GE(reader.parts, 200'000U / 777U);
    EXPECT_GT(reader.readable, 1U);
    EXPECT_EQ(reader.socket->counters().received.direct_bytes, 0U);
    client.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return reader.ended; }));
    reader.socket->shutdown_send();
    ASSERT_TRUE(bed.run_until([&] { return client.closed && reader.closed; }));
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << to_string(*client.closed);
}

// A stream may be read in both ways, one after the other.
TEST_P(Peeking, AReceiveThatIsPostedGetsTheFollowingBytes) {
    establish(10'000);
    send_all(5'000, 1'000);
    RegisteredBuffer memory{20'000, netio::Access::remote_write};
    reader.receiving = true;
    ASSERT_EQ(reader.socket->receive(memory.slice(), Cookie{1}, Fill::all), Status::ok);
    EXPECT_TRUE(reader.socket->peek().empty());
    for (int i = 0; i < 5; ++i)
        ASSERT_EQ(client.send(5'000), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return !reader.receiving; }));
    for (std::size_t i = 0; i < memory.size(); ++i)
        ASSERT_EQ(memory.data()[i], content(1, 5'000 + i)) << i;
    ASSERT_TRUE(bed.run_until([&] {
        reader.read(*reader.socket);
        return reader.received == 30'000;
    }));
    EXPECT_EQ(reader.wrong, 0U);
}

TEST_P(Peeking, TheEndIsReportedOnceTheLastByteIsConsumed) {
    establish(10'000);
    reader.reads = false;
    ASSERT_EQ(client.send(9'000), Status::ok);
    client.socket->shutdown_send();
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 1 && reader.readable > 0; }));
    bed.let_pass(std::chrono::milliseconds{20});
    EXPECT_FALSE(reader.ended);
    ASSERT_TRUE(bed.run_until([&] {
        reader.read(*reader.socket);
        return reader.received == 9'000 && reader.ended;
    }));
    EXPECT_EQ(reader.wrong, 0U);
}

TEST_P(Peeking, WhatHadArrivedIsReadWhenTheConnectionIsLost) {
    establish(10'000);
    reader.reads = false;
    ASSERT_EQ(client.send(6'000), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 1 && reader.readable > 0; }));
    // The sender learns of the bytes in the ring only if they are acknowledged.
    ASSERT_TRUE(bed.run_until([&] { return reader.socket->peek().size() == 6'000; }));
    client.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return reader.closed.has_value(); }));
    EXPECT_EQ(reader.lost, 6'000U);
    EXPECT_EQ(reader.received, 6'000U);
    EXPECT_EQ(reader.wrong, 0U);
    EXPECT_TRUE(reader.socket->peek().empty());
}

TEST(StreamWithReceiveMemory, IsRefusedByItsConstructor) {
    std::vector<std::byte> users(1 << 20);
    StreamSocket::Options options;
    options.session.receive_memory = std::make_shared<netio::ReceiveMemory>(users);
    EXPECT_THROW(validate(options), std::invalid_argument);
}

} // namespace
} // namespace netio::stream::test::peek_test
