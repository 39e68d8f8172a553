// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/fid_map.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace apps::subscribe {

// Which messages a subscriber works on that wants a part of them only: the first of each fid, and
// from then on every N-th. No I/O.

class Prescale {
  public:
    explicit Prescale(std::uint64_t every) noexcept : every_{every} {}

    bool takes(netio::pubsub::Fid fid) {
        if (every_ == 1) return true;
        const bool taken = seen_[fid]++ % every_ == 0;
        passed_over_ += taken ? 0 : 1;
        return taken;
    }
    std::uint64_t passed_over() const noexcept { return passed_over_; }

  private:
    std::uint64_t every_;
    netio::pubsub::FidMap<std::uint64_t> seen_; // as many as the subscriber keeps accounts of
    std::uint64_t passed_over_ = 0;
};

// A subscriber that is slow on purpose: how long it holds each message up. Values in, values out.

struct Slowness {
    netio::Duration think{0}; // over each message
    // Reads nothing for so long, once in so long; zero: never.
    netio::Duration pause{0};
    netio::Duration every{0};
};

// "500ms@10s" into pause and every. False: it is none, or the pause is not the shorter.
bool parse_pause(std::string_view text, Slowness& slowness);
inline constexpr std::string_view pause_spelling =
    "TIME@TIME, how long and once in how long: 500ms@10s; the first is the shorter";

class SlowReader {
  public:
    SlowReader(const Slowness& slowness, netio::TimePoint start);

    bool is_slow() const noexcept {
        return slowness_.think.count() > 0 || slowness_.pause.count() > 0;
    }
    // How long the message that is there at `now` is to be held.
    netio::Duration hold(netio::TimePoint now);

  private:
    Slowness slowness_;
    netio::TimePoint next_pause_;
};

// What `--verify` finds: in the messages themselves, and how long those took that say when they
// were published. No I/O, no clock.

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
