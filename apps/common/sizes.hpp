// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sizes of messages, one after the other, reproducible from a seed. No I/O.

#include <cstddef>
#include <cstdint>
#include <random>
#include <variant>
#include <vector>

namespace apps {

struct FixedSize {
    std::size_t bytes = 0;
};
struct UniformSize {
    std::size_t min = 0, max = 0;
};
struct NormalSize {
    double mean = 0, stddev = 0;
    std::size_t min = 0, max = 0; // what falls outside is moved to the nearer of the two
};
struct ExponentialSize {
    double mean = 0;
    std::size_t min = 0, max = 0; // as above
};
struct SizeList {
    std::vector<std::size_t> bytes; // in turn
};
using Sizes = std::variant<FixedSize, UniformSize, NormalSize, ExponentialSize, SizeList>;

std::size_t smallest(const Sizes& sizes);
std::size_t largest(const Sizes& sizes);

class SizeSequence {
  public:
    SizeSequence(Sizes sizes, std::uint64_t seed);
    std::size_t next();

  private:
    Sizes sizes_;
    std::mt19937_64 random_;
    std::size_t position_ = 0;
};

} // namespace apps
