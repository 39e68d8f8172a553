// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/loop_work.hpp"

#include "netio/base/check.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

namespace netio::inline v0_3 {

// --- tasks ----------------------------------------------------------------------------------

TaskQueue::Put TaskQueue::put(std::function<void()> task, bool always) {
    {
        const std::lock_guard lock{mutex_};
        if (!always && tasks_.size() + to_run_.load() >= limit_) return Put::full;
        tasks_.push_back(std::move(task));
    }
    // Only the first task of a batch must wake the loop: run() clears the flag before it checks the
    // queue.
    return posted_.exchange(true) ? Put::ok : Put::first;
}

void TaskQueue::discard() {
    // Outside the lock: what a task holds may put another one.
    std::vector<std::function<void()>> tasks = std::move(running_);
    running_.clear();
    next_ = 0;
    while (!tasks.empty() || posted_.exchange(false)) {
        tasks.clear();
        const std::lock_guard lock{mutex_};
        tasks.swap(tasks_);
    }
}

bool TaskQueue::run(const std::function<bool()>& time_is_up) {
    if (next_ == running_.size()) {
        if (!posted_.exchange(false)) return false;
        running_.clear();
        next_ = 0;
        const std::lock_guard lock{mutex_};
        running_.swap(tasks_);
        to_run_ = running_.size();
    }
    const std::size_t begin = next_;
    while (next_ < running_.size()) {
        // Moved out, so that it is destroyed right after it ran, not with the last task of the
        // batch.
        const std::function<void()> task = std::move(running_[next_++]);
        to_run_ = running_.size() - next_; // before the task can post another one
        task();
        if (time_is_up()) break;
    }
    return next_ > begin;
}

// --- sources --------------------------------------------------------------------------------

std::uint32_t EventSource::wait_events() const noexcept {
    return EPOLLIN;
}

void SourceSet::add(EventSource& source) {
    NETIO_CHECK(source.index_ == EventSource::not_added);
    sources_.push_back(&source);
    source.index_ = sources_.size() - 1;
    source.active_ = true;
    ++count_;
}

bool SourceSet::contains(const EventSource& source) const noexcept {
    return source.index_ < sources_.size() && sources_[source.index_] == &source;
}

void SourceSet::remove(EventSource& source) noexcept {
    NETIO_CHECK(contains(source));
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
    --count_;
}

void SourceSet::activate_polled() noexcept {
    for (EventSource* const source : sources_) {
        if (source->worth_polling()) source->active_ = true;
    }
}

SourceSet::Drained SourceSet::drain(std::size_t limit, const std::function<bool()>& time_is_up) {
    Drained result;
    draining_ = true;
    // By index: handlers may add sources (drained next time) and remove any of them.
    const std::size_t count = sources_.size();
    for (std::size_t done = 0; done < count; ++done) {
        const std::size_t index = (first_ + done) % count;
        EventSource* const source = sources_[index];
        if (source == nullptr || !source->active_) continue;
        const std::size_t work = source->drain(limit);
        result.worked = result.worked || work > 0;
        if (work >= limit) result.completely = false;
        // A source that is not worth polling is armed again at once, so that a spinning loop does
        // not drain it every turn.
        if (sources_[index] == source && !source->worth_polling()) {
            source->active_ = !source->may_sleep();
        }
        if (work > 0 && time_is_up()) {
            first_ = index + 1;
            result.completely = false;
            break;
        }
    }
    draining_ = false;
    if (std::exchange(holes_, false)) {
        std::erase(sources_, nullptr);
        for (std::size_t i = 0; i < sources_.size(); ++i)
            sources_[i]->index_ = i;
    }
    return result;
}

bool SourceSet::arm() {
    for (EventSource* const source : sources_) {
        if (!source->active_) continue;
        if (!source->may_sleep()) return false;
        source->active_ = false;
    }
    return true;
}

// --- timers ---------------------------------------------------------------------------------

bool TimerQueue::leave(Node& node) noexcept {
    stop(node);
    --node_count_;
    return firing_ == &node;
}

bool TimerQueue::fire_next() {
    Node* const node = take();
    if (node == nullptr) return false;
    // Before its handler runs, because the handler may stop, restart or destroy the timer.
    if (node->period > Duration{0}) {
        node->advance(now_);
        enter_waiting(*node);
    }
    firing_ = node;
    node->handler();
    firing_ = nullptr;
    return true;
}

void TimerQueue::Node::advance(TimePoint now) noexcept {
    // A time beyond the range of the clock means never.
    due = period > TimePoint::max() - due ? TimePoint::max() : due + period;
    if (due >= now) return;
    const auto behind = (now - due) / period;
    if (behind >= catch_up_limit) due += (behind - catch_up_limit + 1) * period;
}

void TimerQueue::start(Node& node, TimePoint due, Duration period) {
    stop(node);
    node.due = due;
    node.period = period;
    enter_waiting(node);
}

void TimerQueue::enter_waiting(Node& node) {
    node.order = ++order_;
    node.place = Node::Place::waiting;
    waiting_.push_back(&node);
    sift(waiting_.size() - 1);
}

void TimerQueue::stop(Node& node) noexcept {
    switch (std::exchange(node.place, Node::Place::none)) {
    case Node::Place::none:
        return;
    case Node::Place::waiting:
        return remove_waiting(node.position);
    case Node::Place::collected:
        collected_[node.position] = nullptr;
    }
}

TimePoint TimerQueue::next_due() const noexcept {
    if (taken_ < collected_.size()) return TimePoint::min();
    return waiting_.empty() ? TimePoint::max() : waiting_.front()->due;
}

void TimerQueue::collect(TimePoint now) {
    now_ = now;
    if (taken_ < collected_.size()) return;
    collected_.clear();
    taken_ = 0;
    while (!waiting_.empty() && waiting_.front()->due <= now &&
           waiting_.front()->due != TimePoint::max()) {
        Node* const node = waiting_.front();
        remove_waiting(0);
        node->place = Node::Place::collected;
        node->position = collected_.size();
        collected_.push_back(node);
    }
}

TimerQueue::Node* TimerQueue::take() noexcept {
    while (taken_ < collected_.size()) {
        Node* const node = collected_[taken_++];
        if (node == nullptr) continue;
        node->place = Node::Place::none;
        return node;
    }
    return nullptr;
}

void TimerQueue::remove_waiting(std::size_t position) noexcept {
    Node* const last = waiting_.back();
    waiting_.pop_back();
    if (position == waiting_.size()) return;
    place(position, last);
    sift(position);
}

void TimerQueue::place(std::size_t position, Node* node) noexcept {
    waiting_[position] = node;
    node->position = position;
}

void TimerQueue::sift(std::size_t position) noexcept {
    Node* const node = waiting_[position];
    while (position > 0) {
        const std::size_t parent = (position - 1) / 2;
        if (!node->before(*waiting_[parent])) break;
        place(position, waiting_[parent]);
        position = parent;
    }
    for (;;) {
        std::size_t child = 2 * position + 1;
        if (child >= waiting_.size()) break;
        if (child + 1 < waiting_.size() && waiting_[child + 1]->before(*waiting_[child])) ++child;
        if (!waiting_[child]->before(*node)) break;
        place(position, waiting_[child]);
        position = child;
    }
    place(position, node);
}

} // namespace netio::inline v0_3
