// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/event_loop.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <sys/epoll.h>
#include <utility>

namespace netio::inline v0_2 {

struct EventLoop::TimerNode final : Retired {
    static constexpr std::size_t not_armed = SIZE_MAX;
    std::function<void()> handler;
    TimePoint due{};
    std::uint64_t order = 0; // equal times fire in the order of starting
    std::size_t position = not_armed;

    bool before(const TimerNode& other) const noexcept {
        return due != other.due ? due < other.due : order < other.order;
    }
};

namespace {

// A loop that always finds work looks at the descriptors (signals, foreign ones, set-up of
// connections) once in so many turns, since each look is a system call.
constexpr unsigned turns_between_looks = 16;

} // namespace

std::uint32_t EventSource::wait_events() const noexcept {
    return EPOLLIN;
}

EventLoop::EventLoop() : EventLoop(Options{}) {}

EventLoop::EventLoop(Options options)
    : options_{options}, own_poller_{make_epoll_poller()}, poller_{*own_poller_},
      now_{poller_.now()}, last_work_{now_} {}

EventLoop::EventLoop(Options options, Poller& poller)
    : options_{options}, poller_{poller}, now_{poller_.now()}, last_work_{now_} {}

EventLoop::~EventLoop() {
    retired_.clear();
    NETIO_CHECK_MSG(std::all_of(sources_.begin(), sources_.end(),
                                [](const EventSource* source) { return source == nullptr; }),
                    "sockets, transports and watches must be destroyed before their loop");
    NETIO_CHECK_MSG(timers_.empty(), "timers must be destroyed before their loop");
}

void EventLoop::run() {
    adopt_thread();
    while (!stop_requested_.exchange(false)) {
        if (turn()) {
            last_work_ = now_;
            continue;
        }
        const bool spin = options_.mode == LoopMode::busy || (options_.mode == LoopMode::adaptive &&
                                                              now_ - last_work_ < options_.spin);
        if (!spin && arm_sources()) {
            wait(next_deadline());
            // A wake-up counts as work: what woke us is rarely the last of its kind.
            if (options_.mode == LoopMode::adaptive) last_work_ = poller_.now();
        }
    }
    thread_.store(std::thread::id{});
}

bool EventLoop::run_once(TimePoint wait_until) {
    adopt_thread();
    bool worked = turn();
    if (!worked && arm_sources()) {
        wait(std::min(wait_until, next_deadline()));
        worked = turn();
    }
    thread_.store(std::thread::id{});
    return worked;
}

int EventLoop::pollable_fd() {
    return poller_.pollable_fd(next_deadline());
}

void EventLoop::dispatch() {
    adopt_thread();
    do {
        while (turn()) {
        }
        wait(TimePoint::min()); // clears what made the descriptor readable
    } while (!fired_.empty() || turn() || !arm_sources());
    poller_.pollable_fd(next_deadline());
    thread_.store(std::thread::id{});
}

void EventLoop::stop() noexcept {
    stop_requested_.store(true);
    poller_.wake();
}

void EventLoop::post(std::function<void()> task) {
    {
        const std::lock_guard lock{tasks_mutex_};
        tasks_.push_back(std::move(task));
    }
    // Only the first of a batch needs the system call: the loop clears the flag before it looks.
    if (!tasks_posted_.exchange(true)) poller_.wake();
}

bool EventLoop::turn() {
    // However busy the active sources and the timers are: those that wait for their descriptors
    // have their turn too.
    if (++turns_since_look_ >= turns_between_looks) wait(TimePoint::min());
    now_ = poller_.now();
    bool worked = run_posted_tasks();
    worked = fire_due_timers() || worked;
    worked = drain_sources() || worked;
    // Destructors may retire further objects; those wait for the next turn.
    std::vector<std::unique_ptr<Retired>> retired;
    retired.swap(retired_);
    retired.clear();
    return worked;
}

bool EventLoop::run_posted_tasks() {
    if (!tasks_posted_.exchange(false)) return false;
    std::vector<std::function<void()>> tasks;
    {
        const std::lock_guard lock{tasks_mutex_};
        tasks.swap(tasks_);
    }
    for (const auto& task : tasks)
        task();
    return !tasks.empty();
}

bool EventLoop::drain_sources() {
    std::size_t work = 0;
    draining_ = true;
    // By index: handlers may add sources (served in the next turn) and remove any of them.
    const std::size_t count = sources_.size();
    for (std::size_t i = 0; i < count; ++i) {
        EventSource* const source = sources_[i];
        if (source == nullptr || !source->active_) continue;
        work += source->drain(options_.drain_limit);
        // One that is not worth polling waits for its descriptor again at once, so that a
        // spinning loop does not pay for it every turn.
        if (sources_[i] == source && !source->worth_polling()) {
            source->active_ = !source->may_sleep();
        }
    }
    draining_ = false;
    if (std::exchange(holes_, false)) {
        std::erase(sources_, nullptr);
        for (std::size_t i = 0; i < sources_.size(); ++i)
            sources_[i]->index_ = i;
    }
    return work > 0;
}

bool EventLoop::arm_sources() {
    for (EventSource* const source : sources_) {
        if (!source->active_) continue;
        if (!source->may_sleep()) return false;
        source->active_ = false;
    }
    return true;
}

void EventLoop::wait(TimePoint deadline) {
    turns_since_look_ = 0;
    ++wait_count_;
    fired_.clear();
    if (tasks_posted_.load() || stop_requested_.load() || !retired_.empty()) {
        deadline = TimePoint::min();
    }
    poller_.wait(deadline, fired_);
    for (EventSource* const source : fired_)
        source->active_ = true;
    // A spinning loop polls queues without waiting for their descriptors.
    if (options_.mode != LoopMode::blocking) {
        for (EventSource* const source : sources_) {
            if (source->worth_polling()) source->active_ = true;
        }
    }
}

void EventLoop::add(EventSource& source) {
    check_thread();
    NETIO_CHECK(source.index_ == EventSource::not_added);
    poller_.add(source);
    source.index_ = sources_.size();
    source.active_ = true;
    sources_.push_back(&source);
}

void EventLoop::remove(EventSource& source) {
    check_thread();
    NETIO_CHECK(source.index_ < sources_.size() && sources_[source.index_] == &source);
    poller_.remove(source);
    std::erase(fired_, &source);
    if (draining_) {
        sources_[source.index_] = nullptr;
        holes_ = true;
    } else {
        sources_[source.index_] = sources_.back();
        sources_[source.index_]->index_ = source.index_;
        sources_.pop_back();
    }
    source.index_ = EventSource::not_added;
    source.active_ = false;
}

void EventLoop::activate(EventSource& source) {
    source.active_ = true;
}

void EventLoop::retire(std::unique_ptr<Retired> object) {
    retired_.push_back(std::move(object));
}

void EventLoop::adopt_thread() noexcept {
    NETIO_CHECK_MSG(thread_.load() == std::thread::id{}, "the loop is running already");
    thread_.store(std::this_thread::get_id());
}

void EventLoop::check_thread() const noexcept {
    const std::thread::id owner = thread_.load(std::memory_order_relaxed);
    NETIO_CHECK_MSG(owner == std::thread::id{} || owner == std::this_thread::get_id(),
                    "only post() and stop() may be called from another thread");
}

// --- timers ---------------------------------------------------------------------------------

TimePoint EventLoop::next_deadline() const noexcept {
    return timers_.empty() ? TimePoint::max() : timers_.front()->due;
}

bool EventLoop::fire_due_timers() {
    // Timers started by a handler have a later order and wait for the next turn, also when they
    // are due at once; otherwise one that restarts itself could hold the loop.
    const std::uint64_t last_order = timer_order_;
    bool fired = false;
    while (!timers_.empty() && timers_.front()->due <= now_ &&
           timers_.front()->order <= last_order) {
        TimerNode* const node = timers_.front();
        stop_timer(*node);
        firing_ = node;
        node->handler();
        firing_ = nullptr;
        fired = true;
    }
    return fired;
}

void EventLoop::start_timer(TimerNode& node, TimePoint due) {
    check_thread();
    stop_timer(node);
    node.due = due;
    node.order = ++timer_order_;
    timers_.push_back(&node);
    place_timer(timers_.size() - 1, &node);
    sift_timer(timers_.size() - 1);
}

void EventLoop::stop_timer(TimerNode& node) noexcept {
    if (node.position == TimerNode::not_armed) return;
    const std::size_t hole = std::exchange(node.position, TimerNode::not_armed);
    TimerNode* const last = timers_.back();
    timers_.pop_back();
    if (last == &node) return;
    place_timer(hole, last);
    sift_timer(hole);
}

void EventLoop::place_timer(std::size_t position, TimerNode* node) noexcept {
    timers_[position] = node;
    node->position = position;
}

void EventLoop::sift_timer(std::size_t position) noexcept {
    TimerNode* const node = timers_[position];
    while (position > 0) {
        const std::size_t parent = (position - 1) / 2;
        if (!node->before(*timers_[parent])) break;
        place_timer(position, timers_[parent]);
        position = parent;
    }
    for (;;) {
        std::size_t child = 2 * position + 1;
        if (child >= timers_.size()) break;
        if (child + 1 < timers_.size() && timers_[child + 1]->before(*timers_[child])) ++child;
        if (!timers_[child]->before(*node)) break;
        place_timer(position, timers_[child]);
        position = child;
    }
    place_timer(position, node);
}

Timer::Timer(EventLoop& loop, std::function<void()> handler)
    : loop_{loop}, node_{std::make_unique<EventLoop::TimerNode>()} {
    node_->handler = std::move(handler);
}

Timer::~Timer() {
    loop_.stop_timer(*node_);
    // The handler that is running right now must not be destroyed under its own feet.
    if (loop_.firing_ == node_.get()) loop_.retire(std::move(node_));
}

void Timer::start(Duration delay) {
    loop_.start_timer(*node_, loop_.poller_.now() + delay);
}

void Timer::start_at(TimePoint due) {
    loop_.start_timer(*node_, due);
}

void Timer::cancel() noexcept {
    loop_.stop_timer(*node_);
}

bool Timer::armed() const noexcept {
    return node_->position != EventLoop::TimerNode::not_armed;
}

} // namespace netio::inline v0_2
