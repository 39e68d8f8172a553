// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers that look random and follow from a seed, the same everywhere. Eight bytes, as there may
// be one for each of a million fids (SplitMix64).

#include <cstdint>

namespace apps {

class Draw {
  public:
    explicit Draw(std::uint64_t seed) noexcept : state_{seed} {}

    std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t value = state_;
        value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
        value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
        return value ^ (value >> 31);
    }
    // In (0, 1].
    double unit() noexcept { return (static_cast<double>(next() >> 11) + 1.0) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

} // namespace apps
