// SPDX-License-Identifier: Apache-2.0
#include "apps/common/sizes.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace apps {
namespace {

template <typename... Cases>
struct Match : Cases... {
    using Cases::operator()...;
};
template <typename... Cases>
Match(Cases...) -> Match<Cases...>;

// In (0, 1]. Written out, since the distributions of the standard library differ between its
// implementations and a seed must mean the same everywhere.
double unit(std::mt19937_64& random) {
    return (static_cast<double>(random() >> 11) + 1.0) * 0x1p-53;
}

std::size_t clamp(double value, std::size_t min, std::size_t max) {
    if (!(value > static_cast<double>(min))) return min;
    if (value >= static_cast<double>(max)) return max;
    return static_cast<std::size_t>(std::llround(value));
}

} // namespace

std::size_t smallest(const Sizes& sizes) {
    return std::visit(Match{[](const FixedSize& size) { return size.bytes; },
                            [](const SizeList& list) { return std::ranges::min(list.bytes); },
                            [](const auto& range) { return range.min; }},
                      sizes);
}

std::size_t largest(const Sizes& sizes) {
    return std::visit(Match{[](const FixedSize& size) { return size.bytes; },
                            [](const SizeList& list) { return std::ranges::max(list.bytes); },
                            [](const auto& range) { return range.max; }},
                      sizes);
}

SizeSequence::SizeSequence(Sizes sizes, std::uint64_t seed)
    : sizes_{std::move(sizes)}, random_{seed} {}

std::size_t SizeSequence::next() {
    return std::visit(
        Match{[](const FixedSize& size) { return size.bytes; },
              [&](const UniformSize& range) {
                  return range.min +
                         static_cast<std::size_t>(random_() % (range.max - range.min + 1));
              },
              [&](const NormalSize& normal) {
                  const double radius = std::sqrt(-2.0 * std::log(unit(random_)));
                  const double angle = 2.0 * std::numbers::pi * unit(random_);
                  return clamp(normal.mean + normal.stddev * radius * std::cos(angle), normal.min,
                               normal.max);
              },
              [&](const ExponentialSize& exponential) {
                  return clamp(-exponential.mean * std::log(unit(random_)), exponential.min,
                               exponential.max);
              },
              [&](const SizeList& list) { return list.bytes[position_++ % list.bytes.size()]; }},
        sizes_);
}

} // namespace apps
