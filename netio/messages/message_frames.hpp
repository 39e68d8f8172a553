// SPDX-License-Identifier: Apache-2.0
#pragma once

// The frames of the message service (docs/wire-formats.md, "Messages"). No I/O.

#include "netio/base/frame.hpp"
#include "netio/base/status.hpp"
#include "netio/coalescing/reassembly.hpp"
#include "netio/session/frames.hpp"
#include "netio/session/handshake.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace netio::messages {

inline constexpr std::uint8_t message_kind = first_service_kind;
inline constexpr std::uint8_t page_kind = first_service_kind + 1;
inline constexpr std::uint8_t fragment_kind = first_service_kind + 2;
inline constexpr std::uint8_t finish_kind = first_state_kind; // of two-way connections only

inline constexpr std::uint8_t immediate_flag = 1;
inline constexpr std::size_t immediate_bytes = 8;

// The content of a message frame.
struct Message {
    std::span<const std::byte> bytes;
    std::optional<std::uint64_t> immediate{};
};
// Returns nullopt if the frame is malformed.
inline std::optional<Message> decode_message(const IncomingFrame& frame) noexcept {
    if (frame.flags == 0) return Message{.bytes = frame.body};
    if (frame.flags != immediate_flag || frame.body.size() < immediate_bytes) return std::nullopt;
    return Message{.bytes = frame.body.subspan(immediate_bytes),
                   .immediate = wire::load<std::uint64_t>(frame.body.data())};
}

inline constexpr std::size_t fragment_extension_bytes = 8;
using FragmentExtension = std::array<std::byte, fragment_extension_bytes>;

inline FragmentExtension encode(const FragmentPlace& place) noexcept {
    FragmentExtension out;
    wire::store(out.data(), place.offset);
    wire::store(out.data() + 4, place.total);
    return out;
}
// The caller guarantees that `in` has enough bytes.
inline FragmentPlace decode_fragment(std::span<const std::byte> in) noexcept {
    return {.offset = wire::load<std::uint32_t>(in.data()),
            .total = wire::load<std::uint32_t>(in.data() + 4)};
}

// The frame of a page, or of a fragment, which uses `extension`.
inline OutgoingFrame page_frame(const Slice& slice, const std::optional<FragmentPlace>& fragment,
                                FragmentExtension& extension) noexcept {
    if (!fragment) return {.kind = page_kind, .flags = 0, .extension = {}, .slices = {&slice, 1}};
    extension = encode(*fragment);
    return {.kind = fragment_kind, .flags = 0, .extension = extension, .slices = {&slice, 1}};
}

// Pages were accepted and not sent: the peer may have confirmed everything that was sent.
inline void add_unsent(Closed& closed, std::size_t pages) {
    if (pages == 0) return;
    if (closed.reason == CloseReason::orderly) closed.reason = CloseReason::unconfirmed;
    closed.unconfirmed_frames += pages;
    closed.detail += std::string{closed.detail.empty() ? "" : "; "} +
                     "pages that were not sent: " + std::to_string(pages);
}

// The service's bytes in the handshake: the size of the largest message that the receiving side
// reassembles.
inline constexpr std::size_t service_bytes = 4;

inline Hello hello(std::uint32_t largest_message_bytes) noexcept {
    Hello hello{.service = Service::messages, .service_data = {}};
    hello.service_data.size = service_bytes;
    wire::store(hello.service_data.bytes.data(), largest_message_bytes);
    return hello;
}
inline std::uint32_t largest_message_bytes(const Hello& peer) noexcept {
    return wire::load<std::uint32_t>(peer.service_data.bytes.data());
}

// --- two-way connections --------------------------------------------------------------------

// Both sides have the feature bit, and the two highest bits of the service's bytes name the
// protocol of their messages. A ListenSocket rejects a connecting side whose bytes are not zero.
inline constexpr std::uint32_t two_way_size_mask = (std::uint32_t{1} << 30) - 1;
inline constexpr std::uint8_t request_protocol = 3; // netio/messages/request_table.hpp

inline Hello two_way_hello(std::uint32_t largest_message_bytes, std::uint8_t protocol) noexcept {
    Hello both = hello(largest_message_bytes | std::uint32_t{protocol} << 30);
    both.features = two_way_feature;
    return both;
}
inline bool is_two_way(const Hello& peer) noexcept {
    return (peer.features & two_way_feature) != 0;
}
inline std::uint8_t two_way_protocol(const Hello& peer) noexcept {
    return static_cast<std::uint8_t>(largest_message_bytes(peer) >> 30);
}

} // namespace netio::messages
