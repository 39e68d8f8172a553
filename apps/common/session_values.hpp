// SPDX-License-Identifier: Apache-2.0
#pragma once

// Options of the command line about the connections of a command
// (netio/session/session_options.hpp), with the defaults that the options have, which the help
// shows.

#include "netio/session/session_options.hpp"

namespace CLI {
class App;
} // namespace CLI

namespace apps {

// How long it waits, for what.
void add_session_times(CLI::App& command, netio::SessionOptions& session);
// What it receives into.
void add_receive_buffers(CLI::App& command, netio::SessionOptions& session);

} // namespace apps
