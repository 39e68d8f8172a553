// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages that prove themselves: a subscriber finds loss, reordering, duplication, corruption and
// truncation per fid from the payload alone, whatever the publisher says. No I/O.
//
//     0           4           8                       16                      24
//     +-----------+-----------+-----------------------+-----------------------+- - - - -
//     | size      | check     | sequence              | fid                   | [time,] body
//     +-----------+-----------+-----------------------+-----------------------+- - - - -
//
// The check covers all before the body; each 8-byte word of the body follows from them and its
// place (the last one may be cut). The uppermost bit of the size says that there is a time: when it
// was published, in nanoseconds since 1970. What is shorter than 24 bytes has 4 bytes of the
// sequence number, 4 of the check, and the body. Little-endian.

#include "pubsub/core/fid_map.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace apps {

inline constexpr std::size_t smallest_pattern_bytes = 8;
// From so many on it says how long it is, so that what is missing at its end is known.
inline constexpr std::size_t whole_pattern_bytes = 24;
inline constexpr std::size_t timed_pattern_bytes = 32;

// Fills a message of at least smallest_pattern_bytes.
void fill_pattern(std::span<std::byte> message, netio::pubsub::Fid fid, std::uint64_t sequence);
// The same with a time, which is zero until it is stamped; at least timed_pattern_bytes.
void fill_timed_pattern(std::span<std::byte> message, netio::pubsub::Fid fid,
                        std::uint64_t sequence);
// Of what was filled by the latter, also if it has been cut or damaged behind the time.
void stamp_pattern(std::span<std::byte> message, std::uint64_t nanoseconds);

struct PatternCounts {
    std::uint64_t messages = 0;
    std::uint64_t lost = 0;       // gaps in the sequence that nothing has filled
    std::uint64_t reordered = 0;  // arrived after a later one
    std::uint64_t duplicates = 0; // arrived before, or older than the last 64
    std::uint64_t corrupt = 0;    // not what was sent, or under a wrong fid
    std::uint64_t truncated = 0;  // the end of it is missing

    PatternCounts& operator+=(const PatternCounts& other);
    friend bool operator==(const PatternCounts&, const PatternCounts&) = default;
};

class PatternChecker {
  public:
    // The first message of a fid may have any sequence number: a subscriber may come late. A
    // damaged one whose first 24 bytes are sound counts as arrived. The time of a sound one, in
    // nanoseconds since 1970; nothing: it has none, or is not sound. Each publisher of a fid has
    // numbers of its own; of a fid that moves the last two are known.
    std::optional<std::uint64_t> check(netio::pubsub::Fid fid, std::span<const std::byte> message,
                                       std::uint32_t publisher = 0);
    PatternCounts total() const;
    PatternCounts counts(netio::pubsub::Fid fid) const;
    // The sequence number of its first sound message; nullopt: there was none.
    std::optional<std::uint64_t> first(netio::pubsub::Fid fid) const;

  private:
    // What has come of one publisher.
    struct Numbers {
        std::uint32_t publisher = 0;
        std::uint64_t begin = 0;
        std::uint64_t next = 0;   // sequence after the highest seen
        std::uint64_t recent = 0; // bit i: next - 1 - i has arrived; 0: nothing
    };
    struct Stream {
        std::optional<std::uint64_t> first; // of all publishers, for reports
        Numbers now;
        Numbers former; // what was under way when the fid moved may come behind the other's first
        PatternCounts counts;

        Numbers& of(std::uint32_t publisher);
    };
    static void check_short(Stream& stream, netio::pubsub::Fid fid,
                            std::span<const std::byte> message, std::uint32_t publisher);
    static void place(Stream& stream, std::uint64_t sequence, std::uint32_t publisher);

    netio::pubsub::FidMap<Stream> streams_;
};

} // namespace apps
