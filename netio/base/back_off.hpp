// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long to wait before the next of several attempts: each time about twice as long, up to a
// limit, and never as long as others who began at the same time. The same numbers for a seed. No
// I/O, no clock.

#include "netio/base/time.hpp"

#include <algorithm>
#include <cstdint>

namespace netio::inline v0_3 {

class BackOff {
  public:
    struct Options {
        Duration first{};
        Duration limit{}; // at least `first`
        std::uint64_t seed = 0;
    };
    explicit BackOff(const Options& options) noexcept
        : options_{options}, wait_{options.first}, state_{options.seed} {}

    // The last attempt has succeeded.
    void reset() noexcept {
        wait_ = options_.first;
        once_ = true;
    }
    // The first time after a success there is no need to wait, the next time there is.
    Duration at_once() noexcept { return once_ ? (once_ = false, Duration::zero()) : next(); }
    // From what is due to half as long again.
    Duration next() noexcept {
        once_ = false;
        const Duration wait = wait_;
        wait_ = wait > options_.limit / 2 ? std::max(options_.limit, options_.first) : wait * 2;
        const auto half = static_cast<std::uint64_t>(wait.count()) / 2;
        return wait + Duration{static_cast<Duration::rep>(half > 0 ? draw() % half : 0)};
    }

  private:
    // SplitMix64, whose seeds may be near each other.
    std::uint64_t draw() noexcept {
        std::uint64_t number = state_ += 0x9e3779b97f4a7c15;
        number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
        number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
        return number ^ (number >> 31);
    }

    Options options_;
    Duration wait_;
    bool once_ = false;
    std::uint64_t state_;
};

} // namespace netio::inline v0_3
