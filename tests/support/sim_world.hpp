// SPDX-License-Identifier: Apache-2.0
#pragma once

// A process in virtual time: how its event loop gets the time and waits. Nothing sleeps.
//
// A single process advances time itself when its loop is idle. If its loop would wait without any
// scheduled event to wake it, it has deadlocked: wait() throws std::logic_error, which fails the
// test at once instead of hanging it. One of several processes never waits: SimScheduler is the
// outer loop of each of them, asks each loop until when it sleeps, and advances the time of all.

#include "netio/loop/event_loop.hpp"
#include "tests/support/sim_clock.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace netio::test {

class SimProcess final : public Poller {
  public:
    // A single process with a clock of its own.
    SimProcess() : own_clock_{std::make_unique<SimClock>()}, clock_{*own_clock_} {}
    // One of several. `seed` sets the order in which it polls sources that are ready together.
    SimProcess(SimClock& clock, std::uint64_t seed) : clock_{clock}, random_{seed} {}

    TimePoint now() override { return clock_.now() + ahead_ + spent_; }
    void add(EventSource&) override {}
    void remove(EventSource& source) override { std::erase(ready_, &source); }
    void wait(TimePoint deadline, std::vector<EventSource*>& fired) override;
    void wake() noexcept override { woken_.store(true); }
    int pollable_fd(TimePoint deadline) override {
        sleeps_until_ = deadline;
        asleep_ = true;
        return -1;
    }
    // For a single process: acts as an outer loop that waits until pollable_fd() is readable.
    void sleep_outside() { wait_alone(sleeps_until_); }

    SimClock& clock() noexcept { return clock_; }
    void at(TimePoint when, std::function<void()> event) { clock_.at(when, std::move(event)); }
    // The source has events to drain.
    void ready(EventSource& source);

    // --- faults ---
    // The clock jumps, as on a machine that was suspended.
    void leap(Duration by) noexcept { ahead_ += by; }
    // The current work takes this long: the clock advances while the loop does not turn.
    void spend(Duration time);
    // Time spent in this turn so far; only for one of several processes.
    Duration spent() const noexcept { return spent_; }
    // The handling of one event: the loop reads the time only after this object is destroyed.
    class Piece {
      public:
        explicit Piece(SimProcess& process) : process_{process}, begin_{process.spent_} {}
        ~Piece() {
            process_.longest_piece_ = std::max(process_.longest_piece_, process_.spent_ - begin_);
        }
        Piece(const Piece&) = delete;
        Piece& operator=(const Piece&) = delete;

      private:
        SimProcess& process_;
        Duration begin_;
    };
    Duration longest_piece() const noexcept { return longest_piece_; }

    // --- for the scheduler ---
    // When the loop needs a turn, in global time. A time that is not in the future means at once.
    TimePoint due() const noexcept;
    // The time at which its last turn ends.
    TimePoint busy_until() const noexcept { return busy_until_; }
    // Call before and after a turn. Time advances by the duration of the turn only afterwards.
    void begin_turn() noexcept { asleep_ = false; }
    void end_turn() noexcept;

  private:
    void wait_alone(TimePoint deadline);

    std::unique_ptr<SimClock> own_clock_;
    SimClock& clock_;
    std::mt19937_64 random_;
    Duration ahead_{};
    Duration spent_{}; // in this turn
    Duration longest_piece_{};
    TimePoint busy_until_; // end of the last turn
    bool asleep_ = false;
    TimePoint sleeps_until_; // in its own time
    std::vector<EventSource*> ready_;
    std::atomic<bool> woken_{false};
};

// A world of one process.
using SimWorld = SimProcess;

} // namespace netio::test
