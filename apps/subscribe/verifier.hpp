// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `--verify` finds: in the messages themselves, and how long those took that say when they
// were published. No I/O, no clock.

#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "netio/base/latency_histogram.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace apps::subscribe {

class Verifier {
  public:
    // So many bytes of each message stand in front of what is verified.
    explicit Verifier(std::size_t header_bytes) noexcept : header_bytes_{header_bytes} {}

    // It is here at `nanoseconds` since 1970, by the clock of this machine. `publisher`: its name.
    void check(std::string_view publisher, netio::pubsub::Fid fid,
               std::span<const std::byte> message, std::uint64_t nanoseconds);
    // What comes of this name from now on is another one's.
    void begin_anew(std::string_view publisher);

    const PatternChecker& pattern() const noexcept { return pattern_; }
    // Nothing: no message had a time.
    std::optional<LatencyReport> latency() const;

  private:
    // A publisher's numbers do not go on where another's ended, so the pattern has to know them
    // apart: by a number, as the names are the same ones most of the time.
    std::uint32_t number_of(std::string_view publisher);

    std::size_t header_bytes_;
    std::map<std::string, std::uint32_t, std::less<>> publishers_;
    std::string last_publisher_;
    std::uint32_t last_number_ = 0;
    std::uint32_t numbers_given_ = 0;
    PatternChecker pattern_;
    netio::LatencyHistogram latency_;
    std::uint64_t ahead_ = 0; // of our clock
};

} // namespace apps::subscribe
