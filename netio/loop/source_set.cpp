// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/source_set.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <sys/epoll.h>
#include <utility>

namespace netio::inline v0_2 {

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
    // By index: handlers may add sources (served the next time) and remove any of them.
    const std::size_t count = sources_.size();
    for (std::size_t done = 0; done < count; ++done) {
        const std::size_t index = (first_ + done) % count;
        EventSource* const source = sources_[index];
        if (source == nullptr || !source->active_) continue;
        const std::size_t work = source->drain(limit);
        result.worked = result.worked || work > 0;
        if (work >= limit) result.completely = false;
        // One that is not worth polling waits for its descriptor again at once, so that a
        // spinning loop does not pay for it every turn.
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

} // namespace netio::inline v0_2
