// SPDX-License-Identifier: Apache-2.0
#pragma once

// System calls that fail as on a file system that does not support them.

#include <atomic>

namespace apps::test {

// The errno of each call; 0: the call succeeds.
struct RefusedCalls {
    std::atomic<int> flock{0};
    std::atomic<int> fchmod{0};
    std::atomic<int> futimens{0};
    std::atomic<int> fsync_of_folder{0};
    std::atomic<int> link{0};
    std::atomic<int> seek_data{0};
};
RefusedCalls& refused_calls();

// Makes one system call fail during its lifetime.
class Refusal {
  public:
    Refusal(std::atomic<int>& call, int error) : call_{call} { call_ = error; }
    ~Refusal() { call_ = 0; }
    Refusal(const Refusal&) = delete;
    Refusal& operator=(const Refusal&) = delete;

  private:
    std::atomic<int>& call_;
};

} // namespace apps::test
