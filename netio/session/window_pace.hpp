// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many receives a side of a session should have posted: more where the peer waits for credits
// that are a long way off, fewer again when they are not used. It knows what was granted, what has
// arrived, and for how long this side has had nothing to do; no clock, no memory. A plain value.
//
//     on_granted(16, rested)   the peer may have sent 16 messages since the session began
//     on_arrived(...)          a message has come; whether it had waited for a credit
//     wanted()                 twice as many, once two waits in turn took more than a millisecond
//
// A wait counts from when the credit was granted, and only what this side rested meanwhile: while
// it has something to do, it is not the way that the peer waits for. What the peer says is no more
// than a hint: it gets what is here the limit, and no more.

#include "netio/base/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace netio::inline v0_2 {

class WindowPace {
  public:
    // Round trips up to this are short: there a window as it was made suffices.
    static constexpr Duration short_trip = std::chrono::milliseconds{1};
    // One alone may be the machine's doing.
    static constexpr unsigned trips_to_grow = 2;
    // Unused for so long, a window shrinks.
    static constexpr Duration period = std::chrono::seconds{10};

    // As it is made, and at most.
    WindowPace(std::uint32_t least, std::uint32_t most) noexcept
        : least_{least}, most_{std::max(least, most)}, count_{least}, granted_{least} {}

    // So many messages the peer may have sent in all, from now on; at first as many as there are
    // receives. `rested`: how long this side has had nothing to do so far.
    void on_granted(std::uint64_t granted, Duration rested) noexcept {
        if (granted == granted_) return;
        if (!asked_) asked_ = Question{.before = granted_, .rested = rested};
        granted_ = granted;
    }

    // `waited`: it had no credit until one came. `rested`, `now`: of this side's loop.
    void on_arrived(bool waited, Duration rested, TimePoint now) noexcept {
        const std::uint64_t number = arrived_++;
        if (waited) last_wait_ = now;
        if (asked_ && number + 1 >= asked_->before) answer(number, waited, rested);
        look_back(now);
    }

    // Receives that there should be.
    std::uint32_t wanted() const noexcept { return wanted_.value_or(count_); }
    // There are so many now, whatever was wanted.
    void on_changed(std::uint32_t count) noexcept {
        count_ = count;
        wanted_.reset();
        asked_.reset();
        long_trips_ = 0;
    }

  private:
    // When will the first message come that this grant lets the peer send?
    struct Question {
        std::uint64_t before = 0; // granted without it
        Duration rested{};
    };

    void answer(std::uint64_t number, bool waited, Duration rested) noexcept {
        // The last credit of all is for the session's own, so a service waits with one left. Who
        // did not wait, or not for this, has sent later than it could.
        const Duration trip = rested - asked_->rested;
        const bool is_answer = waited && number <= asked_->before;
        asked_.reset();
        if (!is_answer) return;
        long_trips_ = trip > short_trip ? long_trips_ + 1 : 0;
        if (long_trips_ < trips_to_grow) return;
        trip_ = trip;
        long_trips_ = 0;
        if (count_ < most_) wanted_ = count_ > most_ / 2 ? most_ : 2 * count_;
    }

    // Nobody waited for a whole period, and a quarter of what there is would have done.
    void look_back(TimePoint now) noexcept {
        if (count_ == least_ || now - begin_ < period) {
            if (count_ == least_) begin_ = now, begin_arrived_ = arrived_;
            return;
        }
        const auto in_a_trip = static_cast<double>(arrived_ - begin_arrived_) *
                               static_cast<double>(trip_.count()) /
                               static_cast<double>((now - begin_).count());
        if (last_wait_ < begin_ && in_a_trip < static_cast<double>(count_) / 4) {
            wanted_ = std::max(least_, (count_ + 1) / 2);
        }
        begin_ = now;
        begin_arrived_ = arrived_;
    }

    std::uint32_t least_;
    std::uint32_t most_;
    std::uint32_t count_;
    std::optional<std::uint32_t> wanted_;
    std::uint64_t granted_;
    std::uint64_t arrived_ = 0;
    std::optional<Question> asked_;
    unsigned long_trips_ = 0;
    Duration trip_{};
    TimePoint last_wait_ = TimePoint::min();
    TimePoint begin_{}; // of the period
    std::uint64_t begin_arrived_ = 0;
};

} // namespace netio::inline v0_2
