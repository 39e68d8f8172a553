// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an event loop stands on: sources, which have work from time to time, and the poller, which
// knows the time and waits. For transports and for the simulator; users meet neither.

#include "netio/base/export.hpp"
#include "netio/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace netio::inline v0_3 {

// Something with a descriptor that has work from time to time.
class NETIO_EXPORT EventSource {
  public:
    EventSource() = default;
    virtual ~EventSource() = default;
    EventSource(const EventSource&) = delete;
    EventSource& operator=(const EventSource&) = delete;

    // The descriptor to wait for, or -1 where the poller knows otherwise (the simulator).
    virtual int wait_fd() const noexcept = 0;
    // What to wait for, as epoll events; read once, when the source is added.
    virtual std::uint32_t wait_events() const noexcept;
    // Does at most about `budget` pieces of work; returns how many were done. A piece that runs a
    // user's handler may take long: ask EventLoop::time_is_up() after it.
    virtual std::size_t drain(std::size_t budget) = 0;
    // Arms the descriptor. Returns false if there is work now: do not sleep.
    virtual bool may_sleep() = 0;
    // True: draining without waiting for the descriptor is cheap and finds work earlier, so a
    // spinning loop does it every turn. False: drained only after the descriptor fired.
    virtual bool worth_polling() const noexcept { return false; }

  private:
    friend class SourceSet;
    static constexpr std::size_t not_added = SIZE_MAX;
    std::size_t index_ = not_added; // place in the set
    bool active_ = false;
};

// An object that must outlive the handler that gave it up. Freed at the end of the turn.
class NETIO_EXPORT Retired {
  public:
    virtual ~Retired() = default;
};

// How the loop learns the time and how it waits. EpollPoller does it for real; the simulator's
// moves virtual time instead.
class NETIO_EXPORT Poller {
  public:
    virtual ~Poller() = default;
    virtual TimePoint now() = 0;
    // A descriptor may be added several times, each time with a source of its own.
    virtual void add(EventSource& source) = 0;
    virtual void remove(EventSource& source) = 0;
    // Waits until a source fires, wake() was called or the deadline has passed; a deadline in the
    // past only looks. Appends the sources that fired.
    virtual void wait(TimePoint deadline, std::vector<EventSource*>& fired) = 0;
    // Ends a wait now or the next one at once. Any thread.
    virtual void wake() noexcept = 0;
    // A descriptor that is readable when wait() would return; the deadline is armed on it.
    virtual int pollable_fd(TimePoint deadline) = 0;
};

NETIO_EXPORT std::unique_ptr<Poller> make_epoll_poller();

} // namespace netio::inline v0_3
