// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a stream opens its session with: its hello, and the session's options. `lends`: memory to
// the peer, which writes into it.

#include "stream/core/agreement.hpp"
#include "stream/core/wire.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/base/frame.hpp"
#include "netio/session/handshake.hpp"
#include "netio/session/session_options.hpp"

#include <algorithm>

namespace netio::stream::inline v0_2 {

inline netio::Hello hello_with(const StreamSocket::Options& options, bool lends) {
    netio::Hello hello{.service = Service::stream, .service_data = {}};
    const auto data = encode_hello(hello_of(options.sender, options.receiver, lends));
    std::ranges::copy(data, hello.service_data.bytes.begin());
    hello.service_data.size = data.size();
    return hello;
}

// Where bytes come in frames, the session's receives are for these.
inline SessionOptions session_with(const StreamSocket::Options& options, bool lends) {
    SessionOptions session = options.session;
    session.remote_writes = lends;
    if (!lends) {
        session.receive_bytes = frame_header_bytes + options.frame_bytes;
        session.receive_count = options.frame_count;
    }
    return session;
}

} // namespace netio::stream::inline v0_2
