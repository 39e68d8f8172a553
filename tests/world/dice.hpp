// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random decisions that follow from a seed.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace netio::world {

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : random_{seed * 0x9e3779b97f4a7c15ULL + 1} {}

    std::int64_t between(std::int64_t first, std::int64_t last) {
        return first +
               static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(last - first + 1));
    }
    bool percent(std::int64_t chance) { return between(0, 99) < chance; }
    template <class T>
    const T& one_of(const std::vector<T>& values) {
        return values[static_cast<std::size_t>(
            between(0, static_cast<std::int64_t>(values.size()) - 1))];
    }
    // A duration between zero and longer than every time-out.
    std::int64_t while_us() {
        const std::int64_t kind = between(0, 9);
        if (kind < 4) return between(50, 3'000);
        if (kind < 7) return between(3'000, 300'000);
        return between(300'000, 40'000'000);
    }

  private:
    std::mt19937_64 random_;
};

} // namespace netio::world
