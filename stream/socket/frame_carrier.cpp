// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/frame_carrier.hpp"

#include "stream/socket/frames.hpp"

#include "netio/base/check.hpp"

#include <algorithm>

namespace netio::stream::inline v0_2 {

ProtocolError FrameCarrier::on_ring(const RemoteRing& ring) {
    const bool is_named = ring.address != 0 || ring.key != 0;
    return is_named ? ProtocolError::memory_named : ProtocolError::none;
}

ProtocolError FrameCarrier::on_advert(const Advert& advert) {
    const bool is_named = advert.address != 0 || advert.key != 0;
    return is_named ? ProtocolError::memory_named : ProtocolError::none;
}

// More than the provider takes the session gathers, and those are short (P4).
std::size_t FrameCarrier::piece_count(const Session&) const {
    return piece_limit;
}

// A frame uses up a receive of the peer's, whatever is in it: sends that wait behind one another
// fill it together, or over a long way half of the peer's memory would carry nothing.
std::size_t FrameCarrier::joined_count(const Session& session) const {
    return session.segment_limit();
}

bool FrameCarrier::is_ready(Session& session) {
    return go_on(session) && left_bytes_ == 0 && session.request_capacity();
}

bool FrameCarrier::take(const Transfer& transfer, std::span<const Slice> pieces, Session& session) {
    NETIO_CHECK_MSG(left_bytes_ == 0, "one transfer after the other");
    transfer_ = transfer;
    std::ranges::copy(pieces, rest_.begin());
    rest_begin_ = 0;
    left_bytes_ = transfer.bytes;
    NETIO_CHECK(transfer.number == first_open_ + open_frames_.size());
    open_frames_.push_back(1);
    return go_on(session);
}

bool FrameCarrier::go_on(Session& session) {
    while (left_bytes_ > 0) {
        if (!session.request_capacity()) return true;
        const std::uint64_t bytes = std::min<std::uint64_t>(left_bytes_, session.body_limit());
        const Status status = send_frame(bytes, session);
        if (status == Status::again) return true; // the provider takes no more now
        if (status != Status::ok) return false;
        left_bytes_ -= bytes;
        // The one of what is left is counted already.
        if (left_bytes_ > 0) ++open_frames_[transfer_.number - first_open_];
        drop(bytes);
    }
    return true;
}

Status FrameCarrier::send_frame(std::uint64_t bytes, Session& session) {
    std::array<Slice, piece_limit> slices;
    std::size_t count = 0;
    for (std::uint64_t taken = 0; taken < bytes; taken += slices[count++].size) {
        slices[count] = rest_[rest_begin_ + count];
        slices[count].size =
            static_cast<std::size_t>(std::min<std::uint64_t>(slices[count].size, bytes - taken));
    }
    const FrameNotice notice{
        .kind = transfer_.kind, .ring = transfer_.notice, .more = bytes < left_bytes_};
    return session.send({.kind = bytes_kind,
                         .flags = encode_frame_flags(notice),
                         .extension = {},
                         .slices = std::span{slices}.first(count)},
                        Cookie{transfer_.number});
}

void FrameCarrier::drop(std::uint64_t bytes) {
    while (bytes > 0) {
        Slice& rest = rest_[rest_begin_];
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, rest.size));
        rest.data += size;
        rest.size -= size;
        if (rest.size == 0) ++rest_begin_;
        bytes -= size;
    }
}

bool FrameCarrier::on_sent(std::uint64_t transfer) {
    std::uint32_t& open = open_frames_[transfer - first_open_];
    const bool is_all = --open == 0;
    while (!open_frames_.empty() && open_frames_.front() == 0) {
        open_frames_.pop_front();
        ++first_open_;
    }
    return is_all;
}

} // namespace netio::stream::inline v0_2
