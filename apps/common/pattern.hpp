// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pubsub/core/fid_map.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <variant>
#include <vector>

namespace apps {

// Test messages: their contents, their sizes, and the faults that a checker must detect. No I/O.
//
// A subscriber detects loss, reordering, duplication, corruption and truncation of a fid from the
// payload alone:
//
//     0           4           8                       16                      24
//     +-----------+-----------+-----------------------+-----------------------+- - - - -
//     | size      | check     | sequence              | fid                   | body
//     +-----------+-----------+-----------------------+-----------------------+- - - - -
//
// The check covers everything before the body. Each 8-byte word of the body follows from the header
// and its position; the final word may be shorter. Messages shorter than 24 bytes have 4 bytes of
// the sequence number, 4 bytes of the check, and the body. Little-endian.

inline constexpr std::size_t smallest_pattern_bytes = 8;
// Messages of at least this size contain their size, so that truncation is detected.
inline constexpr std::size_t whole_pattern_bytes = 24;

// Fills a message of at least smallest_pattern_bytes.
void fill_pattern(std::span<std::byte> message, netio::pubsub::Fid fid, std::uint64_t sequence);

struct PatternCounts {
    std::uint64_t messages = 0;
    std::uint64_t lost = 0;       // gaps in the sequence that no later message filled
    std::uint64_t reordered = 0;  // arrived after a later one
    std::uint64_t duplicates = 0; // already arrived, or older than the last 64
    std::uint64_t corrupt = 0;    // changed, or published under a wrong fid
    std::uint64_t truncated = 0;  // the end is missing

    PatternCounts& operator+=(const PatternCounts& other);
    friend bool operator==(const PatternCounts&, const PatternCounts&) = default;
};

class PatternChecker {
  public:
    // The first message of a fid may have any sequence number, because a subscriber may start late.
    // A damaged message whose first 24 bytes are correct counts as arrived. Each publisher of a fid
    // has its own sequence; the checker remembers the last two publishers of a fid.
    void check(netio::pubsub::Fid fid, std::span<const std::byte> message,
               std::uint32_t publisher = 0);
    PatternCounts total() const;
    PatternCounts counts(netio::pubsub::Fid fid) const;
    // Returns the sequence number of the fid's first correct message; nullopt if there was none.
    std::optional<std::uint64_t> first(netio::pubsub::Fid fid) const;

  private:
    // The messages that have arrived from one publisher.
    struct Numbers {
        std::uint32_t publisher = 0;
        std::uint64_t begin = 0;
        std::uint64_t next = 0;   // the highest received sequence + 1
        std::uint64_t recent = 0; // bit i: next - 1 - i has arrived
    };
    struct Stream {
        std::optional<std::uint64_t> first; // of all publishers, for reports
        Numbers now;
        Numbers former; // its messages in flight may arrive after the first of the new one
        PatternCounts counts;

        Numbers& of(std::uint32_t publisher);
    };
    static void check_short(Stream& stream, netio::pubsub::Fid fid,
                            std::span<const std::byte> message, std::uint32_t publisher);
    static void place(Stream& stream, std::uint64_t sequence, std::uint32_t publisher);

    netio::pubsub::FidMap<Stream> streams_;
};

// The sizes of messages in order, reproducible from a seed.
struct FixedSize {
    std::size_t bytes = 0;
};
struct UniformSize {
    std::size_t min = 0, max = 0;
};
struct NormalSize {
    double mean = 0, stddev = 0;
    std::size_t min = 0, max = 0; // values outside are clamped
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

// Faults that were injected on purpose. A checker that receives all messages must count the same
// numbers.
struct FaultCounts {
    std::uint64_t missing = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t corrupted = 0;
    std::uint64_t late = 0; // sent after the next message of its fid
    std::uint64_t truncated = 0;

    FaultCounts& operator+=(const FaultCounts& other) {
        missing += other.missing;
        duplicated += other.duplicated;
        corrupted += other.corrupted;
        late += other.late;
        truncated += other.truncated;
        return *this;
    }
    friend bool operator==(const FaultCounts&, const FaultCounts&) = default;
};

// Nanoseconds since 1970. Times of different machines are comparable if their clocks are
// synchronised.
inline std::uint64_t wall_clock() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

} // namespace apps
