// SPDX-License-Identifier: Apache-2.0

// The rings of a stream socket: announced when the connection opens, and again when one has grown
// (docs/stream-protocol.md, R15 and P11).

#include "stream/socket/frames.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/base/check.hpp"

#include <algorithm>

namespace netio::stream::inline v0_2 {

void StreamSocket::note_round_trip(TimePoint begin) {
    round_trip_ = std::min<RingGauge::Duration>(round_trip_, transport_.loop().now() - begin);
}

// P11: from sending our first ring until the answer, the peer's first control message; nothing else
// is under way then. A blocking user may see the answer late, so the handshake is an upper bound.
void StreamSocket::make_gauge() {
    if (gauge_) return;
    note_round_trip(ring_announced_at_);
    gauge_.emplace(options_.round_trip.count() > 0 ? options_.round_trip : round_trip_);
}

// Throws FabricError if there is no memory, or no more of it may be locked; then nothing is added.
RemoteRing StreamSocket::add_ring(std::uint64_t bytes) {
    auto ring =
        std::make_unique<RegisteredBuffer>(static_cast<std::size_t>(bytes), Access::remote_write);
    const Registration& registration = ring->registration(session_->domain());
    rings_.push_back(std::move(ring));
    return {.address = registration.base(), .key = registration.key(), .bytes = bytes};
}

Status StreamSocket::announce(const RemoteRing& ring) {
    const auto message = encode_ring(ring);
    return session_->send({.kind = ring_kind, .flags = 0, .extension = message, .slices = {}}, {});
}

// --- the peer's ---------------------------------------------------------------------------------

void StreamSocket::take_ring(std::span<const std::byte> body) {
    RemoteRing ring;
    const DecodeError error = decode_ring(body, ring);
    if (error != DecodeError::none) {
        return fail("sent a malformed ring: " + std::string{to_string(error)});
    }
    if (state_ == State::linking) return take_first_ring(ring);
    if (!is_good(sender_->on_ring(ring.bytes))) return;
    peer_ring_ = ring; // R15: what is sent from now on goes there
    wake();
}

void StreamSocket::take_first_ring(const RemoteRing& ring) {
    if (!accepted_at_) note_round_trip(ring_announced_at_);
    peer_ring_ = ring;
    SenderOptions options = options_.sender;
    options.ring_bytes = ring.bytes;
    options.longest_transfer_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(
        options.longest_transfer_bytes, session_->capabilities().message_bytes));
    if (!peer_.advertises) options.mode = TransferMode::indirect_only;
    if (!peer_.reports_no_advert) options.patience_threshold_bytes = unlimited_bytes;
    if (!peer_.ring_may_grow) options.report_ring_waits = false;
    if (ring.bytes == 0) {
        if (options.mode == TransferMode::indirect_only) {
            return fail("has no ring, and this side can only send through one");
        }
        options.mode = TransferMode::direct_only;
    }
    sender_.emplace(options);
    state_ = State::open;
    providers_.clear();
    wake();
    if (session_->has_capacity()) static_cast<void>(send_control({})); // the answer: make_gauge
    handler_.on_connected(*this);                                      // may destroy this socket
}

// --- ours ---------------------------------------------------------------------------------------

// P11. Whatever is in the way of a larger ring, the stream goes on with the one it has.
void StreamSocket::grow_ring() {
    const auto bytes = receiver_->wanted_ring();
    if (!bytes) return;
    const ReceiverCounters& counters = receiver_->counters();
    const auto now = transport_.loop().now().time_since_epoch();
    const bool is_worth_it =
        gauge_ && gauge_->confirms(now, counters.indirect_bytes, counters.ring_bytes);
    if (!is_worth_it || !session_->has_capacity())
        return receiver_->postpone_ring(); // for the time being
    RemoteRing ring;
    try {
        ring = add_ring(*bytes);
    } catch (const std::exception&) { // ReceiverCounters::ring_refusals tells
        return receiver_->refuse_ring();
    }
    receiver_->announce_ring();
    static_cast<void>(announce(ring)); // a connection that broke says so by on_closed
}

void StreamSocket::drop_unused_ring() {
    if (!receiver_) return;
    const auto unused = receiver_->next_unused_ring();
    if (!unused) return;
    NETIO_CHECK(*unused == first_ring_);
    rings_.pop_front();
    ++first_ring_;
}

} // namespace netio::stream::inline v0_2
