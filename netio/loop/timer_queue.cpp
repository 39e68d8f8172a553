// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/timer_queue.hpp"

#include <utility>

namespace netio::inline v0_2 {

bool TimerQueue::leave(Node& node) noexcept {
    stop(node);
    --node_count_;
    return firing_ == &node;
}

bool TimerQueue::fire_next() {
    Node* const node = take();
    if (node == nullptr) return false;
    // Before its handler, which may stop it, start it in another way, or destroy it.
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
    // A time that the clock has no number for is never.
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

} // namespace netio::inline v0_2
