// SPDX-License-Identifier: Apache-2.0

// A client with a key connects to hosts that accept without a proof and send packets that crash the
// tcp provider of libfabric 1.17, all at the same moment, while the client's loop is busy.

#include "netio/fabric.hpp"
#include "tests/scenario/access/gate_fixture.hpp"
#include "tests/support/raw_tcp_peer.hpp"

#include <deque>

namespace netio::test::unauthenticated_peer_test {
namespace {

constexpr std::size_t attempt_count = 64;
constexpr std::size_t request_bytes = 288;

// How a host answers a connection.
enum class Manner : std::uint8_t {
    together,   // answer and packets together, after all attempts have begun
    in_advance, // before the request has arrived
    in_pieces,  // the header of the answer, then the rest
    with_end,   // and shuts the connection down afterwards
};

class UnauthenticatedPeer : public testing::TestWithParam<Manner> {
  protected:
    // An unsolicited acknowledgement and a tagged message.
    static Data fatal_packets() {
        Data all;
        for (int i = 0; i < 4; ++i) {
            for (const auto& each : {RawTcpPeer::packet({RawTcpPeer::message, 0, 2}),
                                     RawTcpPeer::packet({RawTcpPeer::tagged, 1}, Data(8))})
                all.insert(all.end(), each.begin(), each.end());
        }
        return all;
    }
    static Data accept() {
        ConnectionData data;
        const std::size_t size = encode(gate_hello(), data);
        return RawTcpPeer::accept_message(std::span{data}.first(size));
    }
    // Runs the loop turn by turn. Returns false if it took too long.
    bool run_until(const std::function<bool()>& done) {
        bool late = false;
        Timer limit{loop, [&] { late = true; }};
        limit.start(std::chrono::minutes{2});
        while (!done() && !late)
            loop.run_once();
        return !late;
    }
    void take_connections() {
        std::optional<RawTcpPeer> peer;
        for (host.accept(peer); peer; peer.reset(), host.accept(peer)) {
            if (GetParam() == Manner::in_advance) answer(*peer);
            peers.push_back({.socket = std::move(*peer)});
        }
    }
    std::size_t asked() {
        std::size_t count = 0;
        for (Peer& each : peers) {
            each.read += each.socket.receive(request_bytes - each.read);
            count += each.read == request_bytes ? 1 : 0;
        }
        return count;
    }
    static void answer(const RawTcpPeer& peer) {
        Data bytes = accept();
        const Data packets = fatal_packets();
        bytes.insert(bytes.end(), packets.begin(), packets.end());
        std::span<const std::byte> rest{bytes};
        if (GetParam() == Manner::in_pieces) {
            EXPECT_EQ(peer.send(rest.first(32)), 32U);
            rest = rest.subspan(32);
        }
        EXPECT_EQ(peer.send(rest), rest.size());
        if (GetParam() == Manner::with_end) peer.shutdown_send();
    }

    struct Peer {
        RawTcpPeer socket;
        std::size_t read = 0;
    };
    // A turn ends after each event.
    EventLoop loop{{.mode = LoopMode::busy, .turn_limit = std::chrono::microseconds{1}}};
    std::unique_ptr<Transport> transport = open_fabric(loop, {.provider = "tcp"});
    KeyFiles files;
    RawTcpHost host;
    std::deque<Peer> peers;
};

TEST_P(UnauthenticatedPeer, ReachesNoParserOfAClientWithAKey) {
    files.permit(7, "services=messages");
    const auto key = std::make_shared<const ClientKey>(
        ClientKey::Options{.file = files.client(7), .protection = access::Protection::privacy});
    std::deque<Visitor> visitors;
    for (std::size_t i = 0; i < attempt_count; ++i)
        visitors.emplace_back(*transport).connect(host.address(), key);
    ASSERT_TRUE(run_until([&] {
        take_connections();
        return asked() == attempt_count;
    }));
    if (GetParam() != Manner::in_advance)
        for (const Peer& each : peers)
            answer(each.socket);
    ASSERT_TRUE(run_until(
        [&] { return std::ranges::all_of(visitors, [](auto& each) { return each.is_done(); }); }));
    for (const Visitor& visitor : visitors) {
        EXPECT_EQ(visitor.opened, 0);
        ASSERT_EQ(visitor.closed.size(), 1U);
        EXPECT_EQ(visitor.closed[0].reason, CloseReason::not_admitted) << visitor.closed[0].detail;
    }
}

INSTANTIATE_TEST_SUITE_P(Manners, UnauthenticatedPeer,
                         testing::Values(Manner::together, Manner::in_advance, Manner::in_pieces,
                                         Manner::with_end),
                         [](const auto& manner) {
                             switch (manner.param) {
                             case Manner::together:
                                 return std::string{"together"};
                             case Manner::in_advance:
                                 return std::string{"in_advance"};
                             case Manner::in_pieces:
                                 return std::string{"in_pieces"};
                             case Manner::with_end:
                                 return std::string{"with_end"};
                             }
                             return std::string{"?"};
                         });

} // namespace
} // namespace netio::test::unauthenticated_peer_test
