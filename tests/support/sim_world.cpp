// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sim_world.hpp"

#include <algorithm>
#include <stdexcept>

namespace netio::test {

bool SimClock::step(TimePoint until) {
    const auto next = events_.begin();
    if (next == events_.end() || next->first.first > std::max(until, now_)) {
        now_ = std::max(until, now_);
        return false;
    }
    now_ = next->first.first;
    const std::function<void()> event = std::move(next->second);
    events_.erase(next);
    event();
    return true;
}

void SimProcess::ready(EventSource& source) {
    if (std::ranges::find(ready_, &source) == ready_.end()) ready_.push_back(&source);
}

void SimProcess::wait(TimePoint deadline, std::vector<EventSource*>& fired) {
    if (own_clock_) {
        wait_alone(deadline);
    } else {
        std::ranges::shuffle(ready_, random_);
        woken_.store(false);
    }
    fired.insert(fired.end(), ready_.begin(), ready_.end());
    ready_.clear();
}

void SimProcess::wait_alone(TimePoint deadline) {
    while (!woken_.exchange(false) && ready_.empty()) {
        if (deadline == TimePoint::max() && clock_.next() == TimePoint::max()) {
            throw std::logic_error{"dead-lock: the loop waits for ever, nothing is scheduled and "
                                   "no source has anything to do"};
        }
        const TimePoint until = deadline == TimePoint::max() ? deadline : deadline - ahead_;
        if (!clock_.step(until)) break;
    }
}

void SimProcess::spend(Duration time) {
    if (!own_clock_) {
        spent_ += time;
        return;
    }
    const TimePoint end = clock_.now() + time;
    while (clock_.step(end)) {
    }
}

TimePoint SimProcess::due() const noexcept {
    if (!asleep_ || woken_.load() || !ready_.empty()) return busy_until_;
    if (sleeps_until_ == TimePoint::max()) return TimePoint::max();
    return std::max(busy_until_, sleeps_until_ - ahead_);
}

void SimProcess::end_turn() noexcept {
    busy_until_ = clock_.now() + std::exchange(spent_, Duration{});
}

} // namespace netio::test
