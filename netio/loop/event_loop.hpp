// SPDX-License-Identifier: Apache-2.0
#pragma once

// One thread, one loop: every handler of this library runs inside EventLoop::run (or run_once,
// dispatch), one after another, so users need no locks. The loop knows four things only: sources,
// timers, posted tasks and retired objects. A turn takes them in that fixed order, each bounded:
//
//     posted tasks -> due timers -> drain the active sources -> free the retired -> sleep or spin
//
// Sleeping is allowed only after every active source has said may_sleep(), because a fabric queue
// must be armed before its descriptor is waited for (fi_poll(3), fi_trywait); this is what makes a
// lost wake-up impossible. A source that was armed stays armed and costs nothing until its
// descriptor fires or somebody activates it.
//
// Threads: post() and stop() may be called from any thread; everything else only from the thread
// that runs the loop (checked). Handlers must not throw and must not block.
//
//     netio::EventLoop loop{{.mode = netio::LoopMode::adaptive}};
//     netio::Timer tick{loop, [&] { loop.stop(); }};
//     tick.start(std::chrono::seconds{1});
//     loop.run();

#include "netio/base/time.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace netio::inline v0_2 {

// Something with a descriptor that has work from time to time.
class EventSource {
  public:
    EventSource() = default;
    virtual ~EventSource() = default;
    EventSource(const EventSource&) = delete;
    EventSource& operator=(const EventSource&) = delete;

    // The descriptor to wait for, or -1 where the poller knows otherwise (the simulator).
    virtual int wait_fd() const noexcept = 0;
    // What to wait for, as epoll events; read once, when the source is added.
    virtual std::uint32_t wait_events() const noexcept;
    // Does at most about `budget` pieces of work; returns how many were done.
    virtual std::size_t drain(std::size_t budget) = 0;
    // Arms the descriptor. False: there is work now, do not sleep.
    virtual bool may_sleep() = 0;
    // True: draining without waiting for the descriptor is cheap and finds work earlier, so a
    // spinning loop does it every turn. False: drained only after the descriptor fired.
    virtual bool worth_polling() const noexcept { return false; }

  private:
    friend class EventLoop;
    static constexpr std::size_t not_added = SIZE_MAX;
    std::size_t index_ = not_added; // place in EventLoop::sources_
    bool active_ = false;
};

// How the loop learns the time and how it waits. EpollPoller does it for real; the simulator's
// moves virtual time instead.
class Poller {
  public:
    virtual ~Poller() = default;
    virtual TimePoint now() = 0;
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

std::unique_ptr<Poller> make_epoll_poller();

// An object that must outlive the handler that gave it up. Freed at the end of the turn.
class Retired {
  public:
    virtual ~Retired() = default;
};

enum class LoopMode : std::uint8_t {
    blocking, // sleep whenever there is nothing to do
    busy,     // never sleep; one core is the loop's
    adaptive, // spin for a while after the last work, then sleep
};

class Timer;

class EventLoop {
  public:
    struct Options {
        LoopMode mode = LoopMode::blocking;
        std::chrono::microseconds spin{50}; // adaptive: how long to spin after the last work
        std::size_t drain_limit = 256;      // pieces of work per source and turn
    };

    EventLoop();
    explicit EventLoop(Options options);
    // With a poller of one's own, which must outlive the loop.
    EventLoop(Options options, Poller& poller);
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    // Runs until stop(). The calling thread becomes the loop's thread while it runs.
    void run();
    // One turn, and a wait until `wait_until` at most if the turn found nothing to do; by default
    // it does not wait. Returns whether the turn did any work.
    bool run_once(TimePoint wait_until = TimePoint::min());
    // Ends run() after the current turn; a call before run() makes it return at once. Any thread,
    // also from a signal handler's thread; not from the signal handler itself.
    void stop() noexcept;
    // Runs the task on the loop's thread in one of the next turns, in order of posting. Any thread.
    void post(std::function<void()> task);

    // The time as read at the start of this turn; it stands still while handlers run.
    TimePoint now() const noexcept { return now_; }

    // To live inside another loop: wait until pollable_fd() is readable, then call dispatch(),
    // which runs turns until nothing is left and arms the descriptor again. Call dispatch() once
    // at the beginning and after every call into the library from outside a handler.
    int pollable_fd();
    void dispatch();

    // For transports. A source must be removed before it is destroyed; both are legal in a drain.
    void add(EventSource& source);
    void remove(EventSource& source);
    // The source has, or may have, work that its descriptor does not tell: drain it this turn or
    // the next, and arm it before sleeping.
    void activate(EventSource& source);
    void retire(std::unique_ptr<Retired> object);

    // How often the loop has waited; a measure of idleness that needs no clock.
    std::uint64_t wait_count() const noexcept { return wait_count_; }
    LoopMode mode() const noexcept { return options_.mode; }

  private:
    friend class Timer;
    struct TimerNode;

    void adopt_thread() noexcept;
    void check_thread() const noexcept;
    bool turn();
    bool run_posted_tasks();
    bool fire_due_timers();
    bool drain_sources();
    bool arm_sources();
    void wait(TimePoint deadline);
    TimePoint next_deadline() const noexcept;
    void start_timer(TimerNode& node, TimePoint due);
    void stop_timer(TimerNode& node) noexcept;
    void place_timer(std::size_t position, TimerNode* node) noexcept;
    void sift_timer(std::size_t position) noexcept;

    Options options_;
    std::unique_ptr<Poller> own_poller_;
    Poller& poller_;
    TimePoint now_;
    TimePoint last_work_;
    std::vector<EventSource*> sources_; // nullptr: removed in a drain
    bool draining_ = false;
    bool holes_ = false;
    std::vector<EventSource*> fired_;
    std::vector<TimerNode*> timers_; // binary heap by due time, then by order of starting
    std::uint64_t timer_order_ = 0;
    TimerNode* firing_ = nullptr;
    std::vector<std::unique_ptr<Retired>> retired_;
    std::uint64_t wait_count_ = 0;
    unsigned turns_since_look_ = 0;
    std::atomic<bool> stop_requested_{false};
    std::atomic<bool> tasks_posted_{false};
    std::mutex tasks_mutex_;
    std::vector<std::function<void()>> tasks_;
    std::atomic<std::thread::id> thread_{};
};

// Calls its handler once, some time after start(); starting it again moves it. The handler may
// destroy the timer. Destroying or cancelling it means that the handler will not run.
class Timer {
  public:
    Timer(EventLoop& loop, std::function<void()> handler);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    void start(Duration delay); // counted from the clock: this turn may have begun long ago
    void start_at(TimePoint due);
    void cancel() noexcept;
    bool armed() const noexcept;

  private:
    EventLoop& loop_;
    std::unique_ptr<EventLoop::TimerNode> node_;
};

// Watches a descriptor that is not ours (level-triggered). The handler may destroy the watch.
// The descriptor must stay open as long as the watch lives.
class DescriptorWatch {
  public:
    enum class Interest : std::uint8_t { readable, writable };
    DescriptorWatch(EventLoop& loop, int fd, Interest interest, std::function<void()> handler);
    ~DescriptorWatch();
    DescriptorWatch(const DescriptorWatch&) = delete;
    DescriptorWatch& operator=(const DescriptorWatch&) = delete;

  private:
    struct Source;
    EventLoop& loop_;
    std::unique_ptr<Source> source_;
};

// Turns operating-system signals into events of the loop (signalfd(2)). Construct it before other
// threads are started: the signals are blocked in the calling thread and in those it starts later,
// and are unblocked again by the destructor. Throws FabricError.
class SignalWatch {
  public:
    SignalWatch(EventLoop& loop, const std::vector<int>& signals, std::function<void(int)> handler);
    ~SignalWatch();
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;

  private:
    struct Descriptor;
    std::unique_ptr<Descriptor> descriptor_;
    std::unique_ptr<DescriptorWatch> watch_;
};

} // namespace netio::inline v0_2
