// SPDX-License-Identifier: Apache-2.0
#pragma once

// Options of the command line about the connections of a command
// (netio/session/session_options.hpp), with the defaults that the options have, which the help
// shows.

#include "netio/session/session_options.hpp"

#include <chrono>
#include <cstddef>

namespace CLI {
class App;
} // namespace CLI

namespace apps {

// How long it waits, for what.
void add_session_times(CLI::App& command, netio::SessionOptions& session);
// What it receives into.
void add_receive_buffers(CLI::App& command, netio::SessionOptions& session);
// Of what a peer sends.
void add_largest_message(CLI::App& command, std::size_t& bytes);
// Of a subscriber, whose buffers become as large as a publisher's pages.
void add_buffer_limit(CLI::App& command, std::size_t& bytes);
// Between attempts to connect.
void add_retry_times(CLI::App& command, std::chrono::milliseconds& interval,
                     std::chrono::milliseconds& limit);

} // namespace apps
