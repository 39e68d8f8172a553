// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/publisher_history.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_3 {

namespace {

void add(Subscriptions::PublisherStats& sum, const Subscriptions::PublisherStats& stats,
         std::size_t fid_limit) {
    Account::Rows rows{.fids = std::move(sum.fids), .others = sum.others};
    stats.fids.for_each([&](Fid fid, const Account::Row& row) { rows.of(fid, fid_limit) += row; });
    rows.others += stats.others;
    sum.fids = std::move(rows.fids);
    sum.others = rows.others;
    sum.connections += stats.connections;
    sum.changes += stats.changes;
    sum.unknown_tails += stats.unknown_tails;
    if (!stats.provider.empty()) sum.provider = stats.provider;
    merge(sum.seen, stats.seen);
}

void add(RemotePublisherSnapshot& sum, const RemotePublisherSnapshot& each) {
    sum.messages += each.messages;
    sum.bytes += each.bytes;
    sum.lost += each.lost;
    sum.connections += each.connections;
    sum.pauses += each.pauses;
}

} // namespace

void PublisherHistory::keep(std::unique_ptr<PublisherConnection> connection) {
    if (!connection->was_connected()) return;
    connection->leave();
    fids_ += connection->known_fids();
    departed_.push_back(std::move(connection));
    while (!departed_.empty() && (departed_.size() > limits_.publishers || fids_ > limits_.fids))
        forget_oldest();
}

void PublisherHistory::forget_oldest() {
    const std::unique_ptr<PublisherConnection> oldest = std::move(departed_.front());
    departed_.erase(departed_.begin());
    fids_ -= oldest->known_fids();
    add(forgotten_, oldest->publisher_stats(), limits_.forgotten_fids);
    add(forgotten_sums_, oldest->snapshot());
}

std::unique_ptr<PublisherConnection> PublisherHistory::take(const std::string& name) {
    const auto found = std::ranges::find_if(
        departed_, [&](const auto& each) { return each->source().name == name; });
    if (found == departed_.end()) return nullptr;
    std::unique_ptr<PublisherConnection> connection = std::move(*found);
    departed_.erase(found);
    fids_ -= connection->known_fids();
    return connection;
}

void PublisherHistory::forget(const FidRange& range) {
    for (const auto& connection : departed_) {
        fids_ -= connection->known_fids();
        connection->forget(range);
        fids_ += connection->known_fids();
    }
}

std::vector<Subscriptions::PublisherStats> PublisherHistory::publisher_stats() const {
    std::vector<Subscriptions::PublisherStats> all;
    for (const auto& [id, connection] : current_)
        all.push_back(connection->publisher_stats());
    for (const auto& connection : departed_)
        all.push_back(connection->publisher_stats());
    if (forgotten_.connections > 0) all.push_back(forgotten_);
    return all;
}

Subscriptions::Sums PublisherHistory::sums() const {
    RemotePublisherSnapshot all = forgotten_sums_;
    for (const auto& [id, connection] : current_)
        add(all, connection->snapshot());
    for (const auto& connection : departed_)
        add(all, connection->snapshot());
    return {.messages = all.messages, .bytes = all.bytes};
}

SubscriptionsSnapshot PublisherHistory::snapshot(std::size_t fids) {
    SubscriptionsSnapshot snapshot;
    shown_.begin_listing(fids);
    for (const auto& [id, connection] : current_)
        connection->add_to(snapshot, shown_);
    for (const auto& connection : departed_)
        connection->add_to(snapshot, shown_);
    if (forgotten_.connections > 0) {
        snapshot.publishers.push_back(forgotten_sums_);
        snapshot.fid_count += forgotten_.fids.size();
        shown_.add(forgotten_.fids, add_row);
    }
    snapshot.fids = shown_.rows();
    // If not all fids are shown, those of several publishers are counted several times.
    snapshot.fid_count = shown_.is_full() ? std::max(snapshot.fid_count, snapshot.fids.size())
                                          : snapshot.fids.size();
    return snapshot;
}

} // namespace netio::pubsub::inline v0_3
