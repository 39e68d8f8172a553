// SPDX-License-Identifier: Apache-2.0
#pragma once

// A message whose memory is lent, and the frames that it leaves in.

#include "netio/session/frames.hpp"
#include "pubsub/core/fid.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace netio::pubsub::inline v0_2 {

// Lent until every queue that has it gave its cookie back.
struct LentMessage {
    Fid fid{};
    std::uint8_t status = 0;
    std::uint8_t header_bytes = 0; // user header: the first bytes of the message
    std::array<std::byte, 8> header{};
    std::uint32_t number = 0; // distinguishes consecutive fragmented messages
    std::size_t slice_count = 0;
    std::array<Slice, slice_limit> slices;
    std::size_t total_bytes = 0; // header and slices
};

// A frame that is ready to be sent.
struct ReadyFrame {
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::size_t extension_bytes = 0;
    std::size_t slice_count = 0;
    std::optional<Cookie> cookie;
    std::array<std::byte, frame_extension_limit> extension;
    std::array<Slice, slice_limit> slices;

    OutgoingFrame outgoing() const {
        return {.kind = kind,
                .flags = flags,
                .extension = std::span{extension}.first(extension_bytes),
                .slices = std::span{slices}.first(slice_count)};
    }
};

// Whether all of it fits into one frame to a peer that takes so much.
bool fits_one_frame(const LentMessage& message, std::size_t body_limit) noexcept;
// How many frames it takes from `offset` on.
std::size_t frames_for(const LentMessage& message, std::size_t body_limit,
                       std::size_t offset = 0) noexcept;
// Fills the frame with all of it, or with the fragment from `offset` on; how many bytes of it.
std::size_t fill_frame(const LentMessage& message, std::size_t body_limit, std::size_t offset,
                       ReadyFrame& frame);
// Copies all of it, total_bytes.
void copy_message(const LentMessage& message, std::byte* out) noexcept;

} // namespace netio::pubsub::inline v0_2
