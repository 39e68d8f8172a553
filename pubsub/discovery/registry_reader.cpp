// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/registry_reader.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_3 {

namespace {

// The memory that depends on the contents of the announcement.
std::size_t bytes_of(const Announcement& announcement) {
    std::size_t bytes = announcement.fids.size() * sizeof(AnnouncedFids);
    for (const AnnouncedFids& each : announcement.fids)
        bytes += each.meaning.size();
    return bytes;
}

} // namespace

bool LeaseTracker::fits(const Announcement& announcement, std::size_t replaced_bytes) const {
    return bytes_ - replaced_bytes + bytes_of(announcement) <= bytes_limit_;
}

LeaseTracker::Seen LeaseTracker::saw(const Announcement& announcement, TimePoint now) {
    const auto known = held_.find(announcement.name);
    if (known == held_.end()) {
        if (alive_ >= limit_ || !fits(announcement, 0)) return refuse();
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
    held.refused = (!held.alive && alive_ >= limit_) || !fits(announcement, before);
    if (held.refused) return refuse();
    if (bytes_of(announcement) < before) full_ = false;
    bytes_ += bytes_of(announcement) - before;
    Seen seen = have_same_content(held.last, announcement) ? Seen::alive : Seen::changed;
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
        // Keeps only the values that identify it.
        held.last = {.name = name, .instance = held.last.instance, .counter = held.last.counter};
    }
    return gone;
}

void LeaseTracker::renew_all(TimePoint now) {
    for (auto& [name, held] : held_)
        held.moved = now;
}

TimePoint LeaseTracker::next_expiry() const {
    TimePoint next = TimePoint::max();
    for (const auto& [name, held] : held_)
        if (held.alive) next = std::min(next, end_of(held));
    return next;
}

void RegistryChanges::add(RegistryChanges&& later) {
    for (auto& [name, announcement] : later.publishers)
        publishers.insert_or_assign(name, std::move(announcement));
    caught_up = caught_up || later.caught_up;
    for (std::string& trouble : later.troubles) {
        if (troubles.size() >= RateLimitedWarnings::line_limit) break;
        troubles.push_back(std::move(trouble));
    }
}

void RegistryReader::look(Registry& registry, TimePoint now) {
    now_ = now;
    try {
        registry.look(*this);
    } catch (const RegistryError& error) {
        warn(std::string{error.what()} +
             (was_read_ ? "; known publishers are assumed to be there still" : ""));
        tracker_.renew_all(now);
        return;
    }
    if (!std::exchange(was_read_, true)) news_.caught_up = true;
    for (const std::string& name : tracker_.expire(now))
        news_.publishers.insert_or_assign(name, std::nullopt);
}

RegistryChanges RegistryReader::take_news() {
    return std::exchange(news_, {});
}

void RegistryReader::on_text(const std::string& name, const std::string& text) {
    Announcement announcement;
    try {
        announcement = parse_announcement(text);
        if (announcement.name != name)
            throw AnnouncementError{"name: it is '" + announcement.name + "'"};
    } catch (const AnnouncementError& error) {
        return warn("the announcement '" + name + "' is ignored: " + error.what());
    }
    switch (tracker_.saw(announcement, now_)) {
    case LeaseTracker::Seen::found:
    case LeaseTracker::Seen::changed:
        news_.publishers.insert_or_assign(name, std::move(announcement));
        break;
    case LeaseTracker::Seen::contested:
        warn("two publishers have the name '" + name + "'; one is on host '" + announcement.host +
             "', process " + std::to_string(announcement.pid) + ", and is ignored");
        break;
    case LeaseTracker::Seen::refused:
        warn("more than " + std::to_string(publisher_limit_) +
             " publishers, or too much memory for their announcements: the others are ignored");
        break;
    case LeaseTracker::Seen::alive:
    case LeaseTracker::Seen::stale:
        break;
    }
}

bool RegistryReader::on_kept(const std::string& name) {
    return tracker_.keep(name, now_);
}

void RegistryReader::on_removed(const std::string& name) {
    if (tracker_.withdrawn(name)) news_.publishers.insert_or_assign(name, std::nullopt);
}

void RegistryReader::on_unreadable(const std::string& what) {
    warn(what);
}

void RegistryReader::warn(const std::string& trouble) {
    if (auto line = warnings_.line_for(trouble, now_)) news_.troubles.push_back(std::move(*line));
}

} // namespace netio::pubsub::inline v0_3
