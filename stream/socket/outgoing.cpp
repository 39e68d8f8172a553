// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/outgoing.hpp"

#include "stream/socket/frame_carrier.hpp"
#include "stream/socket/write_carrier.hpp"

#include <array>

namespace netio::stream::inline v0_2 {

ProtocolError Outgoing::open(const SenderOptions& options, const RemoteRing& ring, bool lent) {
    if (lent) {
        carrier_ = std::make_unique<WriteCarrier>();
    } else {
        carrier_ = std::make_unique<FrameCarrier>();
    }
    sender_.emplace(options);
    if (shut_down_) sender_->finish();
    return carrier_->on_ring(ring);
}

Status Outgoing::send(const Slice& slice, Cookie cookie, MemoryDomain& domain, TimePoint now) {
    if (shut_down_) return Status::closed;
    if (sends_.is_full()) return Status::again;
    if (slice.size > 0) carrier_->prepare(slice, domain);
    sender_->submit(SendId{sends_.push(slice, cookie)}, slice.size);
    times_.on_posted(now);
    return Status::ok;
}

void Outgoing::shutdown() {
    if (shut_down_) return;
    shut_down_ = true;
    if (sender_) sender_->finish();
}

ProtocolError Outgoing::on_advert(const Advert& advert) {
    const ProtocolError error = carrier_->on_advert(advert);
    return error == ProtocolError::none ? sender_->on_advert(advert) : error;
}

ProtocolError Outgoing::on_ring(const RemoteRing& ring) {
    const ProtocolError error = sender_->on_ring(ring.bytes);
    // R15: what is sent from now on goes there.
    return error == ProtocolError::none ? carrier_->on_ring(ring) : error;
}

void Outgoing::move(Session& session) {
    std::array<Piece, Carrier::piece_limit> pieces;
    const auto room = std::span{pieces}.first(carrier_->piece_count(session));
    while (queued_bytes() > 0) {
        if (!carrier_->is_ready(session)) {
            if (!waiting_for_capacity_) ++waits_for_capacity_;
            waiting_for_capacity_ = true;
            return;
        }
        const auto transfer = sender_->next_transfer(room, carrier_->joined_count(session));
        if (!transfer) return;
        waiting_for_capacity_ = false;
        if (!take(*transfer, room.first(transfer->piece_count), session)) return;
    }
}

bool Outgoing::take(const Transfer& transfer, std::span<const Piece> pieces, Session& session) {
    std::array<Slice, Carrier::piece_limit> slices;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& piece = pieces[i];
        slices[i] = sends_.slice(static_cast<std::uint64_t>(piece.id), piece.offset, piece.bytes);
    }
    return carrier_->take(transfer, std::span{slices}.first(pieces.size()), session);
}

std::optional<Cookie> Outgoing::next_done(TimePoint now) {
    if (!sender_ || !sender_->next_completion()) return std::nullopt;
    times_.on_sent(now);
    return sends_.pop_front();
}

std::optional<Cookie> Outgoing::next_canceled() {
    if (sends_.empty()) return std::nullopt;
    times_.on_canceled();
    return sends_.pop_front();
}

} // namespace netio::stream::inline v0_2
