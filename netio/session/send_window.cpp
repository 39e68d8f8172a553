// SPDX-License-Identifier: Apache-2.0
#include "netio/session/send_window.hpp"

#include "netio/base/check.hpp"
#include "netio/base/copy.hpp"

#include <algorithm>
#include <utility>

namespace netio::inline v0_3 {
namespace {

std::vector<std::uint32_t> all_free(std::size_t count) {
    std::vector<std::uint32_t> free(count);
    for (std::size_t i = 0; i < count; ++i)
        free[i] = static_cast<std::uint32_t>(count - 1 - i);
    return free;
}

std::byte* append(std::byte* out, std::span<const std::byte> bytes) noexcept {
    copy_bytes(out, bytes);
    return out + bytes.size();
}

std::size_t bytes_of(std::span<const Slice> slices) noexcept {
    std::size_t bytes = 0;
    for (const Slice& slice : slices)
        bytes += slice.size;
    return bytes;
}

// Whether the peer's window is the limit, and not the number of slots here.
bool is_without_credit(const std::optional<Credits>& credits) noexcept {
    return credits && !credits->can_send_frame();
}

constexpr std::size_t small_bytes = 4096;
constexpr std::size_t kept_limit = std::size_t{4} * 1024 * 1024;

} // namespace

// --- memory of slots ------------------------------------------------------------------------

RegisteredBuffer* SendBufferPool::gather(std::uint32_t slot, std::size_t bytes, std::size_t limit) {
    Buffer memory = take_kept();
    if (!memory || memory->size() < bytes) {
        const std::size_t twice = memory ? 2 * memory->size() : frame_extension_limit;
        drop(memory);
        memory = allocate(std::max(bytes, std::min(twice, limit)));
    }
    is_short_ = memory == nullptr;
    if (is_short_) return nullptr;
    ++used_count_;
    gathers_[slot] = std::move(memory);
    return gathers_[slot].get();
}

void SendBufferPool::release(std::uint32_t slot) noexcept {
    Buffer memory = std::move(gathers_[slot]);
    if (!memory) return;
    --used_count_;
    is_short_ = false;
    const bool is_scarce = budget_.left() <= budget_.limit() / 2;
    if (is_scarce || kept_bytes_ + memory->size() > kept_limit) return drop(memory);
    kept_bytes_ += memory->size();
    kept_.push_back(std::move(memory));
}

SendBufferPool::Buffer SendBufferPool::take_kept() noexcept {
    if (kept_.empty()) return nullptr;
    Buffer memory = std::move(kept_.back());
    kept_.pop_back();
    kept_bytes_ -= memory->size();
    return memory;
}

void SendBufferPool::drop(Buffer& memory) noexcept {
    if (memory) share_.give(memory->size());
    memory.reset();
}

SendBufferPool::Buffer SendBufferPool::allocate(std::size_t bytes) {
    while (used_count_ > 0 && bytes > small_bytes && !share_.has_fair_share(bytes)) {
        Buffer kept = take_kept();
        if (!kept) return nullptr;
        drop(kept);
    }
    auto memory = std::make_unique<RegisteredBuffer>(bytes, Access::send);
    share_.take_anyway(bytes);
    return memory;
}

// --- the window -----------------------------------------------------------------------------

SendWindow::SendWindow(std::size_t slot_count, ByteBudget& budget)
    : memory_{slot_count, budget}, slots_(slot_count), free_slots_{all_free(slot_count)} {}

void SendWindow::open(const Terms& terms) {
    credits_.emplace(
        CreditOptions{.receive_count = static_cast<std::uint32_t>(terms.receive_count),
                      .peer_receive_count = static_cast<std::uint32_t>(terms.peer_receive_count),
                      .two_way = terms.two_way});
    body_limit_ =
        terms.frame_bytes > frame_header_bytes ? terms.frame_bytes - frame_header_bytes : 0;
    segment_limit_ = terms.segment_limit;
    by_immediate_ = terms.by_immediate;
    sweep_.usual = credits_->peer_receive_count();
}

// --- what may be sent -----------------------------------------------------------------------

bool SendWindow::can_send() const noexcept {
    // The last credit is reserved for a frame that returns credits, the last slot for a credit
    // frame.
    return credits_ && free_slots_.size() > 1 && !memory_.is_short() && credits_->can_send_frame();
}

bool SendWindow::can_write() const noexcept {
    if (!credits_) return false;
    if (by_immediate_) return free_slots_.size() > 1 && credits_->can_write();
    // The frame that notifies the peer of the write takes a second slot, and returns credits
    // itself. With only two slots it takes both: they become free without any action of the peer.
    return free_slots_.size() >= std::min<std::size_t>(3, slots_.size()) &&
           credits_->can_send_frame();
}

bool SendWindow::request_send() noexcept {
    if (can_send()) return true;
    wishes_.send = true;
    wishes_.waited = wishes_.waited || is_without_credit(credits_);
    return false;
}

bool SendWindow::request_write() noexcept {
    if (can_write()) return true;
    wishes_.write = true;
    return false;
}

bool SendWindow::take_writable_request() noexcept {
    const bool granted = (wishes_.send && can_send()) || (wishes_.write && can_write());
    if (granted) wishes_.send = wishes_.write = false;
    return granted;
}

bool SendWindow::can_send_own() const noexcept {
    return !free_slots_.empty() && credits_->can_send_own_frame();
}

std::size_t SendWindow::segment_limit() const noexcept {
    const bool is_sealed = sealer_.has_value();
    if (is_sealed && sealer_->encrypts()) return 0;
    // The header takes a piece, and so does the tag of a sealed frame.
    const std::size_t taken = is_sealed ? 2 : 1;
    return segment_limit_ <= taken ? 0 : std::min(segment_limit_ - taken, slice_limit);
}

// --- sending --------------------------------------------------------------------------------

Status SendWindow::refuse(bool& wanted) noexcept {
    wanted = true;
    wishes_.waited = wishes_.waited || is_without_credit(credits_);
    ++counters_.again;
    return Status::again;
}

Status SendWindow::send(Connection& connection, const OutgoingFrame& frame,
                        std::optional<Cookie> cookie) {
    if (frame.slices.size() > slice_limit) return Status::too_many_segments;
    const std::size_t bytes = frame.extension.size() + bytes_of(frame.slices);
    if (bytes > body_limit_) return Status::too_large;
    if (!can_send()) return refuse(wishes_.send);
    const Status status = post(connection, frame, bytes, cookie);
    if (status != Status::ok) return status;
    unacked_.on_service_sent();
    ++counters_.frames_sent;
    counters_.bytes_sent += bytes;
    return status;
}

Status SendWindow::send_own(Connection& connection, FrameKind kind,
                            std::span<const std::byte> body) {
    const OutgoingFrame frame{
        .kind = static_cast<std::uint8_t>(kind), .flags = 0, .extension = body, .slices = {}};
    const Status status = post(connection, frame, body.size(), std::nullopt);
    if (status != Status::ok) return status;
    unacked_.on_own_sent();
    const std::uint32_t receives = credits_->peer_receive_count();
    if (kind == FrameKind::heartbeat && receives > sweep_.usual) sweep_.left = receives + 1;
    return status;
}

Status SendWindow::send_last(Connection& connection, FrameKind kind,
                             std::span<const std::byte> body) {
    credits_->give_up_reserve();
    return can_send_own() ? send_own(connection, kind, body) : Status::again;
}

Status SendWindow::post(Connection& connection, const OutgoingFrame& frame, std::size_t body_bytes,
                        std::optional<Cookie> cookie) {
    const std::uint32_t index = free_slots_.back();
    const bool is_own = frame.kind < first_service_kind;
    slots_[index] = {.cookie = cookie, .own = is_own};
    encode({.kind = frame.kind,
            .flags = frame.flags,
            .credits = static_cast<std::uint16_t>(credits_->owed()),
            .sequence = next_sequence_,
            .waited = wishes_.waited && !is_own},
           std::span<std::byte, frame_header_bytes>{memory_.head(index).data, frame_header_bytes});
    std::array<Slice, 32> pieces;
    const std::size_t behind = sealer_ ? sealer_->bytes_behind(frame.kind) : 0;
    const std::size_t piece_count = behind > 0 ? seal(frame, index, body_bytes, behind, pieces)
                                               : lay_out(frame, index, body_bytes, pieces);
    if (piece_count == 0) return refuse(wishes_.send);
    const Status status = connection.post_send({pieces.data(), piece_count}, Cookie{index});
    if (status != Status::ok) {
        memory_.release(index);
        return status;
    }
    free_slots_.pop_back();
    ++next_sequence_;
    if (!is_own) wishes_.waited = false;
    if (sweep_.left > 0) --sweep_.left;
    credits_->on_frame_sent();
    return Status::ok;
}

// Lays out a frame that is not sealed.
std::size_t SendWindow::lay_out(const OutgoingFrame& frame, std::uint32_t slot,
                                std::size_t body_bytes, std::span<Slice> pieces) {
    const Slice head = memory_.head(slot);
    std::byte* const end = append(head.data + frame_header_bytes, frame.extension);
    if (body_bytes <= frame_extension_limit) {
        // Small frames are sent in one piece: a second piece costs more than the copy.
        std::byte* out = end;
        for (const Slice& slice : frame.slices)
            out = append(out, {slice.data, slice.size});
        pieces[0] = {head.buffer, head.data, frame_header_bytes + body_bytes};
        return 1;
    }
    pieces[0] = {head.buffer, head.data, frame_header_bytes + frame.extension.size()};
    const std::size_t more = attach(frame.slices, slot, pieces.subspan(1));
    return more == 0 ? 0 : 1 + more;
}

// Lays out the slices after the header; gathers those that exceed the segment limit.
std::size_t SendWindow::attach(std::span<const Slice> slices, std::uint32_t slot,
                               std::span<Slice> pieces) {
    // The header takes one piece. If the slices do not fit, the gathered tail takes another.
    const std::size_t room = segment_limit_ - 1;
    const std::size_t kept = slices.size() <= room ? slices.size() : room - 1;
    std::copy_n(slices.begin(), kept, pieces.begin());
    if (kept == slices.size()) return kept;
    const std::span<const Slice> tail = slices.subspan(kept);
    RegisteredBuffer* const memory = memory_.gather(slot, bytes_of(tail), body_limit_);
    if (memory == nullptr) return 0;
    ++counters_.gathered;
    std::byte* out = memory->data();
    for (const Slice& slice : tail)
        out = append(out, {slice.data, slice.size});
    pieces[kept] = {memory, memory->data(), static_cast<std::size_t>(out - memory->data())};
    return kept + 1;
}

// Lays out a frame with its seal. An unencrypted body is sent without copying if the provider takes
// one more piece for the tag; an encrypted one is sent from the memory of its slot.
std::size_t SendWindow::seal(const OutgoingFrame& frame, std::uint32_t slot, std::size_t body_bytes,
                             std::size_t behind, std::span<Slice> pieces) {
    const Slice head = memory_.head(slot);
    const bool is_small = body_bytes <= frame_extension_limit;
    std::array<access::Bytes, slice_limit + 2> parts;
    std::size_t part_count = 0;
    const auto finish = [&](std::span<std::byte> out) {
        // With a frame each nanosecond the numbers last for 584 years.
        NETIO_CHECK_MSG(sealer_->seal(std::span{parts}.first(part_count), out),
                        "no number is left for a frame");
    };
    if (!is_small && !sealer_->encrypts() && frame.slices.size() + 2 <= segment_limit_) {
        const std::size_t count = lay_out(frame, slot, body_bytes, pieces);
        while (part_count < count) {
            parts[part_count] = {pieces[part_count].data, pieces[part_count].size};
            ++part_count;
        }
        std::byte* const tag = head.data + SendBufferPool::tag_at;
        finish({tag, behind});
        pieces[count] = {head.buffer, tag, behind};
        return count + 1;
    }
    const std::size_t bytes = frame_header_bytes + body_bytes + behind;
    RegisteredBuffer* const memory =
        is_small ? head.buffer : memory_.gather(slot, bytes, body_limit_);
    if (memory == nullptr) return 0;
    std::byte* const begin = is_small ? head.data : memory->data();
    const access::Bytes header{head.data, frame_header_bytes};
    std::byte* out = is_small ? begin + header.size() : append(begin, header);
    parts[part_count++] = header;
    parts[part_count++] = frame.extension;
    for (const Slice& slice : frame.slices)
        parts[part_count++] = {slice.data, slice.size};
    if (sealer_->encrypts()) {
        finish({out, body_bytes + behind});
    } else {
        for (const access::Bytes part : std::span{parts}.subspan(1, part_count - 1))
            out = append(out, part);
        if (!is_small) ++counters_.gathered;
        finish({out, behind});
    }
    pieces[0] = {memory, begin, bytes};
    return 1;
}

Status SendWindow::write(Connection& connection, const OutgoingWrite& write, Cookie cookie) {
    if (!can_write()) return refuse(wishes_.write);
    const std::uint32_t index = free_slots_.back();
    const Status status = connection.post_write(
        write.slices, write.target, by_immediate_ ? std::optional{write.notice} : std::nullopt,
        Cookie{index});
    if (status != Status::ok) return status;
    free_slots_.pop_back();
    slots_[index] = {.cookie = cookie};
    ++counters_.frames_sent;
    counters_.bytes_sent += bytes_of(write.slices);
    if (by_immediate_) {
        credits_->on_write_sent();
        unacked_.on_service_sent();
        return Status::ok;
    }
    std::array<std::byte, sizeof write.notice> body;
    wire::store(body.data(), write.notice);
    const OutgoingFrame frame{.kind = static_cast<std::uint8_t>(FrameKind::written),
                              .flags = 0,
                              .extension = body,
                              .slices = {}};
    // The write was posted. If the connection breaks now, on_closed reports it.
    if (post(connection, frame, body.size(), std::nullopt) == Status::ok)
        unacked_.on_service_sent();
    return Status::ok;
}

bool SendWindow::must_send_credit() const noexcept {
    if (credits_->must_return() && !free_slots_.empty()) return true;
    return sweep_.left > 0 && free_slots_.size() > 1 &&
           credits_->available() > credits_->peer_receive_count() / 2;
}

SendWindow::Released SendWindow::release(Cookie slot) noexcept {
    const auto at = static_cast<std::uint32_t>(slot);
    memory_.release(at);
    const Slot released = std::exchange(slots_[at], Slot{});
    free_slots_.push_back(at);
    return {.cookie = released.cookie, .own = released.own};
}

CreditError SendWindow::on_received(std::uint32_t credits) {
    const CreditError error = credits_->on_received(credits);
    if (error == CreditError::none) unacked_.on_credits(credits);
    return error;
}

SessionCounters SendWindow::counters() const noexcept {
    SessionCounters counters = counters_;
    counters.credits = credits_ ? credits_->available() : 0;
    counters.unconfirmed = unacked_.outstanding();
    return counters;
}

CreditError SendWindow::on_window(std::uint32_t count) {
    const std::uint32_t before = credits_->peer_receive_count();
    const CreditError error = credits_->on_window(count);
    // The peer took the messages whose credits it will not return.
    if (error == CreditError::none && count < before) unacked_.on_credits(before - count);
    return error;
}

} // namespace netio::inline v0_3
