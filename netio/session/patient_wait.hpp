// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long an end waits for others to take what is left for them: since they last took something,
// and in all. Only the time counts in which our loop looked.

#include "netio/session/patient_timer.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace netio::inline v0_2 {

class PatientWait {
  public:
    struct Times {
        std::chrono::milliseconds timeout; // since the last progress
        std::chrono::milliseconds in_all;
    };
    // `overdue`: one of them is over. It may destroy this.
    PatientWait(EventLoop& loop, const Times& times, std::function<void()> overdue)
        : loop_{loop}, times_{times}, timer_{loop, std::move(overdue)} {}

    void begin() {
        limit_ = attended(loop_) + times_.in_all;
        on_progress();
    }
    // They have taken something. Of no matter while nobody waits.
    void on_progress() {
        if (!limit_) return;
        timer_.start_at(std::min(loop_.now() + times_.timeout, *limit_ + loop_.stalled()));
    }
    void end() noexcept {
        timer_.cancel();
        limit_.reset();
    }

    // While it waits: until when in all, on the clock of attended().
    const std::optional<TimePoint>& limit() const noexcept { return limit_; }
    bool is_limit_over() const noexcept { return attended(loop_) >= *limit_; }
    const Times& times() const noexcept { return times_; }
    // What they did that are overdue.
    std::string verdict() const {
        return is_limit_over()
                   ? "not taken everything within " + std::to_string(times_.in_all.count()) + " ms"
                   : "taken nothing more for " + std::to_string(times_.timeout.count()) + " ms";
    }

  private:
    EventLoop& loop_;
    const Times times_;
    std::optional<TimePoint> limit_;
    PatientTimer timer_;
};

} // namespace netio::inline v0_2
