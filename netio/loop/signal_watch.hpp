// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/export.hpp"
#include "netio/loop/descriptor_watch.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace netio::inline v0_3 {

// Calls the handler in the loop, with the number of the signal, for each of these operating-system
// signals (signalfd(2)). Construct it before other threads are started: the signals are blocked in
// the calling thread and in threads that it starts later. The destructor, called in the same
// thread, unblocks the signals that no other watch of this thread uses and that were not blocked
// before. Throws FabricError.
class NETIO_EXPORT SignalWatch {
  public:
    SignalWatch(EventLoop& loop, const std::vector<int>& signals, std::function<void(int)> handler);
    ~SignalWatch();
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;

  private:
    struct Descriptor;
    std::unique_ptr<Descriptor> descriptor_;
    std::unique_ptr<DescriptorWatch> watch_;
};

} // namespace netio::inline v0_3
