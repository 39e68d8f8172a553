// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/bus_writer.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

void BusWriter::say(Announcement announcement) {
    announcement.name = announcement_.name;
    announcement.instance = announcement_.instance;
    announcement.counter = announcement_.counter;
    announcement.lease = announcement_.lease;
    announcement_ = std::move(announcement);
    written_ = false;
}

void BusWriter::refresh(Board& board, TimePoint now) {
    try {
        const std::optional<Announcement> there = what_stands(board);
        if (!claim_.may_write(there, board.has_leases(), now)) {
            written_ = false;
            return complain("another publisher announces itself as '" + announcement_.name +
                                "' (host '" + there->host + "', process " +
                                std::to_string(there->pid) +
                                "), so this one is not found; give each a name of its own",
                            now);
        }
        if (written_ && there && board.keep(announcement_.name)) return;
        ++announcement_.counter;
        written_ = false;
        board.put(announcement_.name, to_text(announcement_));
        written_ = true;
    } catch (const BoardError& error) {
        complain(std::string{error.what()} + "; new subscribers may not find this publisher", now);
    }
}

void BusWriter::withdraw(Board& board) {
    try {
        const std::optional<Announcement> there = what_stands(board);
        if (there && there->instance == announcement_.instance) board.remove(announcement_.name);
    } catch (const BoardError& error) { // its lease ends
        return;
    }
}

std::vector<std::string> BusWriter::take_troubles() {
    return std::exchange(troubles_, {});
}

// What cannot be read as an announcement stands in nobody's way.
std::optional<Announcement> BusWriter::what_stands(Board& board) const {
    const std::optional<std::string> text = board.get(announcement_.name);
    if (!text) return {};
    try {
        return parse_announcement(*text);
    } catch (const AnnouncementError&) {
        return {};
    }
}

void BusWriter::complain(const std::string& trouble, TimePoint now) {
    if (auto line = complaints_.about(trouble, now); line && troubles_.size() < Complaints::limit)
        troubles_.push_back(std::move(*line));
}

} // namespace netio::pubsub::inline v0_2
