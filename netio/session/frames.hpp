// SPDX-License-Identifier: Apache-2.0
#pragma once

// Frames and writes of a session, as its services see them.

#include "netio/base/frame.hpp"
#include "netio/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace netio::inline v0_3 {

// A frame to send. The extension is copied; slices are borrowed until on_sent.
struct OutgoingFrame {
    std::uint8_t kind = first_service_kind;
    std::uint8_t flags = 0;
    std::span<const std::byte> extension; // at most frame_extension_limit bytes
    std::span<const Slice> slices;        // at most slice_limit
};
inline constexpr std::size_t frame_extension_limit = 56;
// Our own limit. Slices that exceed the provider's limit are gathered into one by copying.
inline constexpr std::size_t slice_limit = 28;

struct IncomingFrame {
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::span<const std::byte> body; // extension and payload; valid during on_frame only
    bool continued = false;          // the rest that was given to Session::put_back()
};

// A write into the peer's memory. Slices are borrowed until on_sent.
struct OutgoingWrite {
    std::span<const Slice> slices; // at most Session::capabilities().segment_limit
    RemoteSlice target;
    std::uint32_t notice = 0; // passed to the on_written of the peer
};

// Counters of one session.
struct SessionCounters {
    std::uint64_t frames_sent = 0; // of the service, including its writes
    std::uint64_t bytes_sent = 0;
    std::uint64_t frames_received = 0;
    std::uint64_t bytes_received = 0;
    std::uint64_t again = 0;       // sends and writes without a credit or a slot
    std::uint64_t gathered = 0;    // frames with more slices than the provider takes
    std::size_t credits = 0;       // now: receives of the peer that are free
    std::size_t receives = 0;      // now: receive buffers of this side
    std::uint64_t unconfirmed = 0; // now: frames without acknowledgement
};

} // namespace netio::inline v0_3
