// SPDX-License-Identifier: Apache-2.0
#pragma once

// The descriptors of this process: how many are left, and which ones a library has opened.

#include "netio/base/signals_blocked.hpp"

#include <array>
#include <functional>
#include <vector>

namespace netio::fabric {

// The number that the next descriptor will have; -1: none is left.
int lowest_free_descriptor() noexcept;
// So few are left that no new peer should take one: those we have must be served and closed.
bool descriptors_are_short() noexcept;

// Visits the descriptors that are open now. Throws FabricError if they cannot be listed.
void for_each_descriptor(const std::function<void(int fd)>& visit);

// Programs that are exec'ed would inherit what libfabric opens (measured, libfabric 1.17 and 2.5):
// a port stays taken, a peer does not notice a death. What is opened while this object lives is
// closed on exec; what another thread opens meanwhile is, too. It lists all descriptors, so it is
// for set-up only.
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

// The same for a call that opens a few descriptors, and that is made often: it looks only at the
// numbers that the next descriptors will have.
class FewCloseOnExec {
  public:
    FewCloseOnExec() noexcept;
    ~FewCloseOnExec();
    FewCloseOnExec(const FewCloseOnExec&) = delete;
    FewCloseOnExec& operator=(const FewCloseOnExec&) = delete;

  private:
    std::array<int, 12> next_; // -1: there is none
};

} // namespace netio::fabric
