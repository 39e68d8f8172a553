// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/event_loop.hpp"

#include "netio/base/check.hpp"
#include "netio/base/descriptor_error.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/check_caller.hpp"
#include "netio/loop/event_source.hpp"
#include "netio/loop/process.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace netio::inline v0_3 {
namespace {

// The poller of real time: epoll (level-triggered), an eventfd for wake-ups from other threads, and
// a timerfd for the deadline if the loop runs inside another one.

class Descriptor {
  public:
    Descriptor(int fd, const char* step) : fd_{fd} {
        if (fd < 0) throw descriptor_error(step);
    }
    ~Descriptor() { ::close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const noexcept { return fd_; }

  private:
    int fd_;
};

timespec to_timespec(Duration duration) noexcept {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
}

class EpollPoller final : public Poller {
  public:
    EpollPoller()
        : epoll_{::epoll_create1(EPOLL_CLOEXEC), "cannot create an epoll descriptor"},
          wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "cannot create an eventfd"},
          timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                 "cannot create a timerfd"} {
        control(EPOLL_CTL_ADD, wake_.get(), EPOLLIN);
        control(EPOLL_CTL_ADD, timer_.get(), EPOLLIN);
    }

    TimePoint now() override { return Clock::now(); }

    void add(EventSource& source) override {
        const int fd = source.wait_fd();
        if (fd < 0) throw cannot_watch(fd, EBADF);
        Sources& sources = sources_[fd];
        sources.push_back(&source);
        try {
            watch(fd, sources);
        } catch (...) {
            remove(source);
            throw;
        }
    }

    void remove(EventSource& source) override {
        const auto found = sources_.find(source.wait_fd());
        if (found == sources_.end()) return;
        std::erase(found->second, &source);
        if (found->second.empty()) {
            // The owner may have closed the descriptor, which removes it as well.
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->first, nullptr);
            sources_.erase(found);
        } else {
            control(EPOLL_CTL_MOD, found->first, interest(found->second));
        }
    }

    void wait(TimePoint deadline, std::vector<EventSource*>& fired) override {
        const int count = wait_for_events(deadline);
        if (count < 0) {
            NETIO_CHECK_MSG(errno == EINTR, "waiting with epoll failed");
            return;
        }
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events_[static_cast<std::size_t>(i)];
            if (event.data.fd == wake_.get()) {
                clear(wake_.get());
            } else if (event.data.fd == timer_.get()) {
                clear(timer_.get());
                armed_ = TimePoint::max();
            } else {
                fire(event, fired);
            }
        }
    }

    void wake() noexcept override {
        const std::uint64_t one = 1;
        // EAGAIN means that the counter is full: the descriptor is readable, which is enough.
        [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    }

    int pollable_fd(TimePoint deadline) override {
        arm_timer(deadline);
        return epoll_.get();
    }

  private:
    using Sources = std::vector<EventSource*>;

    static Duration until(TimePoint deadline) {
        if (deadline == TimePoint::max() || deadline == TimePoint::min()) return Duration{0};
        const Duration left = deadline - Clock::now();
        return left > Duration{0} ? left : Duration{0};
    }

    int wait_for_events(TimePoint deadline) {
        const auto capacity = static_cast<int>(events_.size());
        const Duration left = until(deadline);
        const bool forever = deadline == TimePoint::max();
        // Milliseconds are too coarse for other time-outs.
        if (forever || left == Duration{0}) {
            return ::epoll_wait(epoll_.get(), events_.data(), capacity, forever ? -1 : 0);
        }
#ifdef SYS_epoll_pwait2
        if (has_fine_wait_) {
            const timespec timeout = to_timespec(left);
            const auto count = ::syscall(SYS_epoll_pwait2, epoll_.get(), events_.data(), capacity,
                                         &timeout, nullptr, std::size_t{0});
            // Kernels before Linux 5.11 do not have epoll_pwait2, and sandboxes may not allow it.
            if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(count);
            has_fine_wait_ = false;
        }
#endif
        arm_timer(deadline);
        return ::epoll_wait(epoll_.get(), events_.data(), capacity, -1);
    }

    void fire(const epoll_event& event, std::vector<EventSource*>& fired) {
        const auto found = sources_.find(event.data.fd);
        if (found == sources_.end()) return; // its owner closed it too early
        for (EventSource* const source : found->second) {
            // An error is reported to all sources of the descriptor.
            const std::uint32_t wanted = source->wait_events() | EPOLLERR | EPOLLHUP;
            if ((event.events & wanted) != 0) fired.push_back(source);
        }
    }

    void arm_timer(TimePoint deadline) {
        if (deadline == armed_) return;
        itimerspec when{};
        if (deadline != TimePoint::max()) {
            const Duration left = until(deadline);
            // Zero would disarm the timer.
            when.it_value = to_timespec(left > Duration{0} ? left : Duration{1});
        }
        NETIO_CHECK(::timerfd_settime(timer_.get(), 0, &when, nullptr) == 0);
        armed_ = deadline;
    }

    static std::uint32_t interest(const Sources& sources) {
        std::uint32_t events = 0;
        for (const EventSource* const source : sources)
            events |= source->wait_events();
        return events;
    }

    void watch(int fd, const Sources& sources) {
        // After a descriptor was closed, epoll does not know its number any more.
        if (sources.size() > 1 && control(EPOLL_CTL_MOD, fd, interest(sources))) return;
        if (!control(EPOLL_CTL_ADD, fd, interest(sources))) {
            throw cannot_watch(fd, errno);
        }
    }

    static FabricError cannot_watch(int fd, int error) {
        return {{error, std::system_category()}, "cannot watch descriptor " + std::to_string(fd)};
    }

    bool control(int operation, int fd, std::uint32_t events) noexcept {
        epoll_event event{};
        event.events = events;
        event.data.fd = fd;
        return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
    }

    static void clear(int fd) noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(fd, &count, sizeof count);
    }

    Descriptor epoll_;
    Descriptor wake_;
    Descriptor timer_;
    TimePoint armed_ = TimePoint::max();
    bool has_fine_wait_ = true;
    std::unordered_map<int, Sources> sources_; // by descriptor
    std::array<epoll_event, 64> events_{};
};

} // namespace

std::unique_ptr<Poller> make_epoll_poller() {
    return std::make_unique<EpollPoller>();
}

namespace {

EventLoop::Options checked(EventLoop::Options options) {
    const auto require = [](bool valid, const char* what) {
        if (!valid) throw std::invalid_argument{std::string{"event loop: "} + what};
    };
    require(options.spin.count() >= 0 && options.spin <= longest_time,
            "spin must be from 0 to a year");
    require(options.drain_limit > 0, "drain_limit must be at least 1");
    require(options.turn_limit.count() > 0 && options.turn_limit <= longest_time,
            "turn_limit must be from 1 us to a year");
    require(options.post_limit > 0, "post_limit must be at least 1");
    return options;
}

// The rest of an error line, after the name of the call or object that breaks the rule.
constexpr const char* thread_remedy =
    " is called from another thread while its loop runs; make the call in the loop's thread, with "
    "EventLoop::post()";
constexpr const char* destructor_remedy =
    " is destroyed while another thread runs its loop; call EventLoop::stop() and join that thread "
    "before, or destroy the object in that thread with EventLoop::post()";

// A time beyond the range of the clock means never.
TimePoint later(TimePoint begin, Duration delay) noexcept {
    return delay > TimePoint::max() - begin ? TimePoint::max() : begin + delay;
}

// Destructors may retire further objects; those are freed in the next turn.
void free_all(std::vector<std::unique_ptr<Retired>>& retired) {
    std::vector<std::unique_ptr<Retired>> now;
    now.swap(retired);
}

} // namespace

// Makes the calling thread the loop's thread while this object lives.
class EventLoop::Running {
  public:
    explicit Running(EventLoop& loop) : loop_{loop} {
        if (loop.is_inherited()) loop.check_caller("EventLoop", "run");
        if (loop.thread_.load() != std::thread::id{})
            detail::misused("EventLoop::run or run_once is called while the loop runs: in one of "
                            "its handlers, or in another thread");
        loop.thread_.store(std::this_thread::get_id());
    }
    ~Running() {
        loop_.turns_.leave();
        loop_.thread_.store(std::thread::id{});
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

  private:
    EventLoop& loop_;
};

EventLoop::EventLoop() : EventLoop(Options{}) {}

EventLoop::EventLoop(Options options)
    : observer{options.observer}, options_{checked(options)},
      own_poller_{make_epoll_poller()}, poller_{*own_poller_}, now_{poller_.now()},
      last_work_{now_}, work_end_{now_}, poll_{now_}, tasks_{options_.post_limit} {
    // A program may wait for signals with a loop before it has a transport.
    [[maybe_unused]] static const bool once = (undo_foreign_signal_handlers(), true);
}

EventLoop::EventLoop(Options options, Poller& poller)
    : observer{options.observer}, options_{checked(options)}, poller_{poller}, now_{poller_.now()},
      last_work_{now_}, work_end_{now_}, poll_{now_}, tasks_{options_.post_limit} {}

EventLoop::~EventLoop() {
    if (is_inherited()) {
        // The sockets were not destroyed, so the objects that they have retired are not destroyed
        // either.
        for (std::unique_ptr<Retired>& each : retired_)
            static_cast<void>(each.release());
        static_cast<void>(new (std::nothrow) std::shared_ptr<void>{std::move(attachment_)});
        return;
    }
    if (thread_.load() != std::thread::id{}) {
        detail::misused("the event loop is destroyed while it runs; call EventLoop::stop() and "
                        "wait until run() has returned, or join the thread that runs it, before");
    }
    tasks_.discard();
    attachment_.reset();
    // Their destructors may retire further objects.
    while (!retired_.empty())
        free_all(retired_);
    NETIO_CHECK_MSG(sources_.empty(),
                    "sockets, transports and watches must be destroyed before their loop");
    NETIO_CHECK_MSG(timers_.node_count() == 0, "timers must be destroyed before their loop");
}

void EventLoop::run() {
    const Running running{*this};
    while (!stop_requested_.exchange(false)) {
        const bool spin = options_.mode == LoopMode::busy || (options_.mode == LoopMode::adaptive &&
                                                              now_ - last_work_ < options_.spin);
        if (spin) {
            if (turn()) last_work_ = now_;
        } else {
            step(TimePoint::max());
            // A wake-up counts as work, because more events usually follow.
            last_work_ = now_;
        }
    }
}

bool EventLoop::run_once(TimePoint wait_until) {
    const Running running{*this};
    const bool worked = step(wait_until);
    stop_requested_.store(false);
    return worked;
}

int EventLoop::pollable_fd() {
    turns_.rest(poller_.now());
    return poller_.pollable_fd(timers_.next_due());
}

bool EventLoop::dispatch(Duration budget) {
    const Running running{*this};
    const TimePoint begin = poller_.now();
    const TimePoint end = later(begin, budget);
    poll_.resume(std::min(begin, timers_.next_due()));
    bool left = true;
    do {
        // If there is no other work, it polls the descriptors, which clears what made pollable_fd()
        // readable.
        left = step(TimePoint::min()) || !may_wait();
    } while (left && !stop_requested_.load() && poller_.now() < end);
    stop_requested_.store(false);
    if (left) {
        poller_.wake();
    } else {
        poll_.rest();
    }
    poller_.pollable_fd(timers_.next_due());
    return left;
}

void EventLoop::stop() noexcept {
    stop_requested_.store(true);
    if (!is_inherited()) poller_.wake();
}

bool EventLoop::post(std::function<void()> task) {
    return put(std::move(task), false);
}

void EventLoop::post_always(std::function<void()> task) {
    put(std::move(task), true);
}

bool EventLoop::put(std::function<void()> task, bool always) {
    if (is_inherited()) check_caller("EventLoop", "post");
    const TaskQueue::Put put = tasks_.put(std::move(task), always);
    if (put == TaskQueue::Put::first) poller_.wake();
    return put != TaskQueue::Put::full;
}

// One turn. If it found no work, waits and runs another turn. All ways to drive a loop use it.
bool EventLoop::step(TimePoint deadline) {
    if (turn()) return true;
    if (!may_wait()) return false;
    wait(std::min(deadline, timers_.next_due()));
    return turn();
}

// noexcept: after a handler has thrown, its object's state is unknown, so the program ends.
bool EventLoop::turn() noexcept {
    now_ = poller_.now();
    turns_.begin(now_);
    // Polls even if active sources and timers are busy, so that armed sources get their turn.
    if (poll_.poll_is_due(now_, options_.turn_limit)) wait(TimePoint::min());
    limit_work();
    const TimePoint begin = work_end_ - options_.turn_limit;
    bool worked = tasks_.run([this] { return time_is_up(); });
    worked = drain_sources() || worked;
    worked = fire_due_timers() || worked;
    free_all(retired_);
    if (worked) turns_.add(poller_.now() - begin);
    return worked;
}

void EventLoop::limit_work() {
    work_end_ = later(poller_.now(), options_.turn_limit);
}

bool EventLoop::drain_sources() {
    limit_work();
    const SourceSet::Drained drained =
        sources_.drain(options_.drain_limit, [this] { return time_is_up(); });
    if (drained.completely) poll_.caught_up();
    return drained.worked;
}

bool EventLoop::fire_due_timers() {
    limit_work();
    timers_.collect(now_);
    bool fired = false;
    while (timers_.fire_next()) {
        fired = true;
        if (time_is_up()) break;
    }
    return fired;
}

bool EventLoop::may_wait() {
    return retired_.empty() && sources_.arm();
}

void EventLoop::wait(TimePoint deadline) {
    if (tasks_.waiting() || stop_requested_.load() || !retired_.empty()) {
        deadline = TimePoint::min();
    }
    const TimePoint begin = poller_.now();
    poller_.wait(deadline, fired_);
    poll_.polled(begin, poller_.now(), deadline);
    now_ = poll_.last_poll();
    for (EventSource* const source : fired_)
        activate(*source);
    fired_.clear();
    // A spinning loop polls queues without waiting for their descriptors.
    if (options_.mode != LoopMode::blocking) sources_.activate_polled();
}

void EventLoop::add(EventSource& source) {
    check_caller("EventLoop", __func__);
    poller_.add(source);
    sources_.add(source);
}

void EventLoop::remove(EventSource& source) {
    NETIO_CHECK(sources_.contains(source));
    // A child process must not change what the parent's descriptor waits for.
    if (may_destroy("a socket, transport or watch")) poller_.remove(source);
    sources_.remove(source);
}

void EventLoop::retire(std::unique_ptr<Retired> object) {
    retired_.push_back(std::move(object));
}

void EventLoop::check_caller(const char* type, const char* call) const noexcept {
    if (!is_inherited() && !runs_elsewhere()) return;
    const std::string what = std::string{type} + "::" + call;
    if (is_inherited()) refuse_inherited(what.c_str());
    detail::misused((what + thread_remedy).c_str());
}

bool EventLoop::may_destroy(const char* type) const noexcept {
    if (is_inherited()) return false;
    if (runs_elsewhere()) detail::misused((std::string{type} + destructor_remedy).c_str());
    return true;
}

bool EventLoop::runs_elsewhere() const noexcept {
    const std::thread::id owner = thread_.load(std::memory_order_relaxed);
    return owner != std::thread::id{} && owner != std::this_thread::get_id();
}

Timer::Timer(EventLoop& loop, std::function<void()> handler)
    : loop_{loop}, node_{std::make_unique<TimerQueue::Node>()} {
    node_->handler = std::move(handler);
    NETIO_CHECK_CALLER(loop_, "Timer");
    loop_.timers_.enter(*node_);
}

Timer::Timer(EventLoop& loop, Duration period, std::function<void()> handler)
    : Timer{loop, std::move(handler)} {
    start_every(period);
}

Timer Timer::every(EventLoop& loop, Duration period, std::function<void()> handler) {
    return Timer{loop, period, std::move(handler)};
}

Timer::~Timer() {
    static_cast<void>(loop_.may_destroy("Timer")); // a child process owns its copy
    // A handler that is running must not be destroyed.
    if (loop_.timers_.leave(*node_)) loop_.retire(std::move(node_));
}

void Timer::start(Duration delay) {
    start_at(later(loop_.poller_.now(), delay));
}

void Timer::start_at(TimePoint due) {
    loop_.check_caller("Timer", __func__);
    loop_.timers_.start(*node_, due);
}

void Timer::start_every(Duration period) {
    loop_.check_caller("Timer", __func__);
    if (period <= Duration::zero())
        throw std::invalid_argument{"timer: the period must be positive"};
    loop_.timers_.start(*node_, later(loop_.poller_.now(), period), period);
}

void Timer::cancel() noexcept {
    NETIO_CHECK_CALLER(loop_, "Timer");
    loop_.timers_.stop(*node_);
}

} // namespace netio::inline v0_3
