// SPDX-License-Identifier: Apache-2.0
#pragma once

// The three kinds of work in a turn of a loop: posted tasks (TaskQueue), sources with events
// (SourceSet) and due timers (TimerQueue). Each limits what it does in one turn.

#include "netio/base/time.hpp"
#include "netio/loop/event_source.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

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

    // The loop does not run any more: destroys the tasks that have not run.
    void discard();

    // The loop's thread only. Whether run() would find a task.
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
