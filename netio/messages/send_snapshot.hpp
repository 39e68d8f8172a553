// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of a send socket at a moment, for display. A plain value: it may be passed to another
// thread.

#include "netio/base/latency_histogram.hpp"

#include <cstddef>
#include <cstdint>

namespace netio::inline v0_3 {

struct SendSnapshot {
    bool connected = false;
    // Since the socket's construction.
    std::uint64_t messages = 0;    // accepted
    std::uint64_t bytes = 0;       // of those messages
    std::uint64_t frames = 0;      // that they were put into; unbuffered: one for each
    std::uint64_t again = 0;       // refusals
    std::uint64_t connections = 0; // that were open; with `reconnect` there may be several
    // Until they were sent, in turns of the loop: of messages from the call to send() on (but not
    // of those sent inline, which have no completion); buffered: of frames from the moment at which
    // they were full, or were to leave.
    LatencyHistogram latency;
    // Now.
    std::size_t waiting = 0;       // frames that have no credit yet (buffered)
    std::size_t credits = 0;       // receive buffers that the peer has for us
    std::uint64_t unconfirmed = 0; // frames of this connection that the peer may not have taken
};

} // namespace netio::inline v0_3
