// SPDX-License-Identifier: Apache-2.0
#pragma once

// A process in virtual time: how its event loop learns the time and waits. Nothing sleeps.
//
// Alone it moves time itself, when its loop has nothing to do; a loop that would then wait for
// ever, with nothing scheduled that could wake it, has dead-locked: wait() throws std::logic_error,
// which fails the test at once instead of hanging it. One of several never waits: who turns their
// loops (SimScheduler) is to each the outer loop in which it lives, asks it until when it sleeps,
// and moves the time of all.

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
    // Alone, with a clock of its own.
    SimProcess() : own_clock_{std::make_unique<SimClock>()}, clock_{*own_clock_} {}
    // One of several. `seed`: of the order in which it looks at sources that are ready together.
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
    // Alone: what another loop does that waits until pollable_fd() is readable.
    void sleep_outside() { wait_alone(sleeps_until_); }

    SimClock& clock() noexcept { return clock_; }
    void at(TimePoint when, std::function<void()> event) { clock_.at(when, std::move(event)); }
    // The source has something to drain.
    void ready(EventSource& source);

    // --- faults ---
    // Its clock jumps, as that of a machine that was paused.
    void leap(Duration by) noexcept { ahead_ += by; }
    // What it does now takes so long: its clock goes on, and its loop does not turn meanwhile.
    void spend(Duration time);
    // In this turn so far; only as one of several.
    Duration spent() const noexcept { return spent_; }
    // What is done with one event, while it lives: the loop looks at the time only behind it.
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

    // --- for who turns its loop ---
    // When the loop wants a turn, in the time of all; now or before: at once.
    TimePoint due() const noexcept;
    // Its last turn takes until then.
    TimePoint busy_until() const noexcept { return busy_until_; }
    // Before a turn, and behind it: what the turn took has passed only then.
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
    TimePoint busy_until_; // the last turn took so long
    bool asleep_ = false;
    TimePoint sleeps_until_; // in its own time
    std::vector<EventSource*> ready_;
    std::atomic<bool> woken_{false};
};

// A world of one process.
using SimWorld = SimProcess;

} // namespace netio::test
