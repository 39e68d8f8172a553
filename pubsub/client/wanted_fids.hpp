// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which fids have a subscriber at the moment, and how many subscribers there are: written by the
// client's thread as its publish socket reports it, read and waited for by any thread.

#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_range_map.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <variant>

namespace netio::pubsub::inline v0_2 {

class WantedFids {
  public:
    // A subscriber may report a range that it has already, or one that it does not have.
    void subscribe(SubscriberId subscriber, const FidRange& range) {
        const std::lock_guard lock{mutex_};
        Fids& own = by_subscriber_[subscriber];
        for (const FidRange& fresh : own.absent(range)) {
            own.assign(fresh, {});
            const auto others = counts_.pieces(fresh);
            for (const FidRange& unwanted : counts_.absent(fresh))
                counts_.assign(unwanted, 1);
            for (const auto& piece : others)
                counts_.assign(piece.range, piece.value + 1);
        }
        changed_.notify_all();
    }
    void unsubscribe(SubscriberId subscriber, const FidRange& range) {
        const std::lock_guard lock{mutex_};
        const auto found = by_subscriber_.find(subscriber);
        if (found == by_subscriber_.end()) return;
        for (const auto& had : found->second.pieces(range)) {
            for (const auto& piece : counts_.pieces(had.range)) {
                if (piece.value == 1) {
                    counts_.erase(piece.range);
                } else {
                    counts_.assign(piece.range, piece.value - 1);
                }
            }
        }
        found->second.erase(range);
        if (found->second.empty()) by_subscriber_.erase(found);
    }
    // No more subscribers come: waiting ends.
    void end() {
        const std::lock_guard lock{mutex_};
        ended_ = true;
        changed_.notify_all();
    }

    bool has(Fid fid) const {
        const std::lock_guard lock{mutex_};
        return counts_.find(fid) != nullptr;
    }
    // How many subscribers have at least one subscription.
    std::size_t subscribers() const {
        const std::lock_guard lock{mutex_};
        return by_subscriber_.size();
    }
    // Until so many subscribers have at least one subscription. False: the time is over, or end().
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const {
        std::unique_lock lock{mutex_};
        const auto enough = [&] { return by_subscriber_.size() >= count; };
        changed_.wait_for(lock, timeout, [&] { return enough() || ended_; });
        return enough() && !ended_;
    }

  private:
    using Fids = FidRangeMap<std::monostate>;

    mutable std::mutex mutex_; // of what follows
    mutable std::condition_variable changed_;
    std::unordered_map<SubscriberId, Fids> by_subscriber_; // those that have any
    FidRangeMap<std::uint32_t> counts_;                    // of subscribers, where there are any
    bool ended_ = false;
};

} // namespace netio::pubsub::inline v0_2
