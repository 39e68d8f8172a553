// SPDX-License-Identifier: Apache-2.0

// Unauthenticated peers that know the tcp provider's own packets, including those that crash a
// process and those that write beyond a buffer. With keys, none of these peers ever gets an
// endpoint that would read such a packet.

#include "tests/scenario/access/gate_fixture.hpp"
#include "tests/support/on_path.hpp"
#include "tests/support/raw_tcp_peer.hpp"

#include <deque>

namespace netio::test::stranger_packets_test {
namespace {

constexpr std::size_t honest_frames = 300;

class StrangerPackets : public GateTest {
  protected:
    // A write whose address and length together overflow.
    static Data wrapped_write() {
        Data bytes(16 + 24 + 64, std::byte{0x66});
        bytes[0] = std::byte{3};
        bytes[1] = std::byte{RawTcpPeer::write};
        bytes[2] = bytes[3] = bytes[4] = bytes[7] = std::byte{0};
        bytes[5] = std::byte{1}; // one target
        bytes[6] = std::byte{40};
        wire::store(bytes.data() + 8, static_cast<std::uint64_t>(bytes.size()));
        wire::store(bytes.data() + 16, ~std::uint64_t{0} - 63);
        wire::store(bytes.data() + 24, std::uint64_t{128});
        wire::store(bytes.data() + 32, std::uint64_t{1});
        return bytes;
    }
    // All of them in sequence, as if the accept answer had not arrived yet.
    static Data all_packets() {
        Data all = wrapped_write();
        for (const RawTcpPeer::Operation operation :
             {RawTcpPeer::message, RawTcpPeer::tagged, RawTcpPeer::read, RawTcpPeer::read_answer,
              RawTcpPeer::write}) {
            for (const unsigned flags : {0U, 1U, 4U, 5U, 0xffffU}) {
                for (const unsigned kind : {0U, 2U, 255U}) {
                    const Data one =
                        RawTcpPeer::packet({operation, static_cast<std::uint16_t>(flags),
                                            static_cast<std::uint8_t>(kind)},
                                           Data(40));
                    all.insert(all.end(), one.begin(), one.end());
                }
            }
        }
        return all;
    }
    // The connection request of an unauthenticated peer: without a key, or claiming to have one.
    static Data request_with(std::uint8_t flags, std::uint8_t kind) {
        ConnectionData data{};
        Hello hello = gate_hello();
        hello.flags = flags;
        const std::size_t size = encode(hello, data);
        data[size] = std::byte{7};
        data[size + 1] = std::byte{kind};
        return {data.begin(), data.end()};
    }
};

TEST_P(StrangerPackets, FindNoEndpointAndDoNotAffectClientsWithAKey) {
    files.permit(7, "services=messages");
    OnPath counted{bed.transport()};
    over = &counted;
    session_options.handshake_timeout = std::chrono::hours{1};
    listen();
    Visitor honest{bed.transport()};
    visit(honest, key(files.client(7), access::Protection::privacy));
    ASSERT_EQ(honest.opened, 1);
    ASSERT_TRUE(bed.run_until([&] { return open == 1; }));
    ASSERT_EQ(counted.endpoints, 1U);

    const Data packets = all_packets();
    std::deque<RawTcpPeer> strangers;
    std::size_t came = 0;
    std::size_t sent_frames = 0;
    ASSERT_TRUE(bed.run_until([&] {
        RawTcpPeer& stranger = strangers.emplace_back(address);
        stranger.request(request_with(came % 3 == 0 ? 0 : 1, static_cast<std::uint8_t>(came % 2)));
        static_cast<void>(stranger.send(packets));
        ++came;
        for (const RawTcpPeer& each : strangers)
            static_cast<void>(each.send(packets));
        if (strangers.size() > 20) strangers.pop_front();
        if (sent_frames < honest_frames && honest.session->has_capacity()) {
            RegisteredBuffer memory{40}; // small: it is copied
            wire::store(memory.data(), static_cast<std::uint64_t>(sent_frames));
            const Slice slice = memory.slice();
            if (honest.session->send({.kind = 16, .slices = {&slice, 1}}, {}) == Status::ok)
                ++sent_frames;
        }
        return frames.size() == honest_frames || !closed.empty();
    }));
    EXPECT_TRUE(closed.empty()) << closed.front().detail;
    ASSERT_EQ(frames.size(), honest_frames);
    for (std::size_t at = 0; at < honest_frames; ++at)
        EXPECT_EQ(wire::load<std::uint64_t>(frames[at].data()), at);
    EXPECT_GE(came, honest_frames);
    EXPECT_EQ(counted.endpoints, 1U) << "of the honest client";
    EXPECT_EQ(keys->counters().admitted, 1U);
    strangers.clear();
    honest.session->close();
    ASSERT_TRUE(bed.run_until([&] { return sessions.empty(); }));
    listener.reset();
}

INSTANTIATE_TEST_SUITE_P(Beds, StrangerPackets, testing::Values(Bed::fabric_tcp), bed_name);

} // namespace
} // namespace netio::test::stranger_packets_test
