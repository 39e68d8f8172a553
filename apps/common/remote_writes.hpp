// SPDX-License-Identifier: Apache-2.0
#pragma once

// --remote-writes, of the commands that speak the stream.

#include "stream/socket/stream_socket.hpp"

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace apps {

CLI::Option* add_remote_writes(CLI::App& command, netio::stream::RemoteWrites& value);

} // namespace apps
