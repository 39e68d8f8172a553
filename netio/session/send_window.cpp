// SPDX-License-Identifier: Apache-2.0
#include "netio/session/send_window.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace netio::inline v0_2 {
namespace {

constexpr std::size_t slot_bytes = frame_header_bytes + frame_extension_limit;

std::vector<std::uint32_t> all_free(std::size_t count) {
    std::vector<std::uint32_t> free(count);
    for (std::size_t i = 0; i < count; ++i)
        free[i] = static_cast<std::uint32_t>(count - 1 - i);
    return free;
}

std::byte* append(std::byte* out, std::span<const std::byte> bytes) noexcept {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    return out + bytes.size();
}

std::size_t bytes_of(std::span<const Slice> slices) noexcept {
    std::size_t bytes = 0;
    for (const Slice& slice : slices)
        bytes += slice.size;
    return bytes;
}

} // namespace

SendWindow::SendWindow(std::size_t slot_count)
    : slot_memory_{slot_count * slot_bytes}, slots_(slot_count), free_slots_{all_free(slot_count)},
      gathers_(slot_count) {}

void SendWindow::open(const Terms& terms) {
    credits_.emplace(
        CreditOptions{.receive_count = static_cast<std::uint32_t>(terms.receive_count),
                      .peer_receive_count = static_cast<std::uint32_t>(terms.peer_receive_count)});
    body_limit_ =
        terms.frame_bytes > frame_header_bytes ? terms.frame_bytes - frame_header_bytes : 0;
    segment_limit_ = terms.segment_limit;
    by_immediate_ = terms.by_immediate;
}

// --- what may be sent -----------------------------------------------------------------------

bool SendWindow::can_send() const noexcept {
    // The last credit is for a frame that returns some, the last slot for a credit frame.
    return credits_ && free_slots_.size() > 1 && credits_->can_send_frame();
}

bool SendWindow::can_write() const noexcept {
    if (!credits_) return false;
    if (by_immediate_) return free_slots_.size() > 1 && credits_->can_write();
    // The frame that tells of the write takes a second slot, and returns credits itself. With two
    // slots in all it takes both: they are free again without the peer's doing.
    return free_slots_.size() >= std::min<std::size_t>(3, slots_.size()) &&
           credits_->can_send_frame();
}

bool SendWindow::request_send() noexcept {
    if (can_send()) return true;
    send_wanted_ = true;
    return false;
}

bool SendWindow::request_write() noexcept {
    if (can_write()) return true;
    write_wanted_ = true;
    return false;
}

bool SendWindow::take_wish() noexcept {
    const bool granted = (send_wanted_ && can_send()) || (write_wanted_ && can_write());
    if (granted) send_wanted_ = write_wanted_ = false;
    return granted;
}

bool SendWindow::can_send_own() const noexcept {
    return !free_slots_.empty() && credits_->can_send_frame();
}

// --- sending --------------------------------------------------------------------------------

Status SendWindow::refuse(bool& wanted) noexcept {
    wanted = true;
    ++counters_.again;
    return Status::again;
}

Status SendWindow::send(Connection& connection, const OutgoingFrame& frame,
                        std::optional<Cookie> cookie) {
    if (frame.slices.size() > slice_limit) return Status::too_many_segments;
    const std::size_t bytes = frame.extension.size() + bytes_of(frame.slices);
    if (bytes > body_limit_) return Status::too_large;
    if (!can_send()) return refuse(send_wanted_);
    const Status status = post(connection, frame, bytes, cookie);
    if (status != Status::ok) return status;
    ledger_.on_service_sent();
    ++counters_.frames_sent;
    counters_.bytes_sent += bytes;
    return status;
}

Status SendWindow::send_own(Connection& connection, FrameKind kind,
                            std::span<const std::byte> body) {
    const OutgoingFrame frame{
        .kind = static_cast<std::uint8_t>(kind), .flags = 0, .extension = body, .slices = {}};
    const Status status = post(connection, frame, body.size(), std::nullopt);
    if (status == Status::ok) ledger_.on_own_sent();
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
    slots_[index] = {.cookie = cookie, .own = frame.kind < first_service_kind};
    const Slice head = slot_memory_.slice(index * slot_bytes, slot_bytes);
    std::array<Slice, 32> pieces;
    std::size_t piece_count = 1;
    std::byte* const end = append(head.data + frame_header_bytes, frame.extension);
    const std::size_t tag_bytes = tags_ && carries_tag(frame.kind) ? access::frame_tag_bytes : 0;
    if (body_bytes + tag_bytes <= frame_extension_limit) {
        // Small frames leave in one piece: a second one costs more than the copy.
        std::byte* out = end;
        for (const Slice& slice : frame.slices)
            out = append(out, {slice.data, slice.size});
        pieces[0] = {head.buffer, head.data, frame_header_bytes + body_bytes + tag_bytes};
    } else {
        pieces[0] = {head.buffer, head.data, frame_header_bytes + frame.extension.size()};
        piece_count += attach(frame, index, std::span{pieces}.subspan(1), tag_bytes);
    }
    encode({.kind = frame.kind,
            .flags = frame.flags,
            .credits = static_cast<std::uint16_t>(credits_->owed()),
            .sequence = next_sequence_},
           std::span<std::byte, frame_header_bytes>{head.data, frame_header_bytes});
    if (tag_bytes > 0) tag({pieces.data(), piece_count});
    const Status status = connection.post_send({pieces.data(), piece_count}, Cookie{index});
    if (status != Status::ok) return status;
    free_slots_.pop_back();
    ++next_sequence_;
    credits_->on_frame_sent();
    return Status::ok;
}

// The slices behind the header, gathered as far as the provider does not take them. What gets a tag
// is gathered in any case: it is rare, and that is where the tag lies then.
std::size_t SendWindow::attach(const OutgoingFrame& frame, std::uint32_t slot,
                               std::span<Slice> pieces, std::size_t tag_bytes) {
    // One piece is the header's; if the rest does not fit, another is the gathered tail.
    const std::size_t room = segment_limit_ - 1;
    const std::size_t count = frame.slices.size();
    const std::size_t kept = tag_bytes > 0 ? 0 : count <= room ? count : room - 1;
    std::copy_n(frame.slices.begin(), kept, pieces.begin());
    if (kept == count && tag_bytes == 0) return kept;
    const std::span<const Slice> tail = frame.slices.subspan(kept);
    ++counters_.gathered;
    RegisteredBuffer& memory = gather_memory(slot, bytes_of(tail) + tag_bytes);
    std::byte* out = memory.data();
    for (const Slice& slice : tail)
        out = append(out, {slice.data, slice.size});
    pieces[kept] = {&memory, memory.data(),
                    static_cast<std::size_t>(out - memory.data()) + tag_bytes};
    return kept + 1;
}

// Over all of it, into its last bytes; header and extension lie in the first piece, and what else
// there is in the second.
void SendWindow::tag(std::span<const Slice> pieces) {
    const Slice& last = pieces.back();
    const std::span<const std::byte> behind{last.data, last.size - access::frame_tag_bytes};
    const bool is_one = pieces.size() == 1;
    const auto head = is_one ? behind : std::span<const std::byte>{pieces[0].data, pieces[0].size};
    std::ranges::copy(tags_->next(head, is_one ? std::span<const std::byte>{} : behind),
                      last.data + behind.size());
}

RegisteredBuffer& SendWindow::gather_memory(std::uint32_t slot, std::size_t bytes) {
    std::unique_ptr<RegisteredBuffer>& memory = gathers_[slot];
    if (!memory || memory->size() < bytes) {
        // Grows with what is gathered here, not with what the peer says that it takes.
        const std::size_t twice = memory ? 2 * memory->size() : frame_extension_limit;
        memory = std::make_unique<RegisteredBuffer>(std::max(bytes, std::min(twice, body_limit_)),
                                                    Access::send);
    }
    return *memory;
}

Status SendWindow::write(Connection& connection, const OutgoingWrite& write, Cookie cookie) {
    if (!can_write()) return refuse(write_wanted_);
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
        ledger_.on_service_sent();
        return Status::ok;
    }
    std::array<std::byte, sizeof write.notice> body;
    wire::store(body.data(), write.notice);
    const OutgoingFrame frame{.kind = static_cast<std::uint8_t>(FrameKind::written),
                              .flags = 0,
                              .extension = body,
                              .slices = {}};
    // The write is under way: a connection that breaks now tells by on_closed.
    if (post(connection, frame, body.size(), std::nullopt) == Status::ok) ledger_.on_service_sent();
    return Status::ok;
}

SendWindow::Released SendWindow::release(Cookie slot) noexcept {
    const auto index = static_cast<std::uint32_t>(slot);
    const Slot released = std::exchange(slots_[index], Slot{});
    free_slots_.push_back(index);
    return {.cookie = released.cookie, .own = released.own};
}

CreditError SendWindow::on_received(std::uint32_t credits) {
    const CreditError error = credits_->on_received(credits);
    if (error == CreditError::none) ledger_.on_credits(credits);
    return error;
}

} // namespace netio::inline v0_2
