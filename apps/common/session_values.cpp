// SPDX-License-Identifier: Apache-2.0
#include "apps/common/session_values.hpp"

#include "apps/common/option_values.hpp"

#include <CLI/CLI.hpp>

namespace apps {

void add_session_times(CLI::App& command, netio::SessionOptions& session) {
    add_milliseconds(command, "--heartbeat", session.heartbeat,
                     "Send something at least this often, up to 65535ms; 0: never", Zero::taken);
    add_milliseconds(command, "--dead-after", session.dead_after,
                     "Silence that makes a peer dead, twice --heartbeat or more; 0: none does",
                     Zero::taken);
    add_milliseconds(command, "--connect-timeout", session.connect_timeout,
                     "For each attempt to connect", Zero::refused);
    add_milliseconds(command, "--handshake-timeout", session.handshake_timeout,
                     "For a peer's first words", Zero::refused);
    add_milliseconds(command, "--close-timeout", session.close_timeout,
                     "At the end, without a sign that the peer takes anything more", Zero::refused);
    add_milliseconds(command, "--close-limit", session.close_limit, "At the end, in all",
                     Zero::refused);
}

void add_receive_buffers(CLI::App& command, netio::SessionOptions& session) {
    add_count(command, "--buffers", session.receive_count, "Receive buffers",
              {.min = 4, .max = 16384});
    add_bytes(command, "--buffer-size", session.receive_bytes, "Bytes of each",
              {.min = 256, .max = 1U << 30});
    add_bytes(command, "--window-limit", session.window_limit,
              "Bytes to which all of them grow over a long way; 0: they do not",
              {.min = 0, .max = std::size_t{1} << 40U});
}

void add_largest_message(CLI::App& command, std::size_t& bytes) {
    add_bytes(command, "--largest-message", bytes,
              "Bytes of the largest that is put together; who may send larger ones is told",
              {.min = 1, .max = (1U << 30) - 1});
}

void add_buffer_limit(CLI::App& command, std::size_t& bytes) {
    add_bytes(command, "--buffer-size-limit", bytes,
              "Bytes to which each receive buffer grows where a publisher's pages are larger",
              {.min = 256, .max = 1U << 30});
}

void add_retry_times(CLI::App& command, std::chrono::milliseconds& interval,
                     std::chrono::milliseconds& limit) {
    add_milliseconds(command, "--retry", interval,
                     "Before the second attempt; about twice as long each time", Zero::refused);
    add_milliseconds(command, "--retry-limit", limit, "The longest of these times", Zero::refused);
}

} // namespace apps
