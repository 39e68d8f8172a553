// SPDX-License-Identifier: Apache-2.0
#pragma once

// The common part of the oracles: the time, the violations, a trace whose hash shows whether two
// runs are the same, and the faults of each process, so that a reported end can be compared with
// what really happened. Independent of the product.

#include "netio/base/time.hpp"
#include "tests/support/sim_clock.hpp"
#include "tests/world/rules.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace netio::world {

// A fault of a process, or of the path between two.
enum class Trouble : std::uint8_t {
    stopped,  // its loop does not turn
    busy,     // its user takes a long time
    blocked,  // no traffic passes
    broken,   // one of its connections was broken, one of its calls failed
    gone,     // killed, or its socket destroyed or aborted
    vanished, // without any notification
    slow_way,
};

class Oracle {
  public:
    explicit Oracle(const test::SimClock& clock) : clock_{clock} {}

    TimePoint now() const noexcept { return clock_.now(); }
    std::int64_t now_us() const noexcept {
        return std::chrono::duration_cast<std::chrono::microseconds>(now() - start_).count();
    }
    void violate(RuleId rule, std::string what);
    const std::vector<Violation>& violations() const noexcept { return violations_; }

    // --- trace ---
    // Records every action and callback. `show`: also as text, line by line.
    void note(std::uint32_t process, const char* what, std::uint64_t one = 0,
              std::uint64_t two = 0);
    std::uint64_t trace_hash() const noexcept { return hash_; }
    std::uint64_t note_count() const noexcept { return notes_; }
    std::function<void(const std::string&)> show;

    // --- faults ---
    void begin(Trouble trouble, std::uint32_t process, std::uint32_t other = nobody);
    void end(Trouble trouble, std::uint32_t process, std::uint32_t other = nobody);
    void happens(Trouble trouble, std::uint32_t process);
    // The fault lasts for this time from now on.
    void lasts(Trouble trouble, std::uint32_t process, Duration time);
    // How long the fault lasted since then; `other`: the fault is on the path to it, in either
    // direction. Of each period only the part beyond `hidden` counts.
    Duration lasted(Trouble trouble, std::uint32_t process, TimePoint since,
                    Duration hidden = {}) const;
    Duration blocked_between(std::uint32_t one, std::uint32_t other, TimePoint since) const;
    bool happened(Trouble trouble, std::uint32_t process, TimePoint since) const;
    // The time since when an event that this process sees at `when` may have waited for it.
    TimePoint looked_before(std::uint32_t process, TimePoint when) const;
    // Nothing has delayed this process since then.
    bool was_free(std::uint32_t process, TimePoint since) const;
    // No process has been delayed since then or shortly before it; the effect may be in transit.
    bool was_calm(TimePoint since) const;

    static constexpr std::uint32_t nobody = UINT32_MAX;

  private:
    struct Period {
        Trouble trouble;
        std::uint32_t process;
        std::uint32_t other;
        TimePoint from;
        TimePoint to = TimePoint::max(); // the end of the period
    };
    Duration overlap(const Period& period, TimePoint since) const;

    const test::SimClock& clock_;
    TimePoint start_ = clock_.now();
    std::vector<Violation> violations_;
    std::vector<Period> troubles_;
    std::uint64_t hash_ = 14695981039346656037ULL;
    std::uint64_t notes_ = 0;
};

} // namespace netio::world
