// SPDX-License-Identifier: Apache-2.0
#pragma once

// Timers by the time they are due. Those that are due are collected first and then handed out one
// by one, so that a timer that its handler restarts in the past neither holds the loop nor keeps
// the others waiting. TimePoint::max() is never due.

#include "netio/base/time.hpp"
#include "netio/loop/event_source.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace netio::inline v0_2 {

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

    // What is due now is collected, unless some of the last time is left.
    void collect(TimePoint now);
    // Calls the handler of the next one of those; false: none is left. A periodic timer that is
    // late fires again until it has caught up, which is in the next turn at the earliest.
    bool fire_next();

    // A timer that is more periods behind skips the oldest of them.
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

} // namespace netio::inline v0_2
