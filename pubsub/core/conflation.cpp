// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/conflation.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

std::size_t cost_of(std::size_t message_bytes) noexcept {
    return message_bytes + ConflationStore::overhead_bytes;
}

void fill(ConflationStore::Message& message, Fid fid, MessageParts parts, std::uint8_t status) {
    message.fid = fid;
    message.status = status;
    message.bytes.resize(size_of(parts));
    copy_parts(parts, 0, message.bytes);
}

} // namespace

std::span<const Fid> ConflationStore::put(Fid fid, MessageParts parts, std::uint8_t status,
                                          StampFormat stamps) {
    dropped_now_.clear();
    const std::size_t cost = cost_of(size_of(parts));
    if (Kept::iterator* const before = places_.find(fid)) drop(*before);
    if (cost > limit_) {
        note_dropped(fid);
        return dropped_now_;
    }
    while (bytes_ + cost > limit_)
        drop(kept_.begin());
    fill(kept_.emplace_back(), fid, parts, status);
    kept_.back().stamps = stamps;
    places_[fid] = std::prev(kept_.end());
    bytes_ += cost;
    return dropped_now_;
}

ConflationStore::Older ConflationStore::put_older(Fid fid, MessageParts parts,
                                                  std::uint8_t status) {
    if (places_.find(fid) != nullptr || dropped_.find(fid) != nullptr) return Older::not_last;
    const std::size_t cost = cost_of(size_of(parts));
    if (bytes_ + cost > limit_) {
        ++dropped_[fid];
        return Older::dropped;
    }
    fill(kept_.emplace_front(), fid, parts, status);
    places_[fid] = kept_.begin();
    bytes_ += cost;
    return Older::kept;
}

std::vector<FidCount> ConflationStore::take_dropped() {
    std::vector<FidCount> counts;
    counts.reserve(dropped_.size());
    dropped_.for_each(
        [&](Fid fid, std::uint64_t count) { counts.push_back({.fid = fid, .count = count}); });
    std::ranges::sort(counts, {}, &FidCount::fid);
    dropped_.clear();
    return counts;
}

void ConflationStore::pop_front() {
    bytes_ -= cost_of(kept_.front().bytes.size());
    places_.erase(kept_.front().fid);
    kept_.pop_front();
}

ConflationStore::Forgotten ConflationStore::forget(std::span<const FidRange> set) {
    dropped_now_.clear();
    std::size_t steps = 0;
    std::vector<Kept::iterator> unwanted;
    visit_within(places_, set, steps, [&](Fid, Kept::iterator at) { unwanted.push_back(at); });
    for (const Kept::iterator at : unwanted)
        drop(at);
    std::vector<FidCount> gone;
    visit_within(dropped_, set, steps, [&](Fid fid, std::uint64_t count) {
        gone.push_back({.fid = fid, .count = count});
    });
    for (const FidCount& each : gone)
        dropped_.erase(each.fid);
    std::ranges::sort(gone, {}, &FidCount::fid);
    return {.dropped = std::move(gone), .dropped_now = std::exchange(dropped_now_, {})};
}

void ConflationStore::drop(Kept::iterator message) {
    const Fid fid = message->fid;
    bytes_ -= cost_of(message->bytes.size());
    places_.erase(fid);
    kept_.erase(message);
    note_dropped(fid);
}

void ConflationStore::note_dropped(Fid fid) {
    ++dropped_[fid];
    dropped_now_.push_back(fid);
}

// --- ConflationTable ------------------------------------------------------------------------

ConflationStore::Forgotten ConflationTable::note(SubscriberId subscriber,
                                                 std::span<const FidRange> set,
                                                 std::optional<SlowPolicy> policy) {
    const bool newest = policy == SlowPolicy::newest;
    auto found = entries_.find(subscriber);
    if (found == entries_.end()) {
        if (!newest) return {};
        found = entries_.emplace(subscriber, Entry{.since = {}, .store = ConflationStore{limit_}})
                    .first;
    }
    Entry& entry = found->second;
    ++entry.requests;
    if (newest) {
        for (const FidRange& range : set) {
            for (const FidRange& part : entry.since.absent(range))
                entry.since.assign(part, entry.requests);
        }
        if (entry.since.size() > pieces_limit_) renew(entry);
        return {};
    }
    for (const FidRange& range : set)
        entry.since.erase(range);
    return entry.store.forget(set);
}

// Adjacent ranges of different requests are pieces of their own, in any number. Treats all of them
// as requested now, so that there are only as many as the subscriber has ranges.
void ConflationTable::renew(Entry& entry) {
    FidRangeMap<std::uint32_t> renewed;
    entry.since.for_each(
        [&](const FidRange& range, std::uint32_t) { renewed.assign(range, entry.requests); });
    entry.since = std::move(renewed);
}

std::uint32_t ConflationTable::requests(SubscriberId subscriber) const noexcept {
    const auto found = entries_.find(subscriber);
    return found == entries_.end() ? 0 : found->second.requests;
}

ConflationStore* ConflationTable::store_of(SubscriberId subscriber, Fid fid,
                                           std::uint32_t requests) {
    const auto found = entries_.find(subscriber);
    if (found == entries_.end()) return nullptr;
    const std::uint32_t* const since = found->second.since.find(fid);
    return since != nullptr && requests >= *since ? &found->second.store : nullptr;
}

ConflationStore* ConflationTable::store_of(SubscriberId subscriber) {
    const auto found = entries_.find(subscriber);
    return found == entries_.end() ? nullptr : &found->second.store;
}

bool ConflationTable::keeps(SubscriberId subscriber) const noexcept {
    const auto found = entries_.find(subscriber);
    return found != entries_.end() && !found->second.store.empty();
}

} // namespace netio::pubsub::inline v0_3
