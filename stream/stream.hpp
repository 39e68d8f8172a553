// SPDX-License-Identifier: Apache-2.0
#pragma once

// Byte streams. Installed as <netio/stream.hpp>.

#include "netio/context.hpp"
#include "stream/socket/blocking_stream.hpp"
#include "stream/socket/stream_listener.hpp"
#include "stream/socket/stream_socket.hpp"

namespace netio::inline v0_3 {

using stream::BlockingListener;
using stream::BlockingStream;
using stream::StreamListener;
using stream::StreamSocket;

} // namespace netio::inline v0_3
