// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/continuity.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

std::optional<PublisherChange> Continuity::meet(std::uint64_t instance) {
    if (instance == instance_) return std::nullopt;
    const PublisherChange change{.former = instance_, .now = instance, .tail_known = ended_};
    const bool is_first = instance_ == 0;
    instance_ = instance;
    ended_ = false;
    covered_.clear();
    positions_.clear();
    if (is_first) return std::nullopt;
    return change;
}

std::uint64_t Continuity::take(const FidCount& position) {
    std::uint64_t& reached = positions_[position.fid];
    const bool missing = covered_.find(position.fid) != nullptr && position.count > reached;
    const std::uint64_t missed = missing ? position.count - reached : 0;
    reached = position.count;
    return missed;
}

void Continuity::forget(const FidRange& range) {
    covered_.erase(range);
    positions_.erase(range);
}

void Continuity::end_connection(const ArrivalCounter& arrivals) {
    if (!std::exchange(open_, false)) return;
    ended_ = arrivals.complete();
    covered_.for_each([this](const FidRange&, std::uint64_t connection) {
        ended_ = ended_ && connection == connection_;
    });
    arrivals.fids().for_each([&](Fid fid, const Arrivals& arrived) {
        positions_[fid] += arrived.messages + arrivals.missed(fid);
    });
}

} // namespace netio::pubsub::inline v0_2
