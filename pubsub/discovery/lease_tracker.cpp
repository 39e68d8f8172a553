// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/lease_tracker.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// What it takes in memory, but for what does not depend on what it says.
std::size_t bytes_of(const Announcement& announcement) {
    std::size_t bytes = announcement.fids.size() * sizeof(AnnouncedFids);
    for (const AnnouncedFids& each : announcement.fids)
        bytes += each.meaning.size();
    return bytes;
}

} // namespace

bool LeaseTracker::has_place(const Announcement& announcement, std::size_t in_its_place) const {
    return bytes_ - in_its_place + bytes_of(announcement) <= bytes_limit_;
}

LeaseTracker::Seen LeaseTracker::saw(const Announcement& announcement, TimePoint now) {
    const auto known = held_.find(announcement.name);
    if (known == held_.end()) {
        if (alive_ >= limit_ || !has_place(announcement, 0)) return refuse();
        ++alive_;
        bytes_ += bytes_of(announcement);
        held_.emplace(announcement.name, Held{.last = announcement, .moved = now});
        return Seen::found;
    }
    Held& held = known->second;
    held.contested = held.alive && announcement.instance != held.last.instance &&
                     announcement.instance == held.predecessor;
    if (held.contested) return Seen::contested;
    if (held.last.instance == announcement.instance) {
        if (held.last.counter == announcement.counter) return Seen::stale;
        return take(held, announcement, now);
    }
    held.predecessor = held.last.instance;
    return take(held, announcement, now);
}

LeaseTracker::Seen LeaseTracker::take(Held& held, const Announcement& announcement, TimePoint now) {
    const std::size_t before = held.alive ? bytes_of(held.last) : 0;
    held.refused = (!held.alive && alive_ >= limit_) || !has_place(announcement, before);
    if (held.refused) return refuse();
    if (bytes_of(announcement) < before) full_ = false;
    bytes_ += bytes_of(announcement) - before;
    Seen seen = says_the_same(held.last, announcement) ? Seen::alive : Seen::changed;
    if (!std::exchange(held.alive, true)) {
        ++alive_;
        seen = Seen::found;
    }
    held.last = announcement;
    held.moved = now;
    return seen;
}

bool LeaseTracker::keep(std::string_view name, TimePoint now) {
    const auto known = held_.find(name);
    if (known != held_.end() && known->second.contested) return false;
    if (known != held_.end()) known->second.moved = now;
    const bool refused = known == held_.end() || known->second.refused;
    return !refused || full_;
}

bool LeaseTracker::withdrawn(std::string_view name) {
    const auto known = held_.find(name);
    if (known == held_.end()) return false;
    const bool was_there = known->second.alive;
    if (was_there) {
        full_ = false;
        --alive_;
        bytes_ -= bytes_of(known->second.last);
    }
    held_.erase(known);
    return was_there;
}

std::vector<std::string> LeaseTracker::expire(TimePoint now) {
    std::vector<std::string> gone;
    for (auto& [name, held] : held_) {
        if (!held.alive || now < end_of(held)) continue;
        held.alive = false;
        full_ = false;
        --alive_;
        bytes_ -= bytes_of(held.last);
        gone.push_back(name);
        // All that is needed to know it again.
        held.last = {.name = name, .instance = held.last.instance, .counter = held.last.counter};
    }
    return gone;
}

void LeaseTracker::excuse_all(TimePoint now) {
    for (auto& [name, held] : held_)
        held.moved = now;
}

TimePoint LeaseTracker::next_expiry() const {
    TimePoint next = TimePoint::max();
    for (const auto& [name, held] : held_)
        if (held.alive) next = std::min(next, end_of(held));
    return next;
}

} // namespace netio::pubsub::inline v0_2
