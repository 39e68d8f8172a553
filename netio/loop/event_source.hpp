// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interfaces below an event loop: sources, which have work from time to time, and the poller,
// which provides the time and waits. For transports and for the simulator; programs do not need
// them.

#include "netio/base/export.hpp"
#include "netio/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace netio::inline v0_3 {

// An object with a descriptor that has work from time to time.
class NETIO_EXPORT EventSource {
  public:
    EventSource() = default;
    virtual ~EventSource() = default;
    EventSource(const EventSource&) = delete;
    EventSource& operator=(const EventSource&) = delete;

    // The descriptor to wait for, or -1 if the poller knows by itself (the simulator).
    virtual int wait_fd() const noexcept = 0;
    // What to wait for, as epoll events; read once, when the source is added.
    virtual std::uint32_t wait_events() const noexcept;
    // Does at most about `budget` units of work; returns the number done. A unit that runs a user's
    // handler may take long: check EventLoop::time_is_up() after it.
    virtual std::size_t drain(std::size_t budget) = 0;
    // Arms the descriptor. Returns false if there is work now, so the loop must not sleep.
    virtual bool may_sleep() = 0;
    // Whether the source is drained in every turn of a spinning loop, without waiting for its
    // descriptor, because this is cheap and finds work earlier. If false, it is drained only after
    // the descriptor fired.
    virtual bool worth_polling() const noexcept { return false; }

  private:
    friend class SourceSet;
    static constexpr std::size_t not_added = SIZE_MAX;
    std::size_t index_ = not_added; // index in SourceSet
    bool active_ = false;
};

// An object that must outlive the handler that released it. Destroyed at the end of the turn.
class NETIO_EXPORT Retired {
  public:
    virtual ~Retired() = default;
};

// Provides the time and waits. EpollPoller uses the system's clock; the simulator's poller advances
// virtual time.
class NETIO_EXPORT Poller {
  public:
    virtual ~Poller() = default;
    virtual TimePoint now() = 0;
    // A descriptor may be added several times, each time with its own source.
    virtual void add(EventSource& source) = 0;
    virtual void remove(EventSource& source) = 0;
    // Waits until a source fires, wake() is called or the deadline has passed; with a deadline in
    // the past it only checks. Appends the sources that fired.
    virtual void wait(TimePoint deadline, std::vector<EventSource*>& fired) = 0;
    // Ends the current wait, or the next one at once. Any thread.
    virtual void wake() noexcept = 0;
    // A descriptor that is readable when wait() would return, also at the deadline.
    virtual int pollable_fd(TimePoint deadline) = 0;
};

NETIO_EXPORT std::unique_ptr<Poller> make_epoll_poller();

} // namespace netio::inline v0_3
