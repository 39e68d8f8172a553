// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every part of the oracle shares: the time, what has gone wrong, a trace whose hash shows
// whether two runs are the same, and what the world did to its processes, so that an end that
// somebody is told can be held against what really happened. It knows nothing of the product.

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

// What the world does to a process, or to the way between two.
enum class Trouble : std::uint8_t {
    stopped,  // its loop does not turn
    busy,     // its user takes long
    blocked,  // nothing passes
    broken,   // a connection of its was broken, a call of its failed
    gone,     // killed, or its socket destroyed or ended at once
    vanished, // and nobody was told
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
    // Everything that somebody did or was told. `show`: also as text, line by line.
    void note(std::uint32_t process, const char* what, std::uint64_t one = 0,
              std::uint64_t two = 0);
    std::uint64_t trace_hash() const noexcept { return hash_; }
    std::uint64_t note_count() const noexcept { return notes_; }
    std::function<void(const std::string&)> show;

    // --- troubles ---
    void begin(Trouble trouble, std::uint32_t process, std::uint32_t other = nobody);
    void end(Trouble trouble, std::uint32_t process, std::uint32_t other = nobody);
    void happens(Trouble trouble, std::uint32_t process);
    // From now on for so long.
    void lasts(Trouble trouble, std::uint32_t process, Duration time);
    // How long, of the time since then, this went on; `other`: of the way to it, either direction.
    // Of each time only what is beyond `hidden`.
    Duration lasted(Trouble trouble, std::uint32_t process, TimePoint since,
                    Duration hidden = {}) const;
    Duration blocked_between(std::uint32_t one, std::uint32_t other, TimePoint since) const;
    bool happened(Trouble trouble, std::uint32_t process, TimePoint since) const;
    // Since when what this process hears at that time may have waited for it: it did not look.
    TimePoint looked_before(std::uint32_t process, TimePoint when) const;
    // Nothing held this process up since then.
    bool was_free(std::uint32_t process, TimePoint since) const;
    // Nor anybody else, nor shortly before it: it may be on its way.
    bool was_calm(TimePoint since) const;

    static constexpr std::uint32_t nobody = UINT32_MAX;

  private:
    struct Period {
        Trouble trouble;
        std::uint32_t process;
        std::uint32_t other;
        TimePoint from;
        TimePoint to = TimePoint::max(); // it lasts
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
