// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts the messages that have arrived from one publisher address over any number of connections,
// and those that are known to be lost. No I/O.

#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/publisher_change.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace netio::pubsub::inline v0_3 {

class Account {
  public:
    struct Row {
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
        std::uint64_t lost = 0;    // dropped, between connections, or missing in the totals
        std::uint64_t surplus = 0; // arrived beyond the totals of the publisher
        Row& operator+=(const Row& other) noexcept {
            messages += other.messages;
            bytes += other.bytes;
            lost += other.lost;
            surplus += other.surplus;
            return *this;
        }
    };
    // A row for each fid up to a limit, and one row for all others, so that a publisher that sends
    // new fids all the time cannot exhaust the memory.
    struct Rows {
        FidMap<Row> fids;
        Row others;
        Row& of(Fid fid, std::size_t limit) {
            if (Row* const known = fids.find(fid)) return *known;
            return fids.size() < limit ? fids[fid] : others;
        }
    };

    void limit_fids(std::size_t limit) noexcept { fid_limit_ = limit; }

    // Call it when the connection has ended, after its last message. Does nothing after a failed
    // attempt.
    void end_connection(const ArrivalCounter& arrivals) {
        if (!std::exchange(connected_, false)) return;
        arrivals.fids().for_each(
            [&](Fid fid, const Arrivals& arrived) { take(arrivals, fid, arrived); });
    }
    // Call it when the range was unsubscribed, before `arrivals` forgets it.
    void end_subscription(const FidRange& range, const ArrivalCounter& arrivals) {
        arrivals.fids().for_each_in(
            range, [&](Fid fid, const Arrivals& arrived) { take(arrivals, fid, arrived); });
    }
    void begin_connection() noexcept {
        connected_ = true;
        ++connections_;
    }
    void add_lost(Fid fid, std::uint64_t count) {
        rows_.of(fid, fid_limit_).lost += count;
        found_missing_ += count;
    }
    void add_change(const PublisherChange& change) noexcept {
        ++changes_;
        if (!change.tail_known) ++unknown_tails_;
    }

    // Including the current connection.
    FidMap<Row> fids(const ArrivalCounter& current) const {
        FidMap<Row> all = rows_.fids;
        if (!connected_) return all;
        current.fids().for_each(
            [&](Fid fid, const Arrivals& arrived) { add_to(all[fid], current, fid, arrived); });
        return all;
    }
    // Without the current connection and its subscriptions.
    const FidMap<Row>& fids() const noexcept { return rows_.fids; }
    const Row& others() const noexcept { return rows_.others; }
    bool is_connected() const noexcept { return connected_; } // then fids() lacks this connection
    // Lost messages that no gap reported: between connections, or missing in the totals.
    std::uint64_t found_missing() const noexcept { return found_missing_; }
    std::uint64_t connections() const noexcept { return connections_; }
    std::uint64_t changes() const noexcept { return changes_; } // of the publish socket there
    // Publish sockets that ended without totals and were replaced by another one.
    std::uint64_t unknown_tails() const noexcept { return unknown_tails_; }

  private:
    void take(const ArrivalCounter& arrivals, Fid fid, const Arrivals& arrived) {
        add_to(rows_.of(fid, fid_limit_), arrivals, fid, arrived);
        if (const auto compared = arrivals.difference(fid))
            found_missing_ += compared->lost - arrivals.dropped(fid);
    }
    static void add_to(Row& row, const ArrivalCounter& arrivals, Fid fid, const Arrivals& arrived) {
        row.messages += arrived.messages;
        row.bytes += arrived.bytes;
        const auto compared = arrivals.difference(fid);
        row.lost += compared ? compared->lost : arrivals.dropped(fid);
        row.surplus += compared ? compared->surplus : 0;
    }

    Rows rows_;
    std::size_t fid_limit_ = SIZE_MAX;
    std::uint64_t found_missing_ = 0;
    std::uint64_t connections_ = 0;
    std::uint64_t changes_ = 0;
    std::uint64_t unknown_tails_ = 0;
    bool connected_ = false;
};

} // namespace netio::pubsub::inline v0_3
