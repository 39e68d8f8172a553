// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long to wait before the next of several attempts: about twice as long each time, up to a
// limit, with a random part, so that programs that began at the same time do not stay in step. The
// waits depend only on the options, including the seed. No I/O, no clock.

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
    // Zero the first time after a success; otherwise as next().
    Duration at_once() noexcept { return once_ ? (once_ = false, Duration::zero()) : next(); }
    // Returns a wait between the current interval and half as much again.
    Duration next() noexcept {
        once_ = false;
        const Duration wait = wait_;
        wait_ = wait > options_.limit / 2 ? std::max(options_.limit, options_.first) : wait * 2;
        const auto half = static_cast<std::uint64_t>(wait.count()) / 2;
        return wait + Duration{static_cast<Duration::rep>(half > 0 ? draw() % half : 0)};
    }

  private:
    // SplitMix64: its results differ even for neighbouring seeds.
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
