// SPDX-License-Identifier: Apache-2.0

// The sending half of a session: credits, slots, and fitting slices to what the provider takes.

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/session/session.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace netio::inline v0_2 {
namespace {

// Buffers for frames of more slices than the provider takes; each holds a whole frame.
constexpr std::size_t gather_count = 4;

std::byte* append(std::byte* out, std::span<const std::byte> bytes) noexcept {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    return out + bytes.size();
}

} // namespace

std::size_t Session::body_limit() const noexcept {
    const std::size_t frame_limit =
        std::min<std::size_t>(peer_.receive_bytes, connection_->capabilities().message_bytes);
    return frame_limit > frame_header_bytes ? frame_limit - frame_header_bytes : 0;
}

bool Session::may_send_data() const noexcept {
    // The last credit is for a frame that returns some, the last slot for a credit frame.
    return credits_ && free_slots_.size() > 1 && credits_->can_send_frame();
}

bool Session::tells_by_immediate() const noexcept {
    return !options_.never_immediate &&
           connection_->capabilities().immediate_bytes >= sizeof(std::uint32_t);
}

bool Session::may_write() const noexcept {
    if (!credits_) return false;
    // Without immediate data a write takes a second slot, for the frame that tells of it.
    return tells_by_immediate() ? free_slots_.size() > 1 && credits_->can_write()
                                : free_slots_.size() > 2 && credits_->can_send_frame();
}

bool Session::has_capacity() const noexcept {
    return is_open() && may_send_data();
}

bool Session::has_write_capacity() const noexcept {
    return is_open() && may_write();
}

bool Session::request_capacity() {
    if (has_capacity()) return true;
    capacity_wanted_ = true;
    return false;
}

bool Session::request_write_capacity() {
    if (has_write_capacity()) return true;
    write_wanted_ = true;
    return false;
}

Status Session::send(const OutgoingFrame& frame, std::optional<Cookie> cookie) {
    NETIO_CHECK(frame.extension.size() <= frame_extension_limit);
    NETIO_CHECK(frame.kind >= first_service_kind);
    if (!is_open()) return Status::closed;
    if (frame.slices.size() > slice_limit) return Status::too_many_segments;
    std::size_t body_bytes = frame.extension.size();
    for (const Slice& slice : frame.slices)
        body_bytes += slice.size;
    if (body_bytes > body_limit()) return Status::too_large;
    if (!may_send_data()) {
        capacity_wanted_ = true;
        return Status::again;
    }
    return send_frame(frame, body_bytes, cookie);
}

// Memory is registered when it is first used, and that can fail: for want of memory that may be
// locked, say. The session cannot go on without what was to be sent.
template <class Post>
Status Session::post_or_fail(Post post) {
    try {
        return post();
    } catch (const FabricError& error) {
        fail(CloseReason::failed, error.what());
        return Status::closed;
    }
}

Status Session::send_frame(const OutgoingFrame& frame, std::size_t body_bytes,
                           std::optional<Cookie> cookie) {
    return post_or_fail([&] { return post_frame(frame, body_bytes, cookie); });
}

Status Session::post_frame(const OutgoingFrame& frame, std::size_t body_bytes,
                           std::optional<Cookie> cookie) {
    const std::uint32_t index = free_slots_.back();
    Slot& slot = slots_[index];
    slot = {.cookie = cookie};
    const Slice head = slot_memory_.slice(index * slot_bytes, slot_bytes);
    std::array<Slice, 32> pieces;
    std::size_t piece_count = 1;
    std::byte* const end = append(head.data + frame_header_bytes, frame.extension);
    if (body_bytes <= frame_extension_limit) {
        // Small frames leave in one piece: a second one costs more than the copy.
        std::byte* out = end;
        for (const Slice& slice : frame.slices)
            out = append(out, {slice.data, slice.size});
        pieces[0] = {head.buffer, head.data, frame_header_bytes + body_bytes};
    } else {
        pieces[0] = {head.buffer, head.data, frame_header_bytes + frame.extension.size()};
        const std::size_t added = attach_slices(frame, slot, std::span{pieces}.subspan(1));
        if (added == 0) {
            capacity_wanted_ = true;
            return Status::again;
        }
        piece_count += added;
    }
    encode({.kind = frame.kind,
            .flags = frame.flags,
            .credits = static_cast<std::uint16_t>(credits_->owed()),
            .sequence = next_sequence_},
           std::span<std::byte, frame_header_bytes>{head.data, frame_header_bytes});
    const Status status = connection_->post_send({pieces.data(), piece_count}, Cookie{index});
    if (status != Status::ok) {
        if (slot.gather != no_gather) free_gathers_.push_back(slot.gather);
        return status;
    }
    free_slots_.pop_back();
    ++next_sequence_;
    credits_->on_frame_sent();
    const bool of_service = frame.kind >= first_service_kind ||
                            frame.kind == static_cast<std::uint8_t>(FrameKind::written);
    of_service ? ledger_.on_service_sent() : ledger_.on_own_sent();
    sent_since_beat_ = true;
    return Status::ok;
}

std::size_t Session::slices_kept(std::size_t slice_count) const noexcept {
    // One piece is the header's; if the rest does not fit, another is the gathered tail.
    const std::size_t room = connection_->capabilities().segment_limit - 1;
    return slice_count <= room ? slice_count : room - 1;
}

std::size_t Session::attach_slices(const OutgoingFrame& frame, Slot& slot,
                                   std::span<Slice> pieces) {
    const std::size_t kept = slices_kept(frame.slices.size());
    std::copy_n(frame.slices.begin(), kept, pieces.begin());
    if (kept == frame.slices.size()) return kept;
    if (!take_gather_buffer(slot)) return 0;
    const std::size_t bytes = body_limit();
    const Slice tail = gather_memory_->slice(slot.gather * bytes, bytes);
    std::byte* out = tail.data;
    for (const Slice& slice : frame.slices.subspan(kept)) {
        out = append(out, {slice.data, slice.size});
    }
    pieces[kept] = {tail.buffer, tail.data, static_cast<std::size_t>(out - tail.data)};
    return kept + 1;
}

bool Session::take_gather_buffer(Slot& slot) {
    if (!gather_memory_) {
        gather_memory_ =
            std::make_unique<RegisteredBuffer>(gather_count * body_limit(), Access::send);
        for (std::uint32_t i = 0; i < gather_count; ++i)
            free_gathers_.push_back(i);
    }
    if (free_gathers_.empty()) return false;
    slot.gather = free_gathers_.back();
    free_gathers_.pop_back();
    return true;
}

Status Session::write(const OutgoingWrite& write, Cookie cookie) {
    if (!is_open()) return Status::closed;
    if (!may_write()) {
        write_wanted_ = true;
        return Status::again;
    }
    const std::uint32_t index = free_slots_.back();
    const bool immediate = tells_by_immediate();
    const Status status = post_or_fail([&] {
        return connection_->post_write(write.slices, write.target,
                                       immediate ? std::optional{write.notice} : std::nullopt,
                                       Cookie{index});
    });
    if (status != Status::ok) return status;
    free_slots_.pop_back();
    slots_[index] = {.cookie = cookie};
    sent_since_beat_ = true;
    if (immediate) {
        credits_->on_write_sent();
        ledger_.on_service_sent();
    } else {
        std::array<std::byte, sizeof write.notice> body;
        wire::store(body.data(), write.notice);
        send_control(FrameKind::written, body);
    }
    return Status::ok;
}

// Callers have made sure of a slot and a credit. False: the connection is broken, and on_closed
// tells.
bool Session::send_control(FrameKind kind, std::span<const std::byte> body) {
    const Status status = send_frame(
        {.kind = static_cast<std::uint8_t>(kind), .flags = 0, .extension = body, .slices = {}},
        body.size(), std::nullopt);
    return status == Status::ok;
}

void Session::return_credits() {
    if (state_ != State::open) return;
    if (credits_->must_return() && !free_slots_.empty() && !shutdown_.is_silent()) {
        send_control(FrameKind::credit);
    }
    if (state_ == State::open && !shutdown_.may_send()) advance_shutdown();
}

void Session::announce_capacity() {
    if ((capacity_wanted_ && has_capacity()) || (write_wanted_ && has_write_capacity())) {
        capacity_wanted_ = write_wanted_ = false;
        handler_.on_writable(*this); // may destroy the session
    }
}

void Session::on_send_completion(const Completion& completion) {
    const auto index = static_cast<std::uint32_t>(completion.cookie);
    const Slot slot = std::exchange(slots_[index], Slot{});
    free_slots_.push_back(index);
    if (slot.gather != no_gather) free_gathers_.push_back(slot.gather);
    if (slot.cookie) {
        const DestructionWatch watch{destroyed_};
        handler_.on_sent(*this, *slot.cookie, completion.outcome);
        if (watch.destroyed()) return;
    }
    if (state_ == State::closing) return;
    await_peer(); // something has left
    return_credits();
    announce_capacity();
}

} // namespace netio::inline v0_2
