// SPDX-License-Identifier: Apache-2.0
#include "netio/session/session_options.hpp"

#include "netio/access/frame_seal.hpp"
#include "netio/base/option_check.hpp"
#include "netio/memory/receive_memory.hpp"
#include "netio/session/handshake.hpp"

#include <cstdint>
#include <string>

namespace netio::inline v0_3 {

namespace {

void require_receive_memory(const SessionOptions& options) {
    if (!options.receive_memory) return;
    // With the most that protection adds to a frame.
    const std::size_t buffer_bytes = ReceiveMemory::bytes_in_use(
        options.receive_buffer_bytes + access::seal_bytes(access::Protection::privacy));
    const std::size_t needed = options.receive_count * buffer_bytes;
    require_option(options.receive_memory->size() >= needed,
                   "receive_memory has " + std::to_string(options.receive_memory->size()) +
                       " bytes; receive_count " + std::to_string(options.receive_count) +
                       " times receive_buffer_bytes " +
                       std::to_string(options.receive_buffer_bytes) + " needs " +
                       std::to_string(needed));
}

} // namespace

void validate(const SessionOptions& options) {
    require_option(options.receive_buffer_bytes >= least_receive_bytes &&
                       options.receive_buffer_bytes <= UINT32_MAX,
                   "receive_buffer_bytes must be from 256 to 4294967295");
    require_option(options.receive_count >= least_session_receive_count &&
                       options.receive_count <= most_session_receive_count,
                   "receive_count must be from 4 to 16384");
    require_option(options.send_count >= 2 &&
                       options.send_count <= 1024, // one slot is kept for credits
                   "send_count must be from 2 to 1024");
    require_option(options.heartbeat.count() >= 0 && options.heartbeat.count() <= UINT16_MAX,
                   "heartbeat must be from 0 (off) to 65535 ms");
    require_option(
        options.dead_after.count() == 0 ||
            (options.dead_after >= 2 * options.heartbeat && options.dead_after.count() >= 4 &&
             options.dead_after <= longest_time),
        "dead_after must be 0 (never), or at least 4 ms and twice the heartbeat, and at most " +
            std::to_string(longest_time.count()) + " ms");
    require_option(options.rekey_after_bytes >= 1 &&
                       options.rekey_after_bytes <= access::KeyExchange::most_key_bytes,
                   "rekey_after_bytes must be from 1 to " +
                       std::to_string(access::KeyExchange::most_key_bytes));
    require_time("connect_timeout", options.connect_timeout);
    require_time("handshake_timeout", options.handshake_timeout);
    require_time("close_timeout", options.close_timeout);
    require_time("close_limit", options.close_limit);
    require_option(options.close_limit >= options.close_timeout,
                   "close_limit must not be less than close_timeout");
    require_receive_memory(options);
}

} // namespace netio::inline v0_3
