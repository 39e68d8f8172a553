// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/control_channel.hpp"

namespace netio::stream::inline v0_2 {

void ControlChannel::open() {
    memory_ =
        std::make_unique<RegisteredBuffer>(control_slot_count * control_limit_bytes, Access::send);
    for (std::uint32_t i = 0; i < control_slot_count; ++i)
        free_.push_back(i);
}

bool ControlChannel::send(const ControlMessage& message, Session& session) {
    const std::uint32_t slot = free_.back();
    Slice slice = memory_->slice(slot * control_limit_bytes, control_limit_bytes);
    slice.size = encode_control(message, {slice.data, slice.size});
    ++sent_count_;
    const bool is_copied = slice.size <= frame_extension_limit;
    const OutgoingFrame frame{
        .kind = control_kind,
        .flags = 0,
        .extension = {slice.data, is_copied ? slice.size : 0},
        .slices = {&slice, is_copied ? std::size_t{0} : std::size_t{1}},
    };
    if (is_copied) return session.send(frame, {}) == Status::ok;
    free_.pop_back();
    return session.send(frame, Cookie{control_cookie | slot}) == Status::ok;
}

Status ControlChannel::announce(const RemoteRing& ring, Session& session) {
    const auto message = encode_ring(ring);
    return session.send({.kind = ring_kind, .flags = 0, .extension = message, .slices = {}}, {});
}

void ControlChannel::on_sent(Cookie cookie) {
    free_.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(cookie)));
}

} // namespace netio::stream::inline v0_2
