// SPDX-License-Identifier: Apache-2.0

// How the bytes of a stream socket travel: the state machines are asked what to do next, and it is
// done. One turn of progress() in this order: copy out of the ring, give the user what is complete,
// tell the peer (adverts before everything else lets it go on directly), send.

#include "stream/core/control.hpp"
#include "stream/socket/frames.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace netio::stream::inline v0_2 {

using Outcome = Completion::Outcome;

namespace {

// More pieces than this in one write are not worth their handling.
constexpr std::size_t piece_limit = 16;

} // namespace

// --- the user's calls -----------------------------------------------------------------------

Status StreamSocket::send(const Slice& slice, Cookie key) {
    if (state_ != State::open || finishing_) return Status::closed;
    if (sends_.size() >= options_.send_limit_count) return Status::again;
    if (slice.size > 0) static_cast<void>(slice.buffer->registration(session_->domain()));
    sender_->submit(SendId{first_send_ + sends_.size()}, slice.size);
    sends_.push_back({slice, key});
    wake();
    return Status::ok;
}

Status StreamSocket::receive(const Slice& slice, Cookie key, Fill fill) {
    if (state_ != State::open && state_ != State::draining) return Status::closed;
    if (receives_.size() >= options_.receive_limit_count) return Status::again;
    if (slice.size > 0 && session_) {
        NETIO_CHECK_MSG(slice.buffer->access() == Access::remote_write,
                        "receive into a buffer with Access::remote_write");
        static_cast<void>(slice.buffer->registration(session_->domain()));
    }
    const ReceiveId id{first_receive_ + receives_.size()};
    receives_.push_back({slice, key});
    receiver_->post(id, slice.size, fill == Fill::all);
    wake();
    return Status::ok;
}

StreamCounters StreamSocket::counters() const noexcept {
    StreamCounters counters = counters_;
    if (sender_) counters.sent = sender_->counters();
    if (receiver_) counters.received = receiver_->counters();
    return counters;
}

// --- one turn -------------------------------------------------------------------------------

void StreamSocket::wake() {
    if (!wake_.armed()) wake_.start({});
}

void StreamSocket::progress() {
    copy_out();
    drop_unused_ring();
    if (!deliver_receives() || !deliver_end()) return;
    if (session_ && state_ == State::open) {
        send_controls();
        grow_ring();
        send_transfers();
    }
    if (!deliver_sends()) return;
    end_link_when_done();
    // What arrived before the session was lost is still given to the user: all of it if the peer
    // had ended its stream, else what fits the receives that are posted.
    if (state_ != State::draining || wake_.armed()) return;
    if (closing_ || !fin_received_ || end_told_) end();
}

// A large copy must not keep the rest of the loop waiting, so it is done in steps.
void StreamSocket::copy_out() {
    if (!receiver_) return;
    std::uint64_t left = options_.copy_step_bytes;
    while (left > 0) {
        const auto copy = receiver_->next_copy(left);
        if (!copy) return;
        const Lent& receive = receives_[static_cast<std::size_t>(
            static_cast<std::uint64_t>(copy->id) - first_receive_)];
        const RegisteredBuffer& ring = *rings_[copy->ring - first_ring_];
        std::memcpy(receive.slice.data + copy->receive_offset, ring.data() + copy->ring_offset,
                    static_cast<std::size_t>(copy->bytes));
        receiver_->on_copied();
        left -= copy->bytes;
        // A completed receive leaves the queue of the state machine, not ours.
    }
    wake();
}

bool StreamSocket::deliver_receives() {
    const DestructionWatch watch{destroyed_};
    // Those posted in the handler have their turn later: after the end each completes at once.
    for (std::size_t left = receives_.size(); left > 0 && receiver_; --left) {
        const auto completion = receiver_->next_completion();
        if (!completion) break;
        ++first_receive_;
        const Lent receive = receives_.pop_front();
        handler_.on_received(*this, {.key = receive.key,
                                     .bytes = completion->bytes,
                                     .outcome = Outcome::done,
                                     .end_of_stream = completion->end_of_stream});
        if (watch.destroyed()) return false;
    }
    return true;
}

bool StreamSocket::deliver_end() {
    if (end_told_ || !receiver_ || !fin_received_ || !receiver_->is_finished()) return true;
    end_told_ = true;
    const DestructionWatch watch{destroyed_};
    handler_.on_end_of_stream(*this);
    return !watch.destroyed();
}

bool StreamSocket::deliver_sends() {
    const DestructionWatch watch{destroyed_};
    while (sender_ && sender_->next_completion()) {
        ++first_send_;
        handler_.on_send_completed(*this, sends_.pop_front().key, Outcome::done);
        if (watch.destroyed()) return false;
    }
    return true;
}

// --- to the peer ----------------------------------------------------------------------------

void StreamSocket::send_controls() {
    while (!free_controls_.empty() && session_->request_capacity()) {
        ControlMessage message;
        collect_control(
            *receiver_, [this](const LocalAdvert& advert) { return complete(advert); }, message);
        message.end_bytes = sender_->next_fin();
        if (message.item_count() == 0 || !send_control(message)) return;
        if (message.end_bytes) fin_sent_ = true;
    }
}

bool StreamSocket::send_control(const ControlMessage& message) {
    const std::uint32_t slot = free_controls_.back();
    Slice slice = control_memory_->slice(slot * control_limit_bytes, control_limit_bytes);
    slice.size = encode_control(message, {slice.data, slice.size});
    ++counters_.controls;
    const bool fits = slice.size <= frame_extension_limit; // and is copied then
    const OutgoingFrame frame{
        .kind = control_kind,
        .flags = 0,
        .extension = {slice.data, fits ? slice.size : 0},
        .slices = {&slice, fits ? std::size_t{0} : std::size_t{1}},
    };
    std::optional<Cookie> cookie;
    if (!fits) cookie = Cookie{control_cookie | slot};
    // A connection that broke says so by on_closed.
    if (session_->send(frame, cookie) != Status::ok) return false;
    if (!fits) free_controls_.pop_back();
    return true;
}

Advert StreamSocket::complete(const LocalAdvert& advert) {
    const Slice& slice =
        receives_[static_cast<std::size_t>(static_cast<std::uint64_t>(advert.id) - first_receive_)]
            .slice;
    const Registration& registration = slice.buffer->registration(session_->domain());
    return {.terms = advert.terms,
            .address = registration.base() +
                       static_cast<std::uint64_t>(slice.data - slice.buffer->data()) +
                       advert.offset,
            .key = registration.key()};
}

void StreamSocket::send_transfers() {
    std::array<Piece, piece_limit> pieces;
    const auto room = std::span{pieces}.first(std::min(piece_limit, session_->write_slice_limit()));
    while (sender_->queued_bytes() > 0) {
        if (!session_->request_write_capacity()) {
            if (!waiting_for_room_) ++counters_.waits_for_room;
            waiting_for_room_ = true;
            return;
        }
        const auto transfer = sender_->next_transfer(room);
        if (!transfer) return;
        waiting_for_room_ = false;
        if (!post(*transfer, room.first(transfer->piece_count))) return;
    }
}

bool StreamSocket::post(const Transfer& transfer, std::span<const Piece> pieces) {
    std::array<Slice, piece_limit> slices;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto index =
            static_cast<std::size_t>(static_cast<std::uint64_t>(pieces[i].id) - first_send_);
        const Slice& slice = sends_[index].slice;
        slices[i] = {slice.buffer, slice.data + pieces[i].offset,
                     static_cast<std::size_t>(pieces[i].bytes)};
    }
    const RemoteSlice target =
        transfer.kind == TransferKind::direct
            ? RemoteSlice{transfer.address, transfer.key}
            : RemoteSlice{peer_ring_.address + transfer.ring_offset, peer_ring_.key};
    const OutgoingWrite write{
        .slices = std::span{slices}.first(pieces.size()),
        .target = target,
        .notice = encode_immediate({transfer.kind, transfer.bytes, transfer.notice})};
    return session_->write(write, Cookie{transfer.number}) == Status::ok;
}

} // namespace netio::stream::inline v0_2
