// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages that prove themselves: a subscriber finds loss, reordering, duplication and corruption
// per fid from the payload alone, whatever the publisher says. No I/O.
//
//     0           4           8                       16                      24
//     +-----------+-----------+-----------------------+-----------------------+- - - - - -
//     | "NPAT"    | check     | sequence              | fid                   | body
//     +-----------+-----------+-----------------------+-----------------------+- - - - - -
//
// The check covers sequence, fid and size; each 8-byte word of the body follows from them and its
// place (the last one may be cut). Little-endian.

#include "pubsub/core/fid_map.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace apps {

inline constexpr std::size_t smallest_pattern_bytes = 24;

// Fills a message of at least smallest_pattern_bytes.
void fill_pattern(std::span<std::byte> message, netio::pubsub::Fid fid, std::uint64_t sequence);

struct PatternCounts {
    std::uint64_t messages = 0;
    std::uint64_t lost = 0;       // gaps in the sequence that nothing has filled
    std::uint64_t reordered = 0;  // arrived after a later one
    std::uint64_t duplicates = 0; // arrived before, or older than the last 64
    std::uint64_t corrupt = 0;    // not what was sent, or under a wrong fid

    PatternCounts& operator+=(const PatternCounts& other);
    friend bool operator==(const PatternCounts&, const PatternCounts&) = default;
};

class PatternChecker {
  public:
    // The first message of a fid may have any sequence number: a subscriber may come late.
    void check(netio::pubsub::Fid fid, std::span<const std::byte> message);
    // The next message of the fid may have any number, as that of another publisher.
    void begin_anew(netio::pubsub::Fid fid);
    PatternCounts total() const;
    PatternCounts counts(netio::pubsub::Fid fid) const;
    // The sequence number of its first sound message; nullopt: there was none.
    std::optional<std::uint64_t> first(netio::pubsub::Fid fid) const;

  private:
    struct Stream {
        std::uint64_t first = 0;  // of all, for reports
        std::uint64_t begin = 0;  // of this publisher's
        std::uint64_t next = 0;   // sequence after the highest seen
        std::uint64_t recent = 0; // bit i: next - 1 - i has arrived
        bool started = false;
        bool anew = false;
        PatternCounts counts;
    };
    static void place(Stream& stream, std::uint64_t sequence);

    netio::pubsub::FidMap<Stream> streams_;
};

} // namespace apps
