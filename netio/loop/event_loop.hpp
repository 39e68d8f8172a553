// SPDX-License-Identifier: Apache-2.0
#pragma once

// One thread, one loop: every handler of this library runs inside EventLoop::run (or run_once,
// dispatch), one after another, so users need no locks. The loop knows four things only: posted
// tasks, sources, timers and retired objects. A turn takes them in that fixed order, each bounded
// in number and in time:
//
//     posted tasks -> drain the active sources -> due timers -> free the retired -> sleep or spin
//
// Sources come before timers, so that a timer which judges the silence of a peer runs after
// everything that had arrived by then. Sleeping is allowed only after every active source has said
// may_sleep(), because a fabric queue must be armed before its descriptor is waited for
// (fi_poll(3), fi_trywait); this is what makes a lost wake-up impossible. A source that was armed
// stays armed and costs nothing until its descriptor fires or it is activated.
//
// Threads: post() and stop() may be called from any thread; everything else only from the thread
// that runs the loop (checked). Processes: a child that is forked must not use a loop of its
// parent, nor what belongs to it (checked); it creates loops of its own. Handlers should not block;
// while one does, nothing else happens. They must not throw: an exception that leaves a handler
// ends the program (std::terminate).
//
//     netio::EventLoop loop{{.mode = netio::LoopMode::adaptive}};
//     netio::Timer tick{loop, [&] { loop.stop(); }};
//     tick.start(std::chrono::seconds{1});
//     loop.run();

#include "netio/base/export.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/event_source.hpp"
#include "netio/loop/loop_stats.hpp"
#include "netio/loop/loop_work.hpp"
#include "netio/loop/process.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

enum class LoopMode : std::uint8_t {
    blocking, // sleep whenever there is nothing to do
    busy,     // never sleep; one core is the loop's
    adaptive, // spin for a while after the last work, then sleep
};

class Observer;

class NETIO_EXPORT EventLoop {
  public:
    struct Options {
        LoopMode mode = LoopMode::blocking;
        std::chrono::microseconds spin{50}; // adaptive: how long to spin after the last work
        std::size_t drain_limit = 256;      // pieces of work per source and turn
        // What a turn may spend on tasks, sources and timers each. It looks between pieces of work:
        // a task, a timer, an event (a page with all its messages); what one takes comes on top.
        std::chrono::microseconds turn_limit{1000};
        std::size_t post_limit = 65536; // tasks posted and not yet run
        // Is notified of what is worth a line of a log (netio/base/observer.hpp). Outlives the
        // objects of the loop. May be null.
        Observer* observer = nullptr;
    };

    // Throws std::invalid_argument for options.
    EventLoop();
    explicit EventLoop(Options options);
    // With a poller of one's own, which must outlive the loop.
    EventLoop(Options options, Poller& poller);
    // Sockets, transports, watches and timers must be destroyed before (checked).
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    // Runs until stop(). The calling thread becomes the loop's thread while it runs.
    void run();
    // One turn, and a wait until `wait_until` at most if the turn found nothing to do, and another
    // turn behind the wait; by default it does not wait. Returns whether it did any work.
    bool run_once(TimePoint wait_until = TimePoint::min());
    // Ends the run(), run_once() or dispatch() that is running after its current turn, or else
    // makes the next one return without waiting. Any thread; not from a signal handler.
    void stop() noexcept;
    // Runs the task on the loop's thread in one of the next turns, in order of posting. Returns
    // false if too many tasks are waiting already; this one will not run. Any thread.
    [[nodiscard]] bool post(std::function<void()> task);

    // The time as read at the start of this turn; it stands still while handlers run. Between two
    // turns, where another loop drives this one: the clock's.
    TimePoint now() const noexcept {
        const bool in_turn = thread_.load(std::memory_order_relaxed) != std::thread::id{};
        return in_turn ? now_ : poller_.now();
    }

    // To live inside another loop: wait until pollable_fd() is readable, then call dispatch(),
    // which runs turns until nothing is left to do or `budget` is spent; if something is left, the
    // descriptor stays readable. Returns whether something is. Call dispatch() once at the
    // beginning and after every call into the library from outside a handler. Receive windows grow
    // over long ways only where pollable_fd() is called right before each wait: it is taken to mean
    // that nothing else is done until dispatch(); of other time outside the loop cannot know that.
    int pollable_fd();
    bool dispatch(Duration budget = std::chrono::milliseconds{5});
    template <typename Period>
    bool dispatch(std::chrono::duration<std::int64_t, Period> budget) {
        return dispatch(clamped(budget));
    }

    // How long in total this loop was not able to poll: because a handler took its time, or because
    // the process was stopped. A peer is not to blame for a silence in that time. After a
    // dispatch() that left nothing to do it counts from when a timer was due.
    Duration stalled() const noexcept { return poll_.stalled(); }
    // All that had arrived by then was handed over.
    TimePoint caught_up() const noexcept { return poll_.last_caught_up(); }

    // For transports. A source must be removed before it is destroyed; both are legal in a drain.
    void add(EventSource& source);
    void remove(EventSource& source);
    // The source has, or may have, work that its descriptor does not tell: drain it this turn or
    // the next, and arm it before sleeping.
    void activate(EventSource& source) noexcept { SourceSet::activate(source); }
    // In a drain, behind a piece of work: leave the rest for the next turn.
    bool time_is_up() const { return poller_.now() >= work_end_; }
    void retire(std::unique_ptr<Retired> object);
    // An object that lives as long as the loop, and is destroyed before its other parts: the
    // network that sockets of this loop share (network_of, netio/fabric.hpp).
    std::shared_ptr<void>& attachment() noexcept { return attachment_; }

    // How often the loop has gone to sleep; a measure of idleness that needs no clock.
    std::uint64_t wait_count() const noexcept { return poll_.sleep_count(); }
    // For those who show it.
    LoopStats& turns() noexcept { return turns_; }
    LoopMode mode() const noexcept { return options_.mode; }
    // Ends the program, and names the call, if another thread runs this loop now, or if the calling
    // process has inherited the loop from its parent (netio/loop/check_caller.hpp).
    void check_caller(const char* type, const char* call) const noexcept;
    // For the destructor of an object on this loop: ends the program if another thread runs the
    // loop now. False in a child process: the object is the parent's, leave it alone.
    [[nodiscard]] bool may_destroy(const char* type) const noexcept;
    // Whether this process has inherited the loop from the one that created it.
    bool is_inherited() const noexcept { return generation_ != process_generation(); }
    // Is notified from now on; may be null.
    Observer* observer;

  private:
    friend class Timer;
    class Running;

    bool step(TimePoint deadline);
    bool turn() noexcept;
    bool drain_sources();
    bool fire_due_timers();
    void limit_work();
    bool may_wait();
    bool runs_elsewhere() const noexcept;
    void wait(TimePoint deadline);

    Options options_;
    unsigned generation_ = process_generation();
    std::unique_ptr<Poller> own_poller_;
    Poller& poller_;
    TimePoint now_;
    TimePoint last_work_;
    TimePoint work_end_; // of this turn's tasks, sources or timers
    LoopStats turns_;
    PollTracker poll_;
    SourceSet sources_;
    std::vector<EventSource*> fired_; // in a wait
    TimerQueue timers_;
    TaskQueue tasks_;
    std::vector<std::unique_ptr<Retired>> retired_;
    std::shared_ptr<void> attachment_;
    std::atomic<bool> stop_requested_{false};
    std::atomic<std::thread::id> thread_{};
};

// Now, by a clock that stands while this loop does not look: for limits on what others do.
inline TimePoint attended(const EventLoop& loop) noexcept {
    return loop.now() - loop.stalled();
}

// Calls its handler once, some time after start(), or periodically after start_every(). Starting it
// again replaces what was started before. The handler may destroy, cancel or start the timer.
// Destroying or cancelling it means that the handler will not run again.
//
//     netio::Timer tick = netio::Timer::every(loop, 1ms, [&] { publish_next(); });
class NETIO_EXPORT Timer {
  public:
    Timer(EventLoop& loop, std::function<void()> handler);
    // A timer that is started with start_every(period).
    static Timer every(EventLoop& loop, Duration period, std::function<void()> handler);
    template <typename Period>
    static Timer every(EventLoop& loop, std::chrono::duration<std::int64_t, Period> period,
                       std::function<void()> handler) {
        return every(loop, clamped(period), std::move(handler));
    }
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    // Counted from the clock: this turn may have begun long ago. The largest delay of any unit:
    // never.
    void start(Duration delay);
    template <typename Period>
    void start(std::chrono::duration<std::int64_t, Period> delay) {
        start(clamped(delay));
    }
    void start_at(TimePoint due); // TimePoint::max(): never
    // Calls the handler once per period, the first time after one period. The calls keep their
    // rate: each is due a whole number of periods after the start, however late the one before was.
    // A loop that is late makes up for the calls that were due meanwhile, one per turn, for at most
    // `catch_up_limit` periods; it skips older ones. Throws std::invalid_argument: the period is
    // not positive.
    void start_every(Duration period);
    template <typename Period>
    void start_every(std::chrono::duration<std::int64_t, Period> period) {
        start_every(clamped(period));
    }
    static constexpr unsigned catch_up_limit = TimerQueue::catch_up_limit;
    void cancel() noexcept;
    bool armed() const noexcept { return node_->armed(); }

  private:
    Timer(EventLoop& loop, Duration period, std::function<void()> handler);

    EventLoop& loop_;
    std::unique_ptr<TimerQueue::Node> node_;
};

} // namespace netio::inline v0_3
