// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/lent_message.hpp"

#include "netio/coalescing/message_parts.hpp"
#include "pubsub/core/frames.hpp"

#include <algorithm>

namespace netio::pubsub::inline v0_2 {

bool fits_one_frame(const LentMessage& message, std::size_t body_limit) noexcept {
    return message.total_bytes + message_extension_bytes <= body_limit;
}

std::size_t frames_for(const LentMessage& message, std::size_t body_limit,
                       std::size_t offset) noexcept {
    if (fits_one_frame(message, body_limit)) return 1;
    const std::size_t per_frame = body_limit - fragment_extension_bytes;
    return (message.total_bytes - offset + per_frame - 1) / per_frame;
}

std::size_t fill_frame(const LentMessage& message, std::size_t body_limit, std::size_t offset,
                       ReadyFrame& frame) {
    std::size_t part = message.total_bytes;
    if (fits_one_frame(message, body_limit)) {
        frame.kind = message_kind;
        frame.extension_bytes =
            encode(MessageExtension{.fid = message.fid, .status = message.status}, frame.extension);
    } else {
        part = std::min(body_limit - fragment_extension_bytes, message.total_bytes - offset);
        frame.kind = fragment_kind;
        frame.extension_bytes =
            encode(FragmentExtension{.fid = message.fid,
                                     .message_number = message.number,
                                     .offset = static_cast<std::uint32_t>(offset),
                                     .total = static_cast<std::uint32_t>(message.total_bytes),
                                     .status = message.status},
                   frame.extension);
    }
    // The user header is the beginning of the message; it is copied, all else is lent.
    std::size_t skip = offset;
    std::size_t left = part;
    if (skip < message.header_bytes) {
        const std::size_t bytes = std::min<std::size_t>(message.header_bytes - skip, left);
        std::copy_n(message.header.begin() + static_cast<std::ptrdiff_t>(skip), bytes,
                    frame.extension.begin() + static_cast<std::ptrdiff_t>(frame.extension_bytes));
        frame.extension_bytes += bytes;
        left -= bytes;
        skip = 0;
    } else {
        skip -= message.header_bytes;
    }
    frame.slice_count = 0;
    for (std::size_t i = 0; i < message.slice_count && left > 0; ++i) {
        Slice slice = message.slices[i];
        if (skip >= slice.size) {
            skip -= slice.size;
            continue;
        }
        slice.data += skip;
        slice.size = std::min(slice.size - skip, left);
        skip = 0;
        left -= slice.size;
        frame.slices[frame.slice_count++] = slice;
    }
    return part;
}

void copy_message(const LentMessage& message, std::byte* out) noexcept {
    out = std::copy_n(message.header.begin(), message.header_bytes, out);
    for (std::size_t i = 0; i < message.slice_count; ++i) {
        const Slice& slice = message.slices[i];
        netio::copy_message(out, {slice.data, slice.size});
        out += slice.size;
    }
}

} // namespace netio::pubsub::inline v0_2
