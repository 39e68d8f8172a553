// SPDX-License-Identifier: Apache-2.0

// A subscriber that knows the tcp provider's own packets sends packets that no subscriber sends:
// those that the provider accepts without a completion. Honest subscribers are connected at the
// same time.

#include "netio/base/frame.hpp"
#include "netio/fabric.hpp"
#include "netio/session/handshake.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/raw_tcp_peer.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

#include <fstream>
#include <vector>

namespace netio::pubsub::test::forged_packets_test {
namespace {

using netio::test::RawTcpPeer;
using testing::HasSubstr;

class ForgedPackets : public PubSubScenario {
  protected:
    void start(std::size_t honest_count) {
        published = 0;
        publisher = unbuffered({});
        for (std::size_t i = 0; i < honest_count; ++i)
            honest.push_back(&subscribe({range(1, 1)}));
        ASSERT_TRUE(run_until([&] {
            return std::ranges::all_of(
                honest, [](const auto* each) { return each->actor.subscribed.size() == 1; });
        }));
    }
    // Connects, and sends its open frame.
    RawTcpPeer enter() {
        Hello hello{.service = Service::publish_subscribe,
                    .receive_buffer_bytes = 1 << 20,
                    .receive_count = 8,
                    .heartbeat_ms = 0,
                    .instance = 1,
                    .service_data = {}};
        hello.service_data.size = 4;
        hello.service_data.bytes[3] = std::byte{0x40}; // accepts messages of 1 GiB
        ConnectionData data;
        const std::size_t size = encode(hello, data);
        const int connected_before = publisher_actor.connected;
        RawTcpPeer peer{address};
        peer.request(std::span{data}.first(size));
        EXPECT_TRUE(
            run_until([&] { return peer.receive(1024) > 0 || an_honest_one_was_cut_off(); }));
        std::array<std::byte, frame_header_bytes> open{};
        netio::encode(FrameHeader{.kind = static_cast<std::uint8_t>(FrameKind::open)}, open);
        peer.send(RawTcpPeer::packet({}, open));
        EXPECT_TRUE(run_until([&] {
            return publisher_actor.connected > connected_before || an_honest_one_was_cut_off();
        }));
        return peer;
    }
    static constexpr std::size_t too_much = 64U << 20U;
    // From libfabric 1.18 on, one call of the provider handles everything that the kernel holds, at
    // 1,100 bytes for 16 (docs/upstream), so memory is bounded only by what the peer has sent.
    static constexpr std::size_t flood_limit = 4U << 20U;
    static bool provider_returns_in_time() { return netio::fabric_version().starts_with("1.17"); }
    // Publishes to the honest subscribers at the same time.
    void flood_until_cut_off(const RawTcpPeer& peer, std::span<const std::byte> packet) {
        std::vector<std::byte> many;
        for (int i = 0; i < 2000; ++i)
            many.insert(many.end(), packet.begin(), packet.end());
        std::size_t sent = 0;
        const std::size_t before = resident_bytes();
        ASSERT_TRUE(run_until([&] {
            if (provider_returns_in_time() || sent < flood_limit)
                sent += peer.send(std::span{many}.subspan(sent % packet.size()));
            if (publisher->publish(Fid{1}, memory.slice(), Cookie{0}) == Status::ok) ++published;
            return peer.is_cut_off() || an_honest_one_was_cut_off() ||
                   (provider_returns_in_time() && resident_bytes() > before + 4 * too_much);
        }));
        EXPECT_GT(sent, 0U);
        if (provider_returns_in_time()) {
            EXPECT_LT(resident_bytes(), before + too_much);
        }
    }
    static std::size_t resident_bytes() {
        std::size_t pages = 0;
        std::ifstream{"/proc/self/statm"} >> pages >> pages;
        return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    }
    // This must not happen, so the test does not wait for it.
    bool an_honest_one_was_cut_off() const {
        return std::ranges::any_of(honest,
                                   [](const auto* each) { return !each->actor.closed.empty(); });
    }
    void expect_complete() {
        ASSERT_TRUE(run_until([&] {
            return std::ranges::all_of(
                honest, [&](const auto* each) { return each->actor.messages == published; });
        }));
        for (const auto* each : honest)
            EXPECT_THAT(each->actor.closed, testing::IsEmpty());
        for (const Closed& closed : publisher_actor.closed)
            EXPECT_EQ(closed.reason, CloseReason::protocol_error) << closed.detail;
    }

    RegisteredBuffer memory{1000};
    std::size_t published = 0;
    std::unique_ptr<PublishSocket> publisher;
    std::vector<Subscription*> honest;
};

TEST_P(ForgedPackets, PacketsWithoutACompletionEndOnlyTheirConnection) {
    start(2);
    for (const auto& packet :
         {RawTcpPeer::Packet{RawTcpPeer::write, RawTcpPeer::confirm}, // confirmations accumulate
          RawTcpPeer::Packet{RawTcpPeer::read},                       // answers accumulate
          RawTcpPeer::Packet{RawTcpPeer::write}}) {
        const std::size_t closed_before = publisher_actor.closed.size();
        const RawTcpPeer peer = enter();
        flood_until_cut_off(peer, RawTcpPeer::packet(packet));
        ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() > closed_before; }));
        EXPECT_THAT(publisher_actor.closed.back().detail, HasSubstr("bytes that are not messages"));
    }
    expect_complete();
}

// With other connections or without, which decides whether the provider's report identifies one.
TEST_P(ForgedPackets, AnEmptyWriteWithDataEndsOnlyItsConnection) {
    for (const std::size_t others : {0U, 2U}) {
        honest.clear();
        start(others);
        const std::size_t closed_before = publisher_actor.closed.size();
        const RawTcpPeer peer = enter();
        flood_until_cut_off(peer, RawTcpPeer::packet({RawTcpPeer::write, RawTcpPeer::with_data}));
        ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() > closed_before; }));
        expect_complete();
    }
}

// The honest subscriber's other end is in another queue, so that it is alone here apart from those
// that come and go: a completion left by a departed one belongs to no connection.
TEST_P(ForgedPackets, AnEmptyWriteIsNotBlamedOnTheRemainingPeer) {
    start(0);
    const auto elsewhere = netio::open_fabric(loop());
    Subscription only;
    SubscribeSocket::Options options;
    options.publisher = address;
    only.socket = std::make_unique<SubscribeSocket>(*elsewhere, options, only.actor);
    only.socket->subscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return only.actor.subscribed.size() == 1; }));
    honest = {&only};
    for (int i = 0; i < 20; ++i) {
        const std::size_t closed_before = publisher_actor.closed.size();
        const RawTcpPeer peer = enter();
        flood_until_cut_off(peer, RawTcpPeer::packet({RawTcpPeer::write, RawTcpPeer::with_data}));
        ASSERT_THAT(only.actor.closed, testing::IsEmpty());
        ASSERT_TRUE(run_until([&] {
            return publisher_actor.closed.size() > closed_before || an_honest_one_was_cut_off();
        }));
        ASSERT_THAT(only.actor.closed, testing::IsEmpty());
    }
    expect_complete();
    honest.clear();
}

// Messages are counted as they are reported, however many there are.
TEST_P(ForgedPackets, AnHonestPeerMaySendEndlessly) {
    start(1);
    for (std::uint64_t fid = 10; fid < 10'010; ++fid) {
        honest[0]->socket->subscribe(range(fid, fid));
        if (fid % 64 == 0) {
            ASSERT_TRUE(run_until([&] { return honest[0]->actor.subscribed.size() > fid - 10; }));
        }
    }
    ASSERT_TRUE(run_until([&] { return honest[0]->actor.subscribed.size() == 10'001; }));
    EXPECT_THAT(publisher_actor.closed, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Beds, ForgedPackets, testing::Values(Bed::fabric_tcp), bed_name);

} // namespace
} // namespace netio::pubsub::test::forged_packets_test
