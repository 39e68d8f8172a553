// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a session may be told when it is made. Part of every socket's options.

#include "netio/base/require_cxx20.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace netio::inline v0_2 {

struct SessionOptions {
    std::size_t receive_bytes = 66 * 1024; // per receive buffer; the largest frame we can take
    std::size_t receive_count = 64;        // receive buffers, and so the peer's credits
    // Where the way to the peer is long: bytes that the receive buffers may grow to together, while
    // that holds the peer up. Not more than the transport has for all (FabricOptions); 0: they do
    // not grow.
    std::size_t window_limit = 64 * 1024 * 1024;
    std::size_t send_count = 64;               // frames in the fabric's hands at once
    std::chrono::milliseconds heartbeat{5000}; // send something at least this often; 0: never
    // Silence that makes a peer dead; 0: none does. Only the time counts in which our loop looked.
    std::chrono::milliseconds dead_after{30000};
    std::chrono::milliseconds connect_timeout{5000};
    // accepted, but no open frame; or an answer to a key exchange
    std::chrono::milliseconds handshake_timeout{5000};
    // close(): without a sign that the peer has taken anything more; a peer that has something to
    // take says so once a heartbeat, at least
    std::chrono::milliseconds close_timeout{10000};
    std::chrono::milliseconds close_limit{60000}; // close(): in all
    // With the protection integrity or privacy this side changes the key of what it sends so often.
    std::uint64_t key_bytes = std::uint64_t{1} << 34;
    bool remote_writes = false;   // the peer writes into memory here
    bool never_immediate = false; // tell of writes by frames even where the fabric could
};

// Throws std::invalid_argument naming the option and what is allowed.
void validate(const SessionOptions& options);

} // namespace netio::inline v0_2
