// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one publisher address has brought over any number of connections, and what is known to be
// missing. No I/O.

#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/publisher_change.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace netio::pubsub::inline v0_2 {

class Account {
  public:
    struct Row {
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
        std::uint64_t lost = 0;    // told missing: gaps, between connections, by totals
        std::uint64_t surplus = 0; // arrived beyond what the publisher says it sent
        Row& operator+=(const Row& other) noexcept {
            messages += other.messages;
            bytes += other.bytes;
            lost += other.lost;
            surplus += other.surplus;
            return *this;
        }
    };
    // A row for each of so many fids, and one for all others: who publishes new ones in each
    // connection does not decide how many are remembered.
    struct Rows {
        FidMap<Row> fids;
        Row others;
        Row& of(Fid fid, std::size_t limit) {
            if (Row* const known = fids.find(fid)) return *known;
            return fids.size() < limit ? fids[fid] : others;
        }
    };

    void limit_fids(std::size_t limit) noexcept { fid_limit_ = limit; }

    // A connection has ended, behind what had arrived.
    // Nothing, if there was only an attempt at one.
    void end_connection(const ArrivalCounter& arrivals) {
        if (!std::exchange(connected_, false)) return;
        arrivals.fids().for_each(
            [&](Fid fid, const Arrivals& arrived) { take(arrivals, fid, arrived); });
    }
    // The arrivals are about to forget these, which were unsubscribed.
    void end_subscription(const FidRange& range, const ArrivalCounter& arrivals) {
        arrivals.fids().for_each_in(
            range, [&](Fid fid, const Arrivals& arrived) { take(arrivals, fid, arrived); });
    }
    void begin_connection() noexcept {
        connected_ = true;
        ++connections_;
    }
    void add_missed(Fid fid, std::uint64_t count) {
        rows_.of(fid, fid_limit_).lost += count;
        found_missing_ += count;
    }
    void add_change(const PublisherChange& change) noexcept {
        ++changes_;
        if (!change.tail_known) ++unknown_tails_;
    }

    // With what has arrived in the connection that there is.
    FidMap<Row> fids(const ArrivalCounter& current) const {
        FidMap<Row> all = rows_.fids;
        if (!connected_) return all;
        current.fids().for_each(
            [&](Fid fid, const Arrivals& arrived) { add_to(all[fid], current, fid, arrived); });
        return all;
    }
    // Of the connections and subscriptions that have ended.
    const FidMap<Row>& fids() const noexcept { return rows_.fids; }
    const Row& others() const noexcept { return rows_.others; }
    bool is_connected() const noexcept { return connected_; } // there is more than fids()
    // Of what was lost, what no gap has told: between connections, and by totals.
    std::uint64_t found_missing() const noexcept { return found_missing_; }
    std::uint64_t connections() const noexcept { return connections_; }
    std::uint64_t changes() const noexcept { return changes_; } // of the publish socket there
    // Publish sockets that ended and had not told how much they had published, where another one
    // has answered since.
    std::uint64_t unknown_tails() const noexcept { return unknown_tails_; }

  private:
    void take(const ArrivalCounter& arrivals, Fid fid, const Arrivals& arrived) {
        add_to(rows_.of(fid, fid_limit_), arrivals, fid, arrived);
        if (const auto books = arrivals.books(fid))
            found_missing_ += books->lost - arrivals.missed(fid);
    }
    static void add_to(Row& row, const ArrivalCounter& arrivals, Fid fid, const Arrivals& arrived) {
        row.messages += arrived.messages;
        row.bytes += arrived.bytes;
        const auto books = arrivals.books(fid);
        row.lost += books ? books->lost : arrivals.missed(fid);
        row.surplus += books ? books->surplus : 0;
    }

    Rows rows_;
    std::size_t fid_limit_ = SIZE_MAX;
    std::uint64_t found_missing_ = 0;
    std::uint64_t connections_ = 0;
    std::uint64_t changes_ = 0;
    std::uint64_t unknown_tails_ = 0;
    bool connected_ = false;
};

} // namespace netio::pubsub::inline v0_2
