// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/newest_book.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

NewestStore::Forgotten NewestBook::note(SubscriberId subscriber, std::span<const FidRange> set,
                                        std::optional<SlowPolicy> policy) {
    const bool newest = policy == SlowPolicy::newest;
    auto found = entries_.find(subscriber);
    if (found == entries_.end()) {
        if (!newest) return {};
        found =
            entries_.emplace(subscriber, Entry{.since = {}, .store = NewestStore{limit_}}).first;
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

// Neighbours that were asked for one after another are pieces, however many. All of them are as if
// they had been asked for now: then they are as many as the ranges that are wanted.
void NewestBook::renew(Entry& entry) {
    FidRangeMap<std::uint32_t> renewed;
    entry.since.for_each(
        [&](const FidRange& range, std::uint32_t) { renewed.assign(range, entry.requests); });
    entry.since = std::move(renewed);
}

std::uint32_t NewestBook::requests(SubscriberId subscriber) const noexcept {
    const auto found = entries_.find(subscriber);
    return found == entries_.end() ? 0 : found->second.requests;
}

NewestStore* NewestBook::store_of(SubscriberId subscriber, Fid fid, std::uint32_t requests) {
    const auto found = entries_.find(subscriber);
    if (found == entries_.end()) return nullptr;
    const std::uint32_t* const since = found->second.since.find(fid);
    return since != nullptr && requests >= *since ? &found->second.store : nullptr;
}

NewestStore* NewestBook::store_of(SubscriberId subscriber) {
    const auto found = entries_.find(subscriber);
    return found == entries_.end() ? nullptr : &found->second.store;
}

bool NewestBook::keeps(SubscriberId subscriber) const noexcept {
    const auto found = entries_.find(subscriber);
    return found != entries_.end() && !found->second.store.empty();
}

} // namespace netio::pubsub::inline v0_2
