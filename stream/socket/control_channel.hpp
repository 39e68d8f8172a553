// SPDX-License-Identifier: Apache-2.0
#pragma once

// ControlChannel: what one side of a stream tells the other, control messages and rings, as frames
// of their session. A message that is too long to be copied has registered memory until it has
// left, so this outlives the session.

#include "stream/core/wire.hpp"
#include "stream/socket/frames.hpp"

#include "netio/base/cookie.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/session/session.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace netio::stream::inline v0_2 {

class ControlChannel {
  public:
    // There is no memory yet, and so nothing free.
    ControlChannel() = default;
    // Makes the memory. Throws std::bad_alloc.
    void open();

    bool has_free() const noexcept { return !free_.empty(); }
    // Only while one is free. False: the connection has broken, and says so by on_closed.
    bool send(const ControlMessage& message, Session& session);
    static Status announce(const RemoteRing& ring, Session& session);

    // Whose completion of the session's it is.
    static bool owns(Cookie cookie) noexcept {
        return (static_cast<std::uint64_t>(cookie) & control_cookie) != 0;
    }
    void on_sent(Cookie cookie);

    std::uint64_t sent_count() const noexcept { return sent_count_; }

  private:
    std::unique_ptr<RegisteredBuffer> memory_;
    std::vector<std::uint32_t> free_;
    std::uint64_t sent_count_ = 0;
};

} // namespace netio::stream::inline v0_2
