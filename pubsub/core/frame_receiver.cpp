// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/frame_receiver.hpp"

#include "netio/base/check.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_3 {

void SubscriptionState::subscribe(std::span<const FidRange> ranges, Policy policy) {
    if (ranges_per_request_ > 0) return ask(true, ranges, policy);
    for (const FidRange& range : ranges)
        wanted_.assign(range, {.policy = policy, .request = 0});
}

void SubscriptionState::unsubscribe(const FidRange& range) {
    if (ranges_per_request_ > 0) return ask(false, {&range, 1}, {});
    wanted_.erase(range);
}

void SubscriptionState::ask(bool subscribe, std::span<const FidRange> ranges, Policy policy) {
    if (!subscribe || supplied_ == nullptr || supplied_->empty())
        return ask_for(subscribe, ranges, policy, false);
    std::vector<FidRange> supplied;
    std::vector<FidRange> others;
    for (const FidRange& range : ranges) {
        for (const auto& piece : supplied_->pieces(range))
            supplied.push_back(piece.range);
        std::ranges::copy(supplied_->absent(range), std::back_inserter(others));
    }
    ask_for(subscribe, others, policy, false);
    ask_for(subscribe, supplied, policy, true);
}

void SubscriptionState::ask_for(bool subscribe, std::span<const FidRange> ranges, Policy policy,
                                bool supplied) {
    while (!ranges.empty()) {
        const auto part = ranges.first(std::min(ranges_per_request_, ranges.size()));
        ranges = ranges.subspan(part.size());
        Pending pending{.request = {.number = ++last_request_,
                                    .subscribe = subscribe,
                                    .policy = policy,
                                    .supplied = supplied,
                                    .ranges = {part.begin(), part.end()}},
                        .before = {}};
        for (const FidRange& range : part) {
            std::ranges::move(look_at(wanted_, range), std::back_inserter(pending.before));
            if (subscribe) {
                wanted_.assign(range, {.policy = policy, .request = pending.request.number});
            } else {
                wanted_.erase(range);
            }
        }
        unsent_.push_back(std::move(pending));
    }
}

void SubscriptionState::begin(std::size_t ranges_per_request) {
    NETIO_CHECK(ranges_per_request > 0);
    end();
    ranges_per_request_ = ranges_per_request;
    std::map<Policy, std::vector<FidRange>> by_policy;
    steps_ += wanted_.size();
    wanted_.for_each(
        [&](const FidRange& range, const Wish& wish) { by_policy[wish.policy].push_back(range); });
    for (const auto& [policy, ranges] : by_policy)
        ask(true, normalised(ranges), policy);
    for (Pending& pending : unsent_)
        pending.before.clear(); // this connection has granted nothing yet
}

void SubscriptionState::end() {
    granted_.clear();
    unsent_.clear();
    asked_.clear();
    ranges_per_request_ = 0;
}

void SubscriptionState::sent() {
    const std::uint32_t number = unsent_.front().request.number;
    asked_.emplace(number, std::move(unsent_.front()));
    unsent_.pop_front();
}

std::optional<SubscriptionState::Request>
SubscriptionState::answered(const SubscriptionAnswer& answer) {
    auto node = asked_.extract(answer.request);
    if (node.empty()) return std::nullopt;
    Pending& pending = node.mapped();
    if (answer.result == SubscriptionResult::not_permitted && pending.request.ranges.size() > 1) {
        ask_one_by_one(pending);
        pending.request.ranges.clear();
        return std::move(pending.request);
    }
    if (answer.result != SubscriptionResult::accepted) {
        refuse(pending);
        return std::move(pending.request);
    }
    for (const FidRange& range : pending.request.ranges) {
        if (pending.request.subscribe) {
            granted_.assign(range, {});
            continue;
        }
        granted_.erase(range);
        // An earlier unsubscribe request for it may have been refused in the meantime.
        for (const Wishes::Piece& piece : look_at(wanted_, range))
            if (piece.value.request < pending.request.number) wanted_.erase(piece.range);
    }
    settle(pending.request);
    return std::move(pending.request);
}

// Clears the request number of wishes that have their final answer, so that they merge with their
// neighbours. Not while an earlier request is outstanding: its answer could not be distinguished
// from one to a later wish.
void SubscriptionState::settle(const Request& request) {
    if (!request.subscribe) return;
    if (!asked_.empty() && asked_.begin()->first < request.number) return;
    for (const FidRange& range : request.ranges) {
        for (const Wishes::Piece& piece : look_at(wanted_, range)) {
            if (piece.value.request == request.number)
                wanted_.assign(piece.range, {.policy = piece.value.policy, .request = 0});
        }
    }
}

const SubscriptionState::Request* SubscriptionState::awaited(std::uint32_t number) const {
    const auto found = asked_.find(number);
    if (found == asked_.end() || !found->second.request.subscribe) return nullptr;
    return &found->second.request;
}

// Restores the wishes before the request for the fids that are still granted. Later requests for
// the same fids remain in effect.
void SubscriptionState::refuse(const Pending& pending) {
    FidRangeMap<std::monostate> open; // the fids for which the request was the last one
    for (const FidRange& range : pending.request.ranges) {
        if (!pending.request.subscribe) {
            for (const FidRange& absent : wanted_.absent(range))
                open.assign(absent, {});
            continue;
        }
        for (const Wishes::Piece& piece : look_at(wanted_, range)) {
            if (piece.value.request != pending.request.number) continue;
            wanted_.erase(piece.range);
            open.assign(piece.range, {});
        }
    }
    for (const Wishes::Piece& former : pending.before)
        for (const auto& part : look_at(open, former.range))
            for (const auto& granted : look_at(granted_, part.range))
                wanted_.assign(granted.range, former.value);
}

void SubscriptionState::ask_one_by_one(const Pending& pending) {
    std::vector<FidRange> open; // the fids without a later request
    for (const FidRange& range : pending.request.ranges) {
        for (const Wishes::Piece& piece : look_at(wanted_, range))
            if (piece.value.request == pending.request.number) open.push_back(piece.range);
    }
    refuse(pending);
    for (const FidRange& range : open)
        ask(pending.request.subscribe, {&range, 1}, pending.request.policy);
}

std::vector<FidRange> SubscriptionState::leaving() const {
    std::vector<FidRange> ranges;
    const auto add = [&](const Request& request) {
        if (request.subscribe) return;
        ranges.insert(ranges.end(), request.ranges.begin(), request.ranges.end());
    };
    for (const auto& [number, pending] : asked_)
        add(pending.request);
    for (const Pending& pending : unsent_)
        add(pending.request);
    return normalised(ranges);
}

std::vector<FidRange> SubscriptionState::wanted_in(const FidRange& range) const {
    std::vector<FidRange> ranges;
    for (const Wishes::Piece& piece : wanted_.pieces(range))
        ranges.push_back(piece.range);
    return ranges;
}

std::vector<FidRange> SubscriptionState::awaited_in(const FidRange& range) const {
    const auto is_unsent = [&](std::uint32_t number) {
        return !unsent_.empty() && number >= unsent_.front().request.number;
    };
    std::vector<FidRange> ranges;
    for (const Wishes::Piece& piece : wanted_.pieces(range))
        if (asked_.contains(piece.value.request) || is_unsent(piece.value.request))
            ranges.push_back(piece.range);
    return ranges;
}

std::vector<FidRange> SubscriptionState::wanted() const {
    std::vector<FidRange> ranges;
    wanted_.for_each([&](const FidRange& range, const Wish&) { ranges.push_back(range); });
    return normalised(ranges);
}

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
    const std::uint64_t lost = missing ? position.count - reached : 0;
    reached = position.count;
    return lost;
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
        positions_[fid] += arrived.messages + arrivals.dropped(fid);
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
