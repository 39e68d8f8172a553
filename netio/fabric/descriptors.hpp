// SPDX-License-Identifier: Apache-2.0
#pragma once

// The descriptors of this process: how many are free, and which ones a library has opened.

#include "netio/base/signals_blocked.hpp"

#include <array>
#include <functional>
#include <vector>

namespace netio::fabric {

// The number that the next descriptor will get; -1: none is free.
int lowest_free_descriptor() noexcept;
// Whether so few are free that no new peer may use one, because existing peers must be served and
// closed.
bool descriptors_are_short() noexcept;

// Visits the descriptors that are open now. Throws FabricError if they cannot be listed.
void for_each_descriptor(const std::function<void(int fd)>& visit);

// Marks descriptors that libfabric opens while this object lives as close-on-exec, and those that
// other threads open during that time. Otherwise programs that are exec'ed would inherit them
// (measured, libfabric 1.17 and 2.5): a port stays in use, and a peer does not notice that this
// process has ended. Lists all descriptors, so it is for set-up only.
class CloseOnExec {
  public:
    CloseOnExec();
    ~CloseOnExec();
    CloseOnExec(const CloseOnExec&) = delete;
    CloseOnExec& operator=(const CloseOnExec&) = delete;

    static void set(int fd) noexcept;

  private:
    const AllSignalsBlocked blocked_; // libfabric may start threads
    std::vector<int> before_;
};

// The same for a call that opens a few descriptors and is made often: it checks only the numbers
// that the next descriptors will get.
class FewCloseOnExec {
  public:
    FewCloseOnExec() noexcept;
    ~FewCloseOnExec();
    FewCloseOnExec(const FewCloseOnExec&) = delete;
    FewCloseOnExec& operator=(const FewCloseOnExec&) = delete;

  private:
    std::array<int, 12> next_; // -1: none
};

} // namespace netio::fabric
