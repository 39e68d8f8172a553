// SPDX-License-Identifier: Apache-2.0
#pragma once

// A descriptor that one thread makes readable for another.

#include <cerrno>
#include <cstdint>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace netio::pubsub::inline v0_2 {

class WakeUp {
  public:
    WakeUp() : descriptor_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (descriptor_ < 0) throw std::system_error{errno, std::system_category(), "eventfd"};
    }
    ~WakeUp() { ::close(descriptor_); }
    WakeUp(const WakeUp&) = delete;
    WakeUp& operator=(const WakeUp&) = delete;

    int descriptor() const noexcept { return descriptor_; }
    void call() noexcept {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
    }
    void answer() noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(descriptor_, &count, sizeof count);
    }

  private:
    int descriptor_;
};

} // namespace netio::pubsub::inline v0_2
