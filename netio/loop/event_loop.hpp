// SPDX-License-Identifier: Apache-2.0
#pragma once

// One thread, one loop: every handler of this library runs inside EventLoop::run (or run_once,
// dispatch), one after another, so users need no locks. The loop has only four kinds of work:
// posted tasks, sources, timers and retired objects. A turn does them in this fixed order, each
// limited in number and in time:
//
//     posted tasks -> drain the active sources -> due timers -> free the retired -> sleep or spin
//
// Sources come before timers, so that a timer that checks the silence of a peer runs after
// everything that had arrived by then. The loop sleeps only after may_sleep() of every active
// source has returned true, because a fabric queue must be armed before its descriptor is waited
// for (fi_poll(3), fi_trywait). This prevents lost wake-ups. A source that was armed stays armed
// and costs nothing until its descriptor fires or it is activated.
//
// Threads: post() and stop() may be called from any thread; everything else only from the thread
// that runs the loop (checked). Processes: a forked child must not use a loop of its parent, nor
// objects that belong to it (checked); it creates loops of its own. Handlers should not block:
// during that time nothing else runs. They must not throw: an exception that leaves a handler ends
// the program (std::terminate).
//
//     netio::EventLoop loop{{.mode = netio::LoopMode::adaptive}};
//     netio::Timer tick{loop, [&] { loop.stop(); }};
//     tick.start(std::chrono::seconds{1});
//     loop.run();

#include "netio/base/export.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/event_source.hpp"
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
    blocking, // sleep whenever there is no work
    busy,     // never sleep; the loop occupies one core
    adaptive, // spin for a while after the last work, then sleep
};

class Observer;

class NETIO_EXPORT EventLoop {
  public:
    struct Options {
        LoopMode mode = LoopMode::blocking;
        std::chrono::microseconds spin{50}; // adaptive: how long to spin after the last work
        std::size_t drain_limit = 256;      // units of work per source and turn
        // Limits of the time that a turn spends on tasks, on sources and on timers. The loop checks
        // it between units of work (a task, a timer, or an event: a page with all its messages), so
        // one unit may exceed it.
        std::chrono::microseconds turn_limit{1000};
        std::size_t post_limit = 65536; // tasks that are posted and have not run
        // Receives events that are worth a log line (netio/base/observer.hpp). Must outlive the
        // objects of the loop. May be null.
        Observer* observer = nullptr;
    };

    // Throws std::invalid_argument for invalid options.
    EventLoop();
    explicit EventLoop(Options options);
    // With the caller's poller, which must outlive the loop.
    EventLoop(Options options, Poller& poller);
    // Sockets, transports, watches and timers must be destroyed before the loop (checked).
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    // Runs until stop(). The calling thread becomes the loop's thread while it runs.
    void run();
    // Runs one turn. If it found no work, waits until `wait_until` at most and runs another turn;
    // by default it does not wait. Returns whether it did any work.
    bool run_once(TimePoint wait_until = TimePoint::min());
    // Ends the current run(), run_once() or dispatch() after its current turn. If none is running,
    // makes the next one return without waiting. Any thread; not from a signal handler.
    void stop() noexcept;
    // Runs the task on the loop's thread in one of the next turns, in order of posting. Returns
    // false if too many tasks are waiting already; this task will not run. Any thread.
    [[nodiscard]] bool post(std::function<void()> task);
    // The same without a limit: for callers that have few tasks waiting at a time.
    void post_always(std::function<void()> task);

    // The time as read at the start of this turn; it does not change while handlers run. Between
    // two turns of a loop inside another loop: the time of the clock.
    TimePoint now() const noexcept {
        const bool in_turn = thread_.load(std::memory_order_relaxed) != std::thread::id{};
        return in_turn ? now_ : poller_.now();
    }

    // For a loop inside another loop: wait until pollable_fd() is readable, then call dispatch().
    // It runs turns until no work is left or `budget` is spent, and returns whether work is left;
    // in this case the descriptor stays readable. Call dispatch() once at the beginning and after
    // every call into the library from outside a handler. Call pollable_fd() right before each
    // wait: it means that the program only waits until dispatch(). Otherwise the loop cannot tell
    // waiting from other work, and receive windows do not grow over long round trips.
    int pollable_fd();
    bool dispatch(Duration budget = std::chrono::milliseconds{5});
    template <typename Period>
    bool dispatch(std::chrono::duration<std::int64_t, Period> budget) {
        return dispatch(clamped(budget));
    }

    // How long in total this loop was not able to poll: because a handler ran long, or because the
    // process was stopped. A peer's silence during that time is not the peer's fault. After a
    // dispatch() that left no work, the time counts from when a timer was due.
    Duration stalled() const noexcept { return poll_.stalled(); }
    // Everything that had arrived by this time was delivered to the handlers.
    TimePoint caught_up() const noexcept { return poll_.last_caught_up(); }

    // For transports. A source must be removed before it is destroyed; both are allowed during a
    // drain.
    void add(EventSource& source);
    void remove(EventSource& source);
    // Call it when the source has, or may have, work that its descriptor does not show: the loop
    // drains the source in this turn or the next, and arms it before sleeping.
    void activate(EventSource& source) noexcept { SourceSet::activate(source); }
    // For use during a drain, after each unit of work: whether to leave the rest for the next turn.
    bool time_is_up() const { return poller_.now() >= work_end_; }
    // Destroys the object at the end of the current or the next turn.
    void retire(std::unique_ptr<Retired> object);
    // An object that lives as long as the loop and is destroyed before its other parts: the network
    // that sockets of this loop share (network_of, netio/fabric.hpp).
    std::shared_ptr<void>& attachment() noexcept { return attachment_; }

    // How often the loop has gone to sleep: a measure of idleness that needs no clock.
    std::uint64_t wait_count() const noexcept { return poll_.sleep_count(); }
    // Statistics of the turns, for display.
    LoopStats& turns() noexcept { return turns_; }
    LoopMode mode() const noexcept { return options_.mode; }
    // Ends the program with a line that names the call, if another thread runs this loop now or if
    // the calling process has inherited the loop from its parent (netio/loop/check_caller.hpp).
    void check_caller(const char* type, const char* call) const noexcept;
    // For the destructor of an object on this loop: ends the program if another thread runs the
    // loop now. Returns false in a child process: the object is the parent's and must be left
    // alone.
    [[nodiscard]] bool may_destroy(const char* type) const noexcept;
    // Whether this process has inherited the loop from its parent.
    bool is_inherited() const noexcept { return process_.is_inherited(); }
    // As Options::observer; may be changed at any time on the loop's thread. May be null.
    Observer* observer;

  private:
    friend class Timer;
    class Running;

    bool put(std::function<void()> task, bool always);
    bool step(TimePoint deadline);
    bool turn() noexcept;
    bool drain_sources();
    bool fire_due_timers();
    void limit_work();
    bool may_wait();
    bool runs_elsewhere() const noexcept;
    void wait(TimePoint deadline);

    Options options_;
    ProcessMark process_;
    std::unique_ptr<Poller> own_poller_;
    Poller& poller_;
    TimePoint now_;
    TimePoint last_work_;
    TimePoint work_end_; // of this turn's tasks, sources or timers
    LoopStats turns_;
    PollTracker poll_;
    SourceSet sources_;
    std::vector<EventSource*> fired_; // during a wait
    TimerQueue timers_;
    TaskQueue tasks_;
    std::vector<std::unique_ptr<Retired>> retired_;
    std::shared_ptr<void> attachment_;
    std::atomic<bool> stop_requested_{false};
    std::atomic<std::thread::id> thread_{};
};

// The time of a clock that stops while this loop does not poll: for time limits on peers.
inline TimePoint attended(const EventLoop& loop) noexcept {
    return loop.now() - loop.stalled();
}

// Calls its handler once, some time after start(), or periodically after start_every(). Starting it
// again replaces the previous start. The handler may destroy, cancel or start the timer. After the
// timer is destroyed or cancelled, the handler does not run again.
//
//     netio::Timer tick = netio::Timer::every(loop, 1ms, [&] { publish_next(); });
class NETIO_EXPORT Timer {
  public:
    Timer(EventLoop& loop, std::function<void()> handler);
    // Creates a timer and calls start_every(period).
    static Timer every(EventLoop& loop, Duration period, std::function<void()> handler);
    template <typename Period>
    static Timer every(EventLoop& loop, std::chrono::duration<std::int64_t, Period> period,
                       std::function<void()> handler) {
        return every(loop, clamped(period), std::move(handler));
    }
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    // The delay begins now, not at the start of this turn. The largest value of any unit means
    // never.
    void start(Duration delay);
    template <typename Period>
    void start(std::chrono::duration<std::int64_t, Period> delay) {
        start(clamped(delay));
    }
    void start_at(TimePoint due); // TimePoint::max(): never
    // Calls the handler once per period, the first time after one period. The calls keep their
    // rate: each is due a whole number of periods after the start, however late the previous call
    // was. A late loop makes up for calls that were due, one per turn, for at most `catch_up_limit`
    // periods; it skips older ones. Throws std::invalid_argument if the period is not positive.
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
