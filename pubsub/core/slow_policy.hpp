// SPDX-License-Identifier: Apache-2.0
#pragma once

// What happens to a subscriber that does not keep up, and for which fids.

#include "pubsub/core/fid.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Once the subscriber's share of the resources is used.
enum class SlowPolicy : std::uint8_t {
    block,      // publishing to it says `again`: nothing is lost, and it slows its fids down
    drop,       // it misses the newest messages, and is told in order how many of which fid
    disconnect, // as block, and after disconnect_after without progress it is disconnected
};

// Whether the one holds a publisher up longer than the other.
constexpr bool holds_up_more(SlowPolicy one, SlowPolicy other) noexcept {
    const auto patience = [](SlowPolicy policy) {
        return policy == SlowPolicy::drop ? 0 : policy == SlowPolicy::disconnect ? 1 : 2;
    };
    return patience(one) > patience(other);
}

// The policies of a subscriber's fids, where they are not the publisher's own: disjoint ranges of
// fids, each with one. No I/O.
class SlowPolicies {
  public:
    // nullopt: the publisher's own again.
    void set(const FidRange& fids, std::optional<SlowPolicy> policy) {
        if (!policy && ranges_.empty()) return;
        split_at(fids.first);
        if (fids.last != last_fid) split_at(Fid{to_integer(fids.last) + 1});
        auto at = ranges_.lower_bound(fids.first);
        while (at != ranges_.end() && at->first <= fids.last)
            at = ranges_.erase(at);
        if (policy) ranges_[fids.first] = {.last = fids.last, .policy = *policy};
    }

    std::optional<SlowPolicy> find(Fid fid) const {
        const auto after = ranges_.upper_bound(fid);
        if (after == ranges_.begin()) return std::nullopt;
        const Range& range = std::prev(after)->second;
        return fid <= range.last ? std::optional{range.policy} : std::nullopt;
    }

    // The pieces of a range that have this policy.
    std::vector<FidRange> pieces(const FidRange& fids, std::optional<SlowPolicy> policy) const {
        std::vector<FidRange> list;
        Fid next = fids.first;
        for (const auto& [first, range] : ranges_) {
            if (range.last < fids.first || fids.last < first) continue;
            const FidRange part{.first = std::max(first, fids.first),
                                .last = std::min(range.last, fids.last)};
            if (!policy && next < part.first) {
                list.push_back({.first = next, .last = Fid{to_integer(part.first) - 1}});
            }
            if (policy == range.policy) list.push_back(part);
            if (part.last == fids.last) return list;
            next = Fid{to_integer(part.last) + 1};
        }
        if (!policy) list.push_back({.first = next, .last = fids.last});
        return list;
    }

    std::size_t size() const noexcept { return ranges_.size(); }
    bool empty() const noexcept { return ranges_.empty(); }

  private:
    static constexpr Fid last_fid{UINT64_MAX};
    struct Range {
        Fid last{};
        SlowPolicy policy{};
    };
    // A range that goes over this fid becomes two.
    void split_at(Fid fid) {
        auto at = ranges_.lower_bound(fid);
        if (at == ranges_.begin()) return;
        --at;
        if (at->second.last < fid) return;
        ranges_[fid] = at->second;
        at->second.last = Fid{to_integer(fid) - 1};
    }

    std::map<Fid, Range> ranges_; // by the first fid
};

} // namespace netio::pubsub::inline v0_2
