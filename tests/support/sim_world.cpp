// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sim_world.hpp"

#include <algorithm>
#include <stdexcept>

namespace netio::test {

void SimWorld::ready(EventSource& source) {
    if (std::ranges::find(ready_, &source) == ready_.end()) ready_.push_back(&source);
}

void SimWorld::wait(TimePoint deadline, std::vector<EventSource*>& fired) {
    while (!woken_.exchange(false) && ready_.empty()) {
        const auto next = events_.begin();
        if (next == events_.end() && deadline == TimePoint::max()) {
            throw std::logic_error{"dead-lock: the loop waits for ever, nothing is scheduled and "
                                   "no source has anything to do"};
        }
        if (next == events_.end() || next->first.first > std::max(deadline, now_)) {
            now_ = std::max(deadline, now_);
            break;
        }
        now_ = next->first.first;
        const std::function<void()> event = std::move(next->second);
        events_.erase(next);
        event();
    }
    fired.insert(fired.end(), ready_.begin(), ready_.end());
    ready_.clear();
}

} // namespace netio::test
