// SPDX-License-Identifier: Apache-2.0
#pragma once

// The three kinds of work that a turn of a loop does: posted tasks (TaskQueue), sources with events
// (SourceSet) and timers that are due (TimerQueue). Each bounds what it does in one turn.

#include "netio/base/time.hpp"
#include "netio/loop/event_source.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace netio::inline v0_3 {

// Tasks on their way from any thread to the loop's. The queue has a limit, so that a thread that
// posts faster than the loop runs gets an answer instead of filling the memory.
class TaskQueue {
  public:
    enum class Put : unsigned char {
        first, // the queue was empty: the loop must be woken
        ok,
        full,
    };

    explicit TaskQueue(std::size_t limit) : limit_{limit} {}

    // Any thread.
    Put put(std::function<void()> task);

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
    std::atomic<std::size_t> to_run_{0}; // of those that run() has taken
    // The loop's own.
    std::vector<std::function<void()>> running_;
    std::size_t next_ = 0;
};

// The sources of a loop. An active source is drained; an armed source waits for its descriptor. A
// drain may be cut short when its time is up; the next drain begins where it ended, so that a
// source that always has work does not starve the others.
class SourceSet {
  public:
    struct Drained {
        bool worked = false;
        bool completely = true; // nothing is left of what was there
    };

    void add(EventSource& source);
    // Legal during a drain, as add() is.
    void remove(EventSource& source) noexcept;
    bool contains(const EventSource& source) const noexcept;
    bool empty() const noexcept { return count_ == 0; }

    static void activate(EventSource& source) noexcept { source.active_ = true; }
    // Activates the sources that are worth polling.
    void activate_polled() noexcept;

    // At most `limit` pieces of work of each source, and none after `time_is_up` has returned true.
    Drained drain(std::size_t limit, const std::function<bool()>& time_is_up);
    // False: a source has work.
    bool arm();

  private:
    std::vector<EventSource*> sources_; // nullptr: removed while draining
    std::size_t count_ = 0;
    std::size_t first_ = 0; // where the next drain begins
    bool draining_ = false;
    bool holes_ = false;
};

// Timers by the time they are due. Timers that are due are collected first and then fired one by
// one, so that a timer that its handler restarts in the past neither blocks the loop nor delays the
// others. TimePoint::max() is never due.
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
        std::size_t position = 0; // there
    };

    // A node may be started between these two. The second returns whether its handler is running,
    // so that it must be retired instead of being destroyed.
    void enter(Node&) noexcept { ++node_count_; }
    bool leave(Node& node) noexcept;
    std::size_t node_count() const noexcept { return node_count_; }

    // Periodically if a period is given: again a period after each time it was due.
    void start(Node& node, TimePoint due, Duration period = Duration{0});
    void stop(Node& node) noexcept;
    // When the first one is due; min(): some are collected already.
    TimePoint next_due() const noexcept;

    // Collects the timers that are due now, unless some of the last collection are left.
    void collect(TimePoint now);
    // Calls the handler of the next collected timer; false: none is left. A periodic timer that is
    // late fires again until it has caught up, in the next turn at the earliest.
    bool fire_next();

    // A timer that is more periods late skips the oldest of them.
    static constexpr unsigned catch_up_limit = 100;

  private:
    Node* take() noexcept;
    void enter_waiting(Node& node);
    void remove_waiting(std::size_t position) noexcept;
    void place(std::size_t position, Node* node) noexcept;
    void sift(std::size_t position) noexcept;

    std::vector<Node*> waiting_;   // binary heap by due time, then by order of starting
    std::vector<Node*> collected_; // nullptr: stopped meanwhile
    std::size_t taken_ = 0;        // of the collected ones
    TimePoint now_{};              // of the last collect()
    std::uint64_t order_ = 0;
    const Node* firing_ = nullptr;
    std::size_t node_count_ = 0;
};

} // namespace netio::inline v0_3
