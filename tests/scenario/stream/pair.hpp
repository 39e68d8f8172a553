// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two connected stream sockets; each sends known bytes and checks the received ones.

#include "stream/socket/stream_listener.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace netio::stream::test {

using netio::Closed;
using netio::CloseReason;
using netio::Cookie;
using netio::RegisteredBuffer;
using netio::Slice;
using netio::Status;
using Outcome = netio::Completion::Outcome;

// The byte at a position of a stream.
inline std::byte content(std::uint64_t seed, std::uint64_t position) {
    const std::uint64_t x = (seed + position) * 0x9E3779B97F4A7C15;
    return static_cast<std::byte>(x >> 56U);
}

// One side: its socket, its memory, and its callbacks. Sends and receives use parts of two buffers,
// each used as a ring.
class Side final : public StreamSocket::Handler {
  public:
    explicit Side(std::uint64_t seed, std::size_t buffer_bytes = 1 << 20)
        : seed_{seed}, outgoing{buffer_bytes}, incoming{buffer_bytes, netio::Access::remote_write} {
    }

    std::unique_ptr<StreamSocket> socket;

    // Sends the next bytes of the stream.
    Status send(std::size_t bytes) {
        if (send_at_ + bytes > outgoing.size()) send_at_ = 0;
        const Slice slice = outgoing.slice(send_at_, bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            slice.data[i] = content(seed_, sent + i);
        const Status status = socket->send(slice, Cookie{sends});
        if (status != Status::ok) return status;
        ++sends;
        sent += bytes;
        send_at_ += bytes;
        return status;
    }
    Status receive(std::size_t bytes, Fill fill) {
        if (receive_at_ + bytes > incoming.size()) receive_at_ = 0;
        const Slice slice = incoming.slice(receive_at_, bytes);
        const Status status = socket->receive(slice, Cookie{receives}, fill);
        if (status != Status::ok) return status;
        ++receives;
        receive_at_ += bytes;
        lent_.push_back(slice);
        return status;
    }

    // Resets the state for the next connection.
    void forget() {
        connected = ended = false;
        closed.reset();
        sends = sends_completed = sends_done = receives = receives_completed = 0;
        sent = received = 0;
        lent_.clear();
    }

    void on_connected(StreamSocket&) override {
        connected = true;
        if (at_connected) at_connected();
    }
    void on_send_completed(StreamSocket&, Cookie key, Outcome outcome) override {
        if (at_raw_sent) return at_raw_sent();
        EXPECT_EQ(static_cast<std::uint64_t>(key), sends_completed++) << "in order";
        if (outcome == Outcome::done) ++sends_done;
        if (at_sent) at_sent();
    }
    void on_received(StreamSocket&, const Received& got) override {
        if (at_raw) return at_raw(got);
        EXPECT_EQ(static_cast<std::uint64_t>(got.cookie), receives_completed++) << "in order";
        ASSERT_FALSE(lent_.empty());
        const Slice slice = lent_.front();
        lent_.pop_front();
        ASSERT_LE(got.bytes, slice.size);
        for (std::size_t i = 0; i < got.bytes; ++i) {
            if (slice.data[i] == content(peer_seed, received + i)) continue;
            ADD_FAILURE() << "wrong byte at " << received + i;
            break;
        }
        received += got.bytes;
        last = got;
        if (at_received) at_received(got);
    }
    void on_end_of_stream(StreamSocket&) override {
        EXPECT_FALSE(ended);
        ended = true;
        if (at_end) at_end();
    }
    void on_writable(StreamSocket&) override { ++writable; }
    void on_lost(StreamSocket&, std::uint64_t bytes) override {
        ++losses;
        if (at_lost) at_lost(bytes);
    }
    void on_closed(StreamSocket&, const Closed& why) override {
        EXPECT_EQ(sends_completed, sends) << "every send has ended before on_closed";
        EXPECT_EQ(receives_completed, receives);
        closed = why;
        if (at_closed) at_closed();
    }

    std::uint64_t seed_;
    std::uint64_t peer_seed = 0;
    RegisteredBuffer outgoing;
    RegisteredBuffer incoming;
    bool connected = false;
    bool ended = false;
    std::uint64_t sends = 0;
    std::uint64_t sends_completed = 0;
    std::uint64_t sends_done = 0;
    std::uint64_t receives = 0;
    std::uint64_t receives_completed = 0;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::optional<Received> last;
    std::optional<Closed> closed;
    std::size_t losses = 0;
    std::size_t writable = 0;
    std::function<void(std::uint64_t)> at_lost;
    std::function<void()> at_connected, at_sent, at_end, at_closed;
    std::function<void(const Received&)> at_received;
    // For sends and receives made by the test itself; then nothing else is checked.
    std::function<void(const Received&)> at_raw;
    std::function<void()> at_raw_sent;

  private:
    std::size_t send_at_ = 0;
    std::size_t receive_at_ = 0;
    std::deque<Slice> lent_;
};

class Pair : private StreamListener::Handler {
  protected:
    explicit Pair(netio::test::Bed where, RemoteWrites writes) : bed{where}, remote_writes{writes} {
        client.peer_seed = 2;
        server.peer_seed = 1;
    }
    ~Pair() = default;
    // The options of a side with the transfer mode under test.
    StreamSocket::Options carried(StreamSocket::Options options = {}) const {
        options.remote_writes = remote_writes;
        return options;
    }
    void listen(const StreamSocket::Options& options = {}) {
        server_options = carried(options);
        listener = std::make_unique<StreamListener>(
            bed.transport(),
            StreamListener::Options{.listen = {bed.address()}, .allow_remote_anonymous = true},
            static_cast<StreamListener::Handler&>(*this));
    }
    void connect(const StreamSocket::Options& options = {}) {
        client.socket = std::make_unique<StreamSocket>(bed.transport(), carried(options), client);
        client.socket->connect(listener->endpoints().front().address);
    }
    void establish(const StreamSocket::Options& client_options = {},
                   const StreamSocket::Options& server_side = {}) {
        listen(server_side);
        connect(client_options);
        ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    }

    netio::test::TestBed bed;
    const RemoteWrites remote_writes;
    Side client{1};
    Side server{2};
    StreamSocket::Options server_options;
    std::unique_ptr<StreamListener> listener;
    bool refuse = false;
    std::function<void()> at_refused;

  private:
    void on_incoming(IncomingStream& incoming) override {
        if (!refuse) {
            server.socket = incoming.accept(carried(server_options), server);
        } else if (at_refused) {
            at_refused();
        }
    }
};

// A bed, and how bytes are transferred there.
using Stage = std::tuple<netio::test::Bed, RemoteWrites>;

inline auto stages_on(const testing::internal::ParamGenerator<netio::test::Bed>& beds) {
    return testing::Combine(beds, testing::Values(RemoteWrites::trusted, RemoteWrites::never));
}
inline auto all_stages() {
    return stages_on(netio::test::all_beds());
}
inline auto simulated_stages() {
    return stages_on(netio::test::simulated_beds());
}
inline std::string name_of(const Stage& stage) {
    return netio::test::bed_name({std::get<0>(stage), 0}) +
           (std::get<1>(stage) == RemoteWrites::never ? "_frames" : "_writes");
}
inline std::string stage_name(const testing::TestParamInfo<Stage>& info) {
    return name_of(info.param);
}

// The fixture of a test that runs on every bed, with remote writes and with frames.
class PairOnBed : public testing::TestWithParam<Stage>, protected Pair {
  protected:
    PairOnBed() : Pair{std::get<0>(GetParam()), std::get<1>(GetParam())} {}
    bool has_writes() const { return remote_writes != RemoteWrites::never; }
};

} // namespace netio::stream::test
