// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of a send socket at one moment, for display. A plain value, which may be passed to
// another thread.

#include "netio/base/latency_histogram.hpp"

#include <cstddef>
#include <cstdint>

namespace netio::inline v0_3 {

struct SendSnapshot {
    bool connected = false;
    // Since the socket's construction.
    std::uint64_t messages = 0;    // accepted
    std::uint64_t bytes = 0;       // of those messages
    std::uint64_t frames = 0;      // that carried them; unbuffered: one per message
    std::uint64_t again = 0;       // calls that returned again
    std::uint64_t connections = 0; // established; with `reconnect` there may be several
    // Time until they were sent, in turns of the loop. Unbuffered: of messages, from the call of
    // send() (without those sent inline, which have no completion). Buffered: of frames, from when
    // they were full or due.
    LatencyHistogram latency;
    // Now.
    std::size_t waiting = 0;       // frames that wait for a credit (buffered)
    std::size_t credits = 0;       // free receive buffers of the peer for this connection
    std::uint64_t unconfirmed = 0; // frames of this connection that the peer may not have received
};

} // namespace netio::inline v0_3
