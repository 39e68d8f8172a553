// SPDX-License-Identifier: Apache-2.0

// A host that knows the tcp provider's own packets sends some that no server sends to a client that
// connects: after an answer without a valid proof, or as a peer that was accepted as a server.

#include "tests/scenario/access/gate_fixture.hpp"
#include "tests/support/raw_tcp_peer.hpp"

#include <unistd.h>

#include <fstream>

namespace netio::test::false_host_test {
namespace {

class FalseHost : public GateTest {
  protected:
    static constexpr std::size_t request_bytes = 288;

    // Connects, and answers like a server without keys.
    void connect(Visitor& visitor, std::shared_ptr<const ClientKey> with = nullptr) {
        look.start(Duration::zero());
        visitor.connect(host.address(), std::move(with));
        std::size_t asked = 0;
        peer.reset();
        ASSERT_TRUE(bed.run_until([&] {
            if (!peer) host.accept(peer);
            if (peer) asked += peer->receive(request_bytes - asked);
            return asked == request_bytes;
        }));
        ConnectionData data;
        const std::size_t size = encode(gate_hello(), data);
        peer->accept_request(std::span{data}.first(size));
    }
    static std::size_t resident_bytes() {
        std::size_t pages = 0;
        std::ifstream{"/proc/self/statm"} >> pages >> pages;
        return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    }
    // A message with this body, and all other packets that are complete in themselves.
    static Data packets() {
        Data all;
        for (const auto& each :
             {RawTcpPeer::packet({RawTcpPeer::message}, Data(frame_header_bytes)),
              RawTcpPeer::packet({RawTcpPeer::write, RawTcpPeer::with_data}),
              RawTcpPeer::packet({RawTcpPeer::write, RawTcpPeer::confirm}),
              RawTcpPeer::packet({RawTcpPeer::read}), RawTcpPeer::packet({RawTcpPeer::write})})
            all.insert(all.end(), each.begin(), each.end());
        return all;
    }

    RawTcpHost host;
    std::optional<RawTcpPeer> peer;
    // The host has no loop that could report incoming data, so this polls.
    Timer look{bed.loop(), [this] { look.start(std::chrono::milliseconds{1}); }};
};

TEST_P(FalseHost, ThatProvesNothingIsIgnoredByAClientWithAKey) {
    files.permit(7, "services=messages");
    for (int i = 0; i < 20; ++i) {
        Visitor visitor{bed.transport()};
        connect(visitor, key(files.client(7)));
        static_cast<void>(peer->send(packets()));
        ASSERT_TRUE(bed.run_until([&] {
            static_cast<void>(peer->send(packets()));
            return visitor.is_done();
        }));
        EXPECT_EQ(visitor.opened, 0);
        EXPECT_TRUE(visitor.frames.empty());
        ASSERT_EQ(visitor.closed.size(), 1U);
        EXPECT_EQ(visitor.closed[0].reason, CloseReason::not_admitted) << visitor.closed[0].detail;
    }
}

TEST_P(FalseHost, ThatSendsUnreportedPacketsIsDisconnected) {
    constexpr std::size_t too_much = 48U << 20U;
    for (const auto& packet :
         {RawTcpPeer::Packet{RawTcpPeer::write, RawTcpPeer::confirm},
          RawTcpPeer::Packet{RawTcpPeer::read}, RawTcpPeer::Packet{RawTcpPeer::write},
          RawTcpPeer::Packet{RawTcpPeer::write, RawTcpPeer::with_data}}) {
        Visitor visitor{bed.transport()};
        connect(visitor);
        ASSERT_TRUE(bed.run_until([&] { return visitor.is_done(); }));
        ASSERT_EQ(visitor.opened, 1) << visitor.closed.front().detail;
        Data many;
        const Data one = RawTcpPeer::packet(packet);
        for (int i = 0; i < 2000; ++i)
            many.insert(many.end(), one.begin(), one.end());
        std::size_t sent_bytes = 0;
        const std::size_t before = resident_bytes();
        ASSERT_TRUE(bed.run_until([&] {
            sent_bytes += peer->send(std::span{many}.subspan(sent_bytes % one.size()));
            return !visitor.closed.empty() || resident_bytes() > before + 4 * too_much;
        }));
        EXPECT_LT(resident_bytes(), before + too_much);
        ASSERT_EQ(visitor.closed.size(), 1U);
        EXPECT_EQ(visitor.closed[0].reason, CloseReason::protocol_error)
            << visitor.closed[0].detail;
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, FalseHost, testing::Values(Bed::fabric_tcp), bed_name);

} // namespace
} // namespace netio::test::false_host_test
