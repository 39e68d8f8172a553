// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Subscriptions knows of the publishers on its bus, except their connections: their names
// and identities, which of them may connect, which are to be asked again, and which announcements
// wait.

#include "netio/loop/event_loop.hpp"
#include "pubsub/client/publisher_connection.hpp"
#include "pubsub/core/fid_assignment.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// The names of publishers on the bus, and which two of them are the same publisher: each has one
// connection, whatever names and addresses lead to it.
class DiscoveredPublishers {
  public:
    // The first `configured` publishers have configured addresses. `all` must outlive it.
    DiscoveredPublishers(const PublisherConnections& all, std::size_t configured) noexcept
        : all_{all}, configured_{configured} {}

    PublisherId next_id() noexcept { return PublisherId{++last_id_}; }
    bool is_configured(PublisherId id) const noexcept {
        return static_cast<std::uint64_t>(id) <= configured_;
    }
    bool knows(const PublisherConnection& connection) const {
        return by_name_.count(connection.source().name) > 0;
    }
    PublisherConnection* find(const std::string& name) const; // nullptr: none
    void put(const PublisherConnection& connection) {
        by_name_.emplace(connection.source().name, connection.id());
    }
    void forget(const PublisherConnection& connection) { by_name_.erase(connection.source().name); }

    // Whether one of these addresses is configured.
    bool is_configured(const std::vector<std::string>& addresses) const;
    // The connection at one of its addresses where another process answers than was announced,
    // which may be this publisher. nullptr: none.
    PublisherConnection* answering_for(const PublisherConnection& named) const;
    // The reverse of answering_for(): a publisher that is not asked for anything yet, and that may
    // be the answering one. nullptr: none.
    PublisherConnection* named_for(const PublisherConnection& answering) const;
    // A configured and a found connection to the same publish socket. nullptr: none.
    PublisherConnection* duplicate_of(PublisherConnection& connection) const;
    // Exchanges their names, with all that the bus announced.
    void exchange_names(PublisherConnection& one, PublisherConnection& other);

  private:
    const PublisherConnections& all_;
    std::size_t configured_;
    std::uint64_t last_id_ = 0;
    std::map<std::string, PublisherId> by_name_;
};

// Which publishers may have a connection, up to a limit. Those that get no slot are remembered, and
// get the slots that become free. No I/O.
class ConnectionSlots {
  public:
    explicit ConnectionSlots(std::size_t limit) noexcept : limit_{limit} {}

    bool has_free() const noexcept { return held_.size() < limit_; }
    // Returns true if the publisher has a slot, now or already before; false if it waits for one.
    bool take(PublisherId id) {
        if (held_.count(id) == 0 && !has_free()) {
            waiting_.insert(id);
            return false;
        }
        held_.insert(id);
        waiting_.erase(id);
        return true;
    }
    void release(PublisherId id) { held_.erase(id); }
    // Call it when the publisher needs no slot any more.
    void forget(PublisherId id) {
        release(id);
        waiting_.erase(id);
        if (waiting_.empty()) reported_ = false;
    }
    bool is_waiting(PublisherId id) const { return waiting_.count(id) > 0; }
    // Returns a waiting publisher that the caller must report; at most once, until none waits.
    std::optional<PublisherId> unreported() {
        if (waiting_.empty() || std::exchange(reported_, true)) return {};
        return *waiting_.begin();
    }
    // Returns the next waiting publisher if a slot is free; it does not wait any more. Waiting
    // publishers take turns.
    std::optional<PublisherId> next() {
        if (waiting_.empty() || !has_free()) return {};
        auto next = waiting_.upper_bound(last_);
        if (next == waiting_.end()) next = waiting_.begin();
        last_ = *next;
        waiting_.erase(next);
        if (waiting_.empty()) reported_ = false;
        return last_;
    }

  private:
    std::size_t limit_;
    std::set<PublisherId> held_;
    std::set<PublisherId> waiting_;
    PublisherId last_{}; // the last result of next()
    bool reported_ = false;
};

// Publishers on a bus that have rejected the client permanently, with their announced fids. They
// are asked again after a pause, because a rejected key may be admitted later, and no announcement
// reports that.
class RejectedPublishers {
  public:
    // Asks a publisher again. May destroy this.
    using Ask = std::function<void(PublisherId, const std::vector<FidRange>& fids)>;

    RejectedPublishers(EventLoop& loop, Ask ask)
        : loop_{loop}, ask_{std::move(ask)}, next_{loop, [this] { ask_next(); }} {}

    void put(PublisherId id, std::vector<FidRange> fids, Duration pause) {
        waiting_.insert_or_assign(id, Waiting{.due = loop_.now() + pause, .fids = std::move(fids)});
        next_.start_at(first()->second.due);
    }
    void forget(PublisherId id) { waiting_.erase(id); }
    bool empty() const noexcept { return waiting_.empty(); }

  private:
    struct Waiting {
        TimePoint due;
        std::vector<FidRange> fids;
    };
    using All = std::map<PublisherId, Waiting>;

    All::iterator first() {
        return std::ranges::min_element(waiting_, {},
                                        [](const auto& each) { return each.second.due; });
    }
    void ask_next() {
        if (waiting_.empty()) return;
        const auto next = first();
        if (next->second.due > loop_.now()) return next_.start_at(next->second.due);
        const auto node = waiting_.extract(next);
        if (!waiting_.empty()) next_.start_at(first()->second.due);
        const Ask ask = ask_;
        ask(node.key(), node.mapped().fids);
    }

    EventLoop& loop_;
    Ask ask_;
    All waiting_;
    Timer next_;
};

// The last announcement of each publisher that could not be applied yet. They take turns by their
// names, so that a publisher that changes all the time does not delay the others. Bounded by the
// number of publishers on the bus. No I/O.
class PendingAnnouncements {
  public:
    using News = std::pair<std::string, std::optional<Announcement>>; // nullopt: gone

    void put(const std::string& name, std::optional<Announcement> announcement) {
        last_.insert_or_assign(name, std::move(announcement));
    }
    bool empty() const noexcept { return last_.empty(); }
    // Requires that it is not empty().
    News take() {
        auto next = last_.upper_bound(taken_);
        if (next == last_.end()) next = last_.begin();
        auto node = last_.extract(next);
        taken_ = node.key();
        return {std::move(node.key()), std::move(node.mapped())};
    }

  private:
    std::map<std::string, std::optional<Announcement>> last_;
    std::string taken_; // the last result of take()
};

} // namespace netio::pubsub::inline v0_3
