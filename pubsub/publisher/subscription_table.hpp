// SPDX-License-Identifier: Apache-2.0
#pragma once

// The subscriptions of a publisher: which subscribers get the messages of a fid and by which policy
// (SubscriptionTable, FanOut), the number of these messages, what a subscriber's key permits
// (permitted()), and which fids were published (FidListing). No I/O, no clock.

#include "netio/access/rights.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/fid_table.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/wire.hpp"
#include "pubsub/publisher/history.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// A subscriber that wants fids with one policy. It may want other fids with another policy.
struct Interest {
    SubscriberId subscriber{};
    SlowPolicy policy = SlowPolicy::block;
    bool late = false; // is sent the history, and new messages not yet

    friend auto operator<=>(const Interest&, const Interest&) = default;
};

// A set of interests; valid until the table changes.
enum class GroupId : std::uint32_t {};
inline constexpr GroupId empty_group{0};

// The space of fids is cut into segments. Each segment belongs to a group: the set of subscribers
// that want all of its fids, each by its policy. Equal sets are one group, so that its messages can
// share pages.
//
// Costs: find() is a binary search in the segments; add() and remove() touch the segments within
// the range. There are at most two segment borders for each range of each subscriber.
class SubscriptionTable {
  public:
    explicit SubscriptionTable(std::size_t ranges_per_subscriber_limit);

    // Adds a range to a subscriber's subscriptions. Appends the parts that are new to `added`.
    // Returns false if the subscriber has as many ranges as the limit allows; nothing was changed.
    [[nodiscard]] bool add(Interest subscriber, const FidRange& range,
                           std::vector<FidRange>& added);
    // Removes a range from a subscriber's subscriptions. Appends the parts that it had to
    // `removed`. Returns false as add() does: removing the middle of a range makes two.
    [[nodiscard]] bool remove(Interest subscriber, const FidRange& range,
                              std::vector<FidRange>& removed);
    // Returns the fids that the subscriber had.
    std::vector<FidRange> remove_subscriber(Interest subscriber);
    // Makes the late interest in a range a live one. This may need more ranges than the limit.
    void make_live(Interest late, const FidRange& range);
    // The parts of a range that the subscriber has.
    std::vector<FidRange> parts(Interest subscriber, const FidRange& range) const;

    GroupId find(Fid fid) const;
    // In ascending order.
    std::span<const Interest> members(GroupId group) const {
        return groups_[index(group)].subscribers;
    }
    bool wants(Interest subscriber, Fid fid) const;
    std::size_t range_count(Interest subscriber) const;
    bool wants_anything(Interest subscriber) const { return ranges_.contains(subscriber); }

    // Changes whenever a result of find() may have changed; never 0.
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

// The live members of a group, and the page that is being filled for them.
struct Group : detail::GroupWriter {
    static constexpr std::size_t nowhere = SIZE_MAX;

    std::vector<Interest> members;
    bool has_late = false;       // members that get the messages from the history
    std::size_t place = nowhere; // for the caller: the position of its data for this group
};

// Finds the subscribers of a fid, and counts its messages.
//
// Groups and the results of lookup() are void after every change, so the caller first sends what it
// has coalesced for them.
class FanOut {
  public:
    using Owned = std::optional<std::vector<FidRange>>;

    // `own_policy`: of subscribers that do not request another. `owned`: the fids that are
    // published here; nullopt: all. `keeps_newest`: SlowPolicy::newest is available.
    FanOut(SlowPolicy own_policy, std::size_t ranges_per_subscriber_limit, const Owned& owned = {},
           bool keeps_newest = true);

    struct Found {
        // The number of messages that were accepted or had no subscriber; the caller increments it.
        std::uint64_t& published;
        Group* group; // without members if the fid has no subscriber or is not published here
    };
    // Valid until the next lookup or change.
    Found lookup(Fid fid) {
        detail::FidState* state = fids_.find_current(fid);
        if (state == nullptr) state = &refresh(fid);
        return {.published = state->published, .group = static_cast<Group*>(state->group)};
    }
    // Whether the group is that of the fids that are not published here, which may have
    // subscribers.
    bool is_owned_elsewhere(const Group& group) const noexcept {
        return &group == &elsewhere_group_;
    }
    // For inline lookups.
    detail::FidTable& fids() noexcept { return fids_; }

    // A request is accepted or refused as a whole.
    struct Addition {
        SubscriptionResult result = SubscriptionResult::accepted;
        // The number of messages published so far, of each fid that is new to the subscriber; with
        // history, without those that are kept. Fids without such messages are left out.
        std::vector<FidCount> positions;
        // The fids that are new to the subscriber and for which it first gets the history (late
        // fids): disjoint, ascending.
        std::vector<FidRange> late;
    };
    SubscriptionResult subscribe(SubscriberId subscriber, const SubscriptionRequest& request) {
        return subscribe(subscriber, wishes_of(request)).result;
    }
    // The same for policies that differ between the fids.
    struct Wish {
        FidRange fids;
        SlowPolicy policy = SlowPolicy::block;
    };
    std::vector<Wish> wishes_of(const SubscriptionRequest& request) const;
    // The fids with this policy: disjoint, not adjacent, ascending.
    static std::vector<FidRange> asked_with(SlowPolicy policy, std::span<const Wish> wishes);
    // With `history`, the fids that are new to the subscriber begin as late fids: it first gets
    // their history.
    Addition subscribe(SubscriberId subscriber, std::span<const Wish> wishes,
                       const HistoryLog* history = nullptr);
    // Makes the late subscriptions of these fids live.
    void make_live(SubscriberId subscriber, std::span<const FidRange> fids);
    struct Removal {
        SubscriptionResult result = SubscriptionResult::accepted;
        std::vector<FidRange> removed; // what the subscriber had; the form is that of remove()
    };
    Removal unsubscribe(SubscriberId subscriber, std::span<const FidRange> ranges);
    // Removes and returns all that the subscriber had: disjoint, not adjacent, ascending.
    std::vector<FidRange> remove(SubscriberId subscriber);

    bool keeps_newest() const noexcept { return keeps_newest_; }
    bool wants(SubscriberId subscriber, Fid fid) const;
    bool wants_anything(SubscriberId subscriber) const;
    // For a fid that the subscriber wants.
    SlowPolicy policy_of(SubscriberId subscriber, Fid fid) const;

    // Memory for the fids of all subscribers: a few bytes each.
    std::size_t bytes_of_subscribers() const noexcept;
    // The fids, table slots and ranges that all requests so far have visited.
    std::size_t steps() const noexcept { return steps_; }

    // The totals of a subscriber: of every fid that it wants, the messages published since it
    // subscribed, in no order. No lookups or requests may come in between. Each call visits at most
    // fids_at_once fids, and continues at `next`, which only this function understands (0 at
    // first).
    static constexpr std::size_t fids_at_once = 1024;
    TotalsPart totals(SubscriberId subscriber, std::size_t& next, std::span<FidCount> out) const;

  private:
    struct Step { // of a request, to be undone if a later one fails
        Interest interest;
        FidRange range;
        bool added = false;
    };
    detail::FidState& refresh(Fid fid);
    bool owns(Fid fid) const;
    void void_groups();
    struct Added {
        std::vector<FidRange> live;
        std::vector<FidRange> late;
    };
    bool take(SubscriberId subscriber, const Wish& wish, bool late, std::vector<Step>& steps,
              std::vector<FidRange>& added);
    bool take_with_late(SubscriberId subscriber, const Wish& wish, bool history,
                        std::vector<Step>& steps, Added& added);
    void note_late(SubscriberId subscriber);
    template <typename Visit>
    bool any_interest(SubscriberId subscriber, Visit visit) const;
    bool add(Interest interest, const FidRange& range, std::vector<Step>& steps);
    bool remove(Interest interest, const FidRange& range, std::vector<Step>& steps);
    void undo(std::span<const Step> steps);
    std::size_t range_count(SubscriberId subscriber) const;
    // `history`: without the kept messages.
    std::vector<FidCount> note_published_before(SubscriberId subscriber,
                                                std::span<const FidRange> fids,
                                                const HistoryLog* history);

    SlowPolicy own_policy_;
    bool keeps_newest_;
    std::size_t ranges_limit_;
    Owned owned_; // disjoint, ascending
    Group elsewhere_group_;
    detail::FidState elsewhere_; // of all fids that are not published here
    SubscriptionTable table_;
    detail::FidTable fids_;
    std::vector<std::unique_ptr<Group>> groups_; // by GroupId; created at the first lookup
    std::unordered_set<SubscriberId> late_;      // subscribers with a late interest
    // Messages that were published before the subscription.
    std::unordered_map<SubscriberId, FidCountStore> published_before_;
    std::size_t steps_ = 0;
};

// --- rights -----------------------------------------------------------------------------------

constexpr access::SlowPolicy access_policy_of(SlowPolicy policy) noexcept {
    switch (policy) {
    case SlowPolicy::drop:
        return access::SlowPolicy::drop;
    case SlowPolicy::newest:
        return access::SlowPolicy::newest;
    case SlowPolicy::disconnect:
        return access::SlowPolicy::disconnect;
    case SlowPolicy::block:
        break;
    }
    return access::SlowPolicy::block;
}

constexpr SlowPolicy policy_of(access::SlowPolicy policy) noexcept {
    switch (policy) {
    case access::SlowPolicy::drop:
        return SlowPolicy::drop;
    case access::SlowPolicy::newest:
        return SlowPolicy::newest;
    case access::SlowPolicy::disconnect:
        return SlowPolicy::disconnect;
    case access::SlowPolicy::block:
        break;
    }
    return SlowPolicy::block;
}

// Limits a policy that a key grants by default: it does not block longer than the publisher's own
// policy, and `newest` becomes `drop` if the publisher does not conflate.
struct OwnPolicies {
    SlowPolicy policy = SlowPolicy::block;
    bool keeps_newest = false;

    SlowPolicy instead_of(SlowPolicy granted) const noexcept;
};

// The fids of a request with the policies that the key's rights give them. Returns nullopt if a fid
// is not permitted, or not with the requested policy. Adds the number of visited ranges to `steps`.
std::optional<std::vector<FanOut::Wish>> permitted(const access::Rights& rights,
                                                   const SubscriptionRequest& request,
                                                   OwnPolicies own, std::size_t& steps);

// --- published fids ---------------------------------------------------------------------------

// A part of the list, as one frame carries it: ascending, disjoint.
struct FidPage {
    std::vector<FidRange> ranges;
    bool more = false; // further ranges follow the last one
};

// The fids that were published, as ranges, for peers that ask. A peer decides how often it asks, so
// the list is made only after fids were added, and not more often than the caller allows.
class FidListing {
  public:
    // Whether fids were added since the list was made.
    bool is_outdated(std::size_t fid_count) const noexcept { return made_from_ != fid_count; }
    // Makes the list from a map of all fids.
    template <typename Value>
    void make(const FidMap<Value>& fids) {
        std::vector<Fid> list;
        list.reserve(fids.size());
        fids.for_each([&](Fid fid, const Value&) { list.push_back(fid); });
        make(std::move(list));
    }

    // Up to `limit` ranges within `permitted` (ascending, disjoint): the nearest one that begins
    // below `first`, then those from `first` on.
    FidPage page(Fid first, std::size_t limit, std::span<const FidRange> permitted) const;

  private:
    void make(std::vector<Fid> fids);

    std::vector<FidRange> ranges_;
    std::size_t made_from_ = 0;
};

} // namespace netio::pubsub::inline v0_3
