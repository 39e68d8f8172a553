// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who wants which fid. The space of fids is cut into segments; each belongs to one group, the set
// of subscribers that want all of its fids, each with its policy. Equal sets are one group, so that
// what is sent to a group can be shared. No I/O.
//
// Costs: find is a binary search among the segments; add and remove touch the segments within the
// range. There are at most two segment borders for each range that some subscriber has asked for.

#include "pubsub/core/fid.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// A subscriber that wants fids under one policy. It may want others under another.
struct Interest {
    SubscriberId subscriber{};
    SlowPolicy policy = SlowPolicy::block;

    friend auto operator<=>(const Interest&, const Interest&) = default;
};

// A set of interests; valid as long as the table does not change. 0 is the empty set.
enum class GroupId : std::uint32_t {};
inline constexpr GroupId nobody{0};

class SubscriptionTable {
  public:
    explicit SubscriptionTable(std::size_t ranges_per_subscriber_limit);

    // Adds a range to what a subscriber wants. The parts that it did not want before are appended
    // to `added`. False: the subscriber has as many ranges as the limit allows; nothing was
    // changed.
    [[nodiscard]] bool add(Interest subscriber, const FidRange& range,
                           std::vector<FidRange>& added);
    // Takes a range away from what a subscriber wants; what it really had is appended to `removed`.
    // False: as above (taking out the middle of a range makes two).
    [[nodiscard]] bool remove(Interest subscriber, const FidRange& range,
                              std::vector<FidRange>& removed);
    // What it had.
    std::vector<FidRange> remove_subscriber(Interest subscriber);

    GroupId find(Fid fid) const;
    // In ascending order.
    std::span<const Interest> members(GroupId group) const {
        return groups_[index(group)].subscribers;
    }
    bool wants(Interest subscriber, Fid fid) const;
    std::size_t range_count(Interest subscriber) const;
    bool wants_anything(Interest subscriber) const { return ranges_.contains(subscriber); }

    // Changes whenever the answer of find may have changed; never 0.
    std::uint64_t generation() const noexcept { return generation_; }
    std::size_t segment_count() const noexcept { return segments_.size(); }
    std::size_t group_count() const noexcept { return group_by_subscribers_.size(); }

  private:
    using Ranges = std::map<Fid, Fid>; // first -> last; disjoint and not adjacent
    struct Group {
        std::vector<Interest> subscribers;
        std::size_t segments = 0; // that belong to it
    };
    static std::size_t index(GroupId group) noexcept { return static_cast<std::size_t>(group); }

    void change_segments(Interest subscriber, const FidRange& range, bool adding,
                         std::vector<FidRange>& changed);
    std::map<Fid, GroupId>::iterator split_at(Fid first);
    void merge_around(const FidRange& range);
    GroupId with(GroupId group, Interest subscriber, bool adding);
    void retain(GroupId group) { ++groups_[index(group)].segments; }
    void release(GroupId group);

    std::size_t ranges_per_subscriber_limit_;
    std::map<Interest, Ranges> ranges_;
    std::map<Fid, GroupId> segments_; // first fid -> group; ends where the next one begins
    std::vector<Group> groups_;
    std::vector<std::uint32_t> free_groups_;
    std::map<std::vector<Interest>, GroupId> group_by_subscribers_;
    std::uint64_t generation_ = 1;
};

} // namespace netio::pubsub::inline v0_2
