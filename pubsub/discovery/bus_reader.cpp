// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/bus_reader.hpp"

#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_2 {

void BusNews::add(BusNews&& later) {
    for (auto& [name, announcement] : later.publishers)
        publishers.insert_or_assign(name, std::move(announcement));
    caught_up = caught_up || later.caught_up;
    if (troubles.size() + later.troubles.size() > Complaints::limit) return;
    troubles.insert(troubles.end(), std::make_move_iterator(later.troubles.begin()),
                    std::make_move_iterator(later.troubles.end()));
}

void BusReader::look(Board& board, TimePoint now) {
    now_ = now;
    try {
        board.look(*this);
    } catch (const BoardError& error) {
        complain(std::string{error.what()} +
                 (was_read_ ? "; who was there is taken to be there still" : ""));
        tracker_.excuse_all(now);
        return;
    }
    if (!std::exchange(was_read_, true)) news_.caught_up = true;
    for (const std::string& name : tracker_.expire(now))
        news_.publishers.insert_or_assign(name, std::nullopt);
}

BusNews BusReader::take_news() {
    return std::exchange(news_, {});
}

void BusReader::on_text(const std::string& name, const std::string& text) {
    Announcement announcement;
    try {
        announcement = parse_announcement(text);
        if (announcement.name != name)
            throw AnnouncementError{"name: it is '" + announcement.name + "'"};
    } catch (const AnnouncementError& error) {
        return complain("the announcement '" + name + "' is passed over: " + error.what());
    }
    switch (tracker_.saw(announcement, now_)) {
    case LeaseTracker::Seen::found:
    case LeaseTracker::Seen::changed:
        news_.publishers.insert_or_assign(name, std::move(announcement));
        break;
    case LeaseTracker::Seen::contested:
        complain("two publishers have the name '" + name + "'; one is on host '" +
                 announcement.host + "', process " + std::to_string(announcement.pid) +
                 ", and is passed over");
        break;
    case LeaseTracker::Seen::refused:
        complain("more than " + std::to_string(publisher_limit_) +
                 " publishers, or more is said of them than is kept: the others are passed over");
        break;
    case LeaseTracker::Seen::alive:
    case LeaseTracker::Seen::stale:
        break;
    }
}

bool BusReader::on_kept(const std::string& name) {
    return tracker_.keep(name, now_);
}

void BusReader::on_removed(const std::string& name) {
    if (tracker_.withdrawn(name)) news_.publishers.insert_or_assign(name, std::nullopt);
}

void BusReader::on_unreadable(const std::string& what) {
    complain(what);
}

void BusReader::complain(const std::string& trouble) {
    if (auto line = complaints_.about(trouble, now_)) news_.troubles.push_back(std::move(*line));
}

} // namespace netio::pubsub::inline v0_2
