// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/frame_receiver.hpp"

#include <utility>

namespace netio::pubsub::inline v0_3 {

std::optional<PublisherChange> ResumeState::meet(std::uint64_t instance) {
    stage_ = Stage::met;
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

std::uint64_t ResumeState::take(const FidCount& position) {
    std::uint64_t& reached = positions_[position.fid];
    const bool missing = covered_.find(position.fid) != nullptr && position.count > reached;
    const std::uint64_t missed = missing ? position.count - reached : 0;
    reached = position.count;
    return missed;
}

// Without positions, the number of messages published since an earlier connection is not known, so
// the range keeps that connection.
void ResumeState::begin(const FidRange& range) {
    if (stage_ == Stage::met) return covered_.assign(range, connection_);
    for (const FidRange& absent : covered_.absent(range))
        covered_.assign(absent, connection_);
}

void ResumeState::forget(const FidRange& range) {
    covered_.erase(range);
    positions_.erase(range);
}

void ResumeState::forget_tails(const FidRange& range) {
    if (stage_ == Stage::closed) return forget(range);
    for (const auto& piece : covered_.pieces(range))
        if (piece.value != connection_) forget(piece.range);
}

void ResumeState::end_connection(const ArrivalCounter& arrivals, bool in_order) {
    if (std::exchange(stage_, Stage::closed) == Stage::closed) return;
    ended_ = arrivals.complete() && !is_behind();
    in_order_ = in_order;
    arrivals.fids().for_each([&](Fid fid, const Arrivals& arrived) {
        positions_[fid] += arrived.messages + arrivals.missed(fid);
    });
}

bool ResumeState::has_open_tail() const {
    if (ended_) return false;
    return is_behind() || (stage_ == Stage::closed && !in_order_ && !covered_.empty());
}

bool ResumeState::is_behind() const {
    bool behind = false;
    covered_.for_each([&](const FidRange&, std::uint64_t connection) {
        behind = behind || connection != connection_;
    });
    return behind;
}

} // namespace netio::pubsub::inline v0_3
