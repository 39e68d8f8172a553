// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two measures of a loop. They take times and return times: no clock, no I/O.
//
//   LoopStats    how many turns did work and how long they took, and how long the loop was idle
//   PollTracker  when the loop polled its descriptors, and how long it was not able to: because a
//                handler ran long, or because the process was stopped

#include "netio/base/time.hpp"
#include "netio/loop/event_source.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

class LoopStats {
  public:
    // Begins a turn. After a turn that did no work, the loop was idle until now, unless leave() was
    // called.
    void begin(TimePoint now) noexcept {
        if (idle_) rested_ += now - begin_;
        begin_ = now;
        idle_ = true;
    }
    // Call it when the program does other work until the next turn.
    void leave() noexcept { idle_ = false; }
    // Call it when the program waits until the next turn.
    void rest(TimePoint now) noexcept {
        begin_ = now;
        idle_ = true;
    }
    // Adds the duration of a turn that did work.
    void add(Duration taken) noexcept {
        idle_ = false;
        ++count_;
        longest_ = std::max(longest_, taken);
        longest_lately_ = std::max(longest_lately_, taken);
    }

    std::uint64_t count() const noexcept { return count_; }
    // Includes the time of the handlers.
    Duration longest() const noexcept { return longest_; }
    // Since the previous call.
    Duration take_longest_lately() noexcept {
        return std::exchange(longest_lately_, Duration::zero());
    }

    // The total idle time, waiting or spinning.
    Duration rested() const noexcept { return rested_; }

  private:
    TimePoint begin_{};
    bool idle_ = false;
    Duration rested_{0};
    std::uint64_t count_ = 0;
    Duration longest_{0};
    Duration longest_lately_{0};
};

class PollTracker {
  public:
    // A shorter gap between two polls is normal.
    static constexpr Duration tolerance = std::chrono::milliseconds{100};
    static constexpr unsigned turns_between_polls = 16;

    explicit PollTracker(TimePoint now) noexcept : last_poll_{now}, caught_up_{now} {}

    // Whether a busy loop must poll in this turn: once in turns_between_polls, because each poll is
    // a system call, and once in `interval`. Call it once per turn.
    bool poll_is_due(TimePoint now, Duration interval) noexcept {
        return ++turns_since_poll_ >= turns_between_polls || now - last_poll_ >= interval;
    }

    // Notes a poll from `begin` to `end` that was to wait until `deadline` at most.
    void polled(TimePoint begin, TimePoint end, TimePoint deadline) noexcept {
        miss(begin - std::clamp(rested_until_, last_poll_, begin));
        rested_until_ = TimePoint::min();
        // A process that is stopped while it waits returns late.
        if (deadline < end) miss(end - std::max(begin, deadline));
        last_poll_ = end;
        turns_since_poll_ = 0;
        if (deadline > begin) ++sleep_count_;
    }
    // Call it when no work is left and an outer loop waits for this loop's descriptor.
    void rest() noexcept { resting_ = true; }
    // Call it when the loop continues after rest(). The time without polls counts as stalled only
    // from `due` on.
    void resume(TimePoint due) noexcept {
        if (std::exchange(resting_, false)) rested_until_ = due;
    }
    // Call it when everything that the last poll found has been delivered.
    void caught_up() noexcept { caught_up_ = last_poll_; }

    TimePoint last_poll() const noexcept { return last_poll_; }
    // The last poll after which everything was delivered.
    TimePoint last_caught_up() const noexcept { return caught_up_; }
    // How long in total the loop has not polled, beyond the tolerance of each gap.
    Duration stalled() const noexcept { return stalled_; }
    // Polls that were allowed to wait.
    std::uint64_t sleep_count() const noexcept { return sleep_count_; }

  private:
    void miss(Duration gap) noexcept { stalled_ += std::max(gap - tolerance, Duration{0}); }

    TimePoint last_poll_;
    TimePoint caught_up_;
    TimePoint rested_until_ = TimePoint::min();
    Duration stalled_{0};
    unsigned turns_since_poll_ = 0;
    bool resting_ = false;
    std::uint64_t sleep_count_ = 0;
};

} // namespace netio::inline v0_3

// The three kinds of work in a turn of a loop: posted tasks (TaskQueue), sources with events
// (SourceSet) and due timers (TimerQueue). Each limits what it does in one turn.

namespace netio::inline v0_3 {

// Tasks posted to the loop's thread by any thread. The queue has a limit: a thread that posts
// faster than the loop runs gets an error, and memory use stays limited.
class TaskQueue {
  public:
    enum class Put : unsigned char {
        first, // the queue was empty: the loop must be woken
        ok,
        full,
    };

    explicit TaskQueue(std::size_t limit) : limit_{limit} {}

    // Any thread. `always`: also beyond the limit.
    Put put(std::function<void()> task, bool always = false);

    // Destroys the tasks that have not run, because the loop does not run any more.
    void discard();

    // Whether run() would find a task. The loop's thread only.
    bool waiting() const noexcept { return posted_.load() || next_ < running_.size(); }
    // Runs the tasks that were put before the call, in order, until `time_is_up` returns true after
    // a task; the rest waits for the next call. Returns whether it ran any.
    bool run(const std::function<bool()>& time_is_up);

  private:
    const std::size_t limit_;
    std::atomic<bool> posted_{false};
    std::mutex mutex_;
    std::vector<std::function<void()>> tasks_;
    std::atomic<std::size_t> to_run_{0}; // of those that run() has taken out of the queue
    // Used by the loop's thread only.
    std::vector<std::function<void()>> running_;
    std::size_t next_ = 0;
};

// The sources of a loop. An active source is drained; an armed source waits for its descriptor. A
// drain ends early when its time is up; the next drain continues where it ended, so that a source
// that always has work does not starve the others.
class SourceSet {
  public:
    struct Drained {
        bool worked = false;
        bool completely = true; // no source has work left
    };

    void add(EventSource& source);
    // Allowed during a drain, as add() is.
    void remove(EventSource& source) noexcept;
    bool contains(const EventSource& source) const noexcept;
    bool empty() const noexcept { return count_ == 0; }

    static void activate(EventSource& source) noexcept { source.active_ = true; }
    // Activates the sources that are worth polling.
    void activate_polled() noexcept;

    // Does at most `limit` units of work of each source, and none after `time_is_up` has returned
    // true.
    Drained drain(std::size_t limit, const std::function<bool()>& time_is_up);
    // Arms the active sources. Returns false if a source has work.
    bool arm();

  private:
    std::vector<EventSource*> sources_; // nullptr: removed while draining
    std::size_t count_ = 0;
    std::size_t first_ = 0; // where the next drain begins
    bool draining_ = false;
    bool holes_ = false;
};

// Timers, ordered by due time. Due timers are first collected and then fired one by one, so that a
// timer which its handler restarts in the past neither blocks the loop nor delays the others.
// TimePoint::max() is never due.
class TimerQueue {
  public:
    struct Node final : Retired {
        std::function<void()> handler;
        bool armed() const noexcept { return place != Place::none; }

      private:
        friend class TimerQueue;
        void advance(TimePoint now) noexcept;
        enum class Place : std::uint8_t { none, waiting, collected };
        bool before(const Node& other) const noexcept {
            return due != other.due ? due < other.due : order < other.order;
        }
        TimePoint due{};
        Duration period{0};      // 0: once
        std::uint64_t order = 0; // equal times fire in the order of starting
        Place place = Place::none;
        std::size_t position = 0; // index in `waiting_`
    };

    // The handler of a node may run between these calls. leave() returns whether it is running now:
    // the node must then be retired instead of destroyed.
    void enter(Node&) noexcept { ++node_count_; }
    bool leave(Node& node) noexcept;
    std::size_t node_count() const noexcept { return node_count_; }

    // With a period, the timer fires again one period after each due time.
    void start(Node& node, TimePoint due, Duration period = Duration{0});
    void stop(Node& node) noexcept;
    // The earliest due time; min() if collected timers are left.
    TimePoint next_due() const noexcept;

    // Collects the timers that are due now, unless timers of the previous collection are left.
    void collect(TimePoint now);
    // Calls the handler of the next collected timer. Returns false if none is left. A late periodic
    // timer fires again until it has caught up, in the next turn at the earliest.
    bool fire_next();

    // A timer that is more periods late skips the oldest ones.
    static constexpr unsigned catch_up_limit = 100;

  private:
    Node* take() noexcept;
    void enter_waiting(Node& node);
    void remove_waiting(std::size_t position) noexcept;
    void place(std::size_t position, Node* node) noexcept;
    void sift(std::size_t position) noexcept;

    std::vector<Node*> waiting_;   // binary heap by due time, then by order of starting
    std::vector<Node*> collected_; // nullptr: stopped after collection
    std::size_t taken_ = 0;        // index of the next one in `collected_`
    TimePoint now_{};              // of the last collect()
    std::uint64_t order_ = 0;
    const Node* firing_ = nullptr;
    std::size_t node_count_ = 0;
};

} // namespace netio::inline v0_3
