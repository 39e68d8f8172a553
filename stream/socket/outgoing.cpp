// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/outgoing.hpp"

#include <algorithm>
#include <array>

namespace netio::stream::inline v0_2 {
namespace {

// More pieces than this in one write are not worth their handling.
constexpr std::size_t piece_limit = 16;

} // namespace

void Outgoing::open(const SenderOptions& options, const RemoteRing& ring) {
    peer_ring_ = ring;
    sender_.emplace(options);
    if (shut_down_) sender_->finish();
}

Status Outgoing::send(const Slice& slice, Cookie cookie, MemoryDomain& domain) {
    if (shut_down_) return Status::closed;
    if (sends_.is_full()) return Status::again;
    if (slice.size > 0) static_cast<void>(slice.buffer->registration(domain));
    sender_->submit(SendId{sends_.push(slice, cookie)}, slice.size);
    return Status::ok;
}

void Outgoing::shutdown() {
    if (shut_down_) return;
    shut_down_ = true;
    if (sender_) sender_->finish();
}

ProtocolError Outgoing::on_ring(const RemoteRing& ring) {
    const ProtocolError error = sender_->on_ring(ring.bytes);
    if (error == ProtocolError::none) peer_ring_ = ring; // R15: what is sent from now on goes there
    return error;
}

void Outgoing::write(Session& session) {
    std::array<Piece, piece_limit> pieces;
    const auto room = std::span{pieces}.first(std::min(piece_limit, session.write_slice_limit()));
    while (sender_->queued_bytes() > 0) {
        if (!session.request_write_capacity()) {
            if (!waiting_for_capacity_) ++waits_for_capacity_;
            waiting_for_capacity_ = true;
            return;
        }
        const auto transfer = sender_->next_transfer(room);
        if (!transfer) return;
        waiting_for_capacity_ = false;
        if (!post(*transfer, room.first(transfer->piece_count), session)) return;
    }
}

bool Outgoing::post(const Transfer& transfer, std::span<const Piece> pieces, Session& session) {
    std::array<Slice, piece_limit> slices;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& piece = pieces[i];
        slices[i] = sends_.slice(static_cast<std::uint64_t>(piece.id), piece.offset, piece.bytes);
    }
    const RemoteSlice target =
        transfer.kind == TransferKind::direct
            ? RemoteSlice{transfer.address, transfer.key}
            : RemoteSlice{peer_ring_.address + transfer.ring_offset, peer_ring_.key};
    const OutgoingWrite write{
        .slices = std::span{slices}.first(pieces.size()),
        .target = target,
        .notice = encode_immediate({transfer.kind, transfer.bytes, transfer.notice})};
    return session.write(write, Cookie{transfer.number}) == Status::ok;
}

std::optional<Cookie> Outgoing::next_done() {
    if (!sender_ || !sender_->next_completion()) return std::nullopt;
    return sends_.pop_front();
}

std::optional<Cookie> Outgoing::next_canceled() {
    if (sends_.empty()) return std::nullopt;
    return sends_.pop_front();
}

} // namespace netio::stream::inline v0_2
