// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts durations in buckets that widen with the duration: four buckets for each power of two
// nanoseconds, so a value is known to within a quarter. All durations from 0 are covered. The
// histogram takes 2 KiB at most, and adding a value takes a few instructions. A plain value: no
// clock, no allocation.
//
//     netio::LatencyHistogram latency;
//     latency.add(std::chrono::microseconds{12});
//     const netio::Duration median = latency.quantile(0.5);

#include "netio/base/time.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace netio::inline v0_3 {

class LatencyHistogram {
  public:
    static constexpr std::size_t bucket_count = 252;

    // A negative duration counts as zero.
    void add(Duration taken) noexcept {
        const auto value = static_cast<std::uint64_t>(std::max<Duration::rep>(0, taken.count()));
        ++buckets_[bucket_of(value)];
        sum_ += value;
        longest_ = std::max(longest_, value);
    }
    void add(const LatencyHistogram& other) noexcept {
        for (std::size_t i = 0; i < bucket_count; ++i)
            buckets_[i] += other.buckets_[i];
        sum_ += other.sum_;
        longest_ = std::max(longest_, other.longest_);
    }

    // Number, sum and largest of the durations that were added.
    std::uint64_t count() const noexcept { return count_before(bucket_count); }
    Duration sum() const noexcept { return to_duration(sum_); }
    Duration longest() const noexcept { return to_duration(longest_); }
    // The number of durations below 2^`exponent` nanoseconds. Exact, because a bucket ends there.
    std::uint64_t count_below_power(unsigned exponent) const noexcept {
        return count_before(exponent > 63 ? bucket_count : bucket_of(std::uint64_t{1} << exponent));
    }
    // An upper limit for the given part (0 to 1) of all durations; too high by a quarter at most.
    // Zero if the histogram is empty.
    Duration quantile(double part) const noexcept {
        const std::uint64_t all = count();
        if (all == 0) return Duration::zero();
        const double wanted = std::ceil(std::clamp(part, 0.0, 1.0) * static_cast<double>(all));
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < bucket_count; ++i) {
            seen += buckets_[i];
            if (seen > 0 && static_cast<double>(seen) >= wanted)
                return to_duration(std::min(longest_, largest_of(i)));
        }
        return longest();
    }

  private:
    static constexpr unsigned fine_bits = 2;

    static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
        if (value < 1U << fine_bits) return value;
        const auto exponent = static_cast<unsigned>(std::bit_width(value)) - 1;
        const std::uint64_t fine = value >> (exponent - fine_bits) & ((1U << fine_bits) - 1);
        return (std::size_t{exponent - 1} << fine_bits) + fine;
    }
    static constexpr std::uint64_t largest_of(std::size_t bucket) noexcept {
        if (bucket < 1U << fine_bits) return bucket;
        const auto exponent = static_cast<unsigned>(bucket >> fine_bits) + 1;
        const std::uint64_t fine = bucket & ((1U << fine_bits) - 1);
        return (std::uint64_t{1} << exponent) + ((fine + 1) << (exponent - fine_bits)) - 1;
    }
    static constexpr Duration to_duration(std::uint64_t value) noexcept {
        return Duration{static_cast<Duration::rep>(std::min<std::uint64_t>(value, INT64_MAX))};
    }
    std::uint64_t count_before(std::size_t end) const noexcept {
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < end; ++i)
            count += buckets_[i];
        return count;
    }

    std::array<std::uint64_t, bucket_count> buckets_{};
    std::uint64_t sum_ = 0;
    std::uint64_t longest_ = 0;
};

static_assert(sizeof(LatencyHistogram) <= 2048);

} // namespace netio::inline v0_3
