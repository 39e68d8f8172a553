// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `--verify` finds: in the messages themselves, and how long those took that say when they
// were published. No I/O, no clock.

#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "netio/base/latency_histogram.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace apps::subscribe {

class Verifier {
  public:
    // So many bytes of each message stand in front of what is verified.
    explicit Verifier(std::size_t header_bytes) noexcept : header_bytes_{header_bytes} {}

    // It is here at `nanoseconds` since 1970, by the clock of this machine.
    void check(netio::pubsub::Fid fid, std::span<const std::byte> message,
               std::uint64_t nanoseconds);
    // The next message of the fid is of another publisher.
    void begin_anew(netio::pubsub::Fid fid) { pattern_.begin_anew(fid); }

    const PatternChecker& pattern() const noexcept { return pattern_; }
    // Nothing: no message had a time.
    std::optional<LatencyReport> latency() const;

  private:
    std::size_t header_bytes_;
    PatternChecker pattern_;
    netio::LatencyHistogram latency_;
    std::uint64_t ahead_ = 0; // of our clock
};

} // namespace apps::subscribe
