// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/export.hpp"
#include "netio/loop/event_loop.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace netio::inline v0_3 {

// Calls the handler in the loop while a descriptor of the user's is readable, or writable
// (level-triggered). The handler may destroy the watch. The user owns the descriptor, and must keep
// it open as long as the watch lives. A descriptor may have several watches: one for reading and
// one for writing, created and destroyed as needed. Belongs to the loop's thread.
class NETIO_EXPORT DescriptorWatch {
  public:
    enum class Interest : std::uint8_t { readable, writable };
    // Throws FabricError if the descriptor is not open, or is one that epoll does not accept (a
    // regular file).
    DescriptorWatch(EventLoop& loop, int fd, Interest interest, std::function<void()> handler);
    ~DescriptorWatch();
    DescriptorWatch(const DescriptorWatch&) = delete;
    DescriptorWatch& operator=(const DescriptorWatch&) = delete;

  private:
    struct Source;
    EventLoop& loop_;
    std::unique_ptr<Source> source_;
};

} // namespace netio::inline v0_3
