// SPDX-License-Identifier: Apache-2.0
#pragma once

// Options of a session. Part of every socket's options.

#include "netio/base/require_cxx20.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace netio::inline v0_3 {

class ReceiveMemory;

struct SessionOptions {
    std::size_t receive_buffer_bytes =
        66 * 1024;                  // per receive buffer; the largest frame that this side receives
    std::size_t receive_count = 64; // receive buffers, which limit the peer's credits
    // Bytes that the receive buffers may grow to while the peer is blocked over a long round trip.
    // Also limited by the transport's budget for all sessions (FabricOptions). 0: they do not grow.
    std::size_t window_limit = 64 * 1024 * 1024;
    // Received bytes that the user may keep without slowing down the peer, in whole receive
    // buffers. Beyond this limit, kept buffers are not replaced, and the peer is blocked until the
    // user has released some. 0: no kept buffer is replaced.
    std::size_t keep_limit_bytes = 64 * 1024 * 1024;
    std::size_t send_count = 64;               // limit of frames in flight
    std::chrono::milliseconds heartbeat{5000}; // sends something at least this often; 0: never
    // A peer that sends nothing for this long is treated as dead, and the connection ends (silent);
    // 0: never. Time in which this side's loop did not run does not count.
    std::chrono::milliseconds dead_after{30000};
    std::chrono::milliseconds connect_timeout{5000};
    // Limit of the time from accepting a connection until the peer's open frame has arrived; also
    // of the wait for the answer to a key exchange.
    std::chrono::milliseconds handshake_timeout{5000};
    // close(): limit of the time without progress of the peer. A peer that still receives data
    // reports progress at least once per heartbeat.
    std::chrono::milliseconds close_timeout{10000};
    std::chrono::milliseconds close_limit{60000}; // close(): limit in total
    // Bytes after which this side changes its sending key, with the protection integrity or
    // privacy.
    std::uint64_t rekey_after_bytes = std::uint64_t{1} << 34;
    bool remote_writes = false;   // the peer may write into memory of this side
    bool never_immediate = false; // report writes in frames even if the fabric could report them
    // Memory of the user's for the receive buffers (netio/memory/receive_memory.hpp), instead of
    // memory of the library: receive_count buffers, whose number does not grow. The rest of it
    // replaces kept buffers. nullptr: memory of the library.
    std::shared_ptr<ReceiveMemory> receive_memory{};
};

// Throws std::invalid_argument, which names the option and the allowed values.
void validate(const SessionOptions& options);

} // namespace netio::inline v0_3
