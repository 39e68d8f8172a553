// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who gets what is published under a fid, under which policy, and how many messages that were. No
// I/O.
//
// Fids with equal sets of (subscriber, policy) share a group. Groups, and what lookup() returned,
// are void after every change, so the caller sends what it has coalesced for them before it.

#include "pubsub/core/fid_count_store.hpp"
#include "pubsub/core/fid_table.hpp"
#include "pubsub/core/frames.hpp"
#include "pubsub/core/subscription_table.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace netio::pubsub::inline v0_2 {

struct Group : detail::Lane {
    static constexpr std::size_t nowhere = SIZE_MAX;

    std::vector<Interest> members;
    std::size_t place = nowhere; // for the caller: where it keeps what belongs to this group
};

class FanOut {
  public:
    using Owned = std::optional<std::vector<FidRange>>;

    // `own_policy`: of those who do not ask for another. `owned`: the fids that are published here;
    // absent: all. `keeps_newest`: SlowPolicy::newest can be had.
    FanOut(SlowPolicy own_policy, std::size_t ranges_per_subscriber_limit, const Owned& owned = {},
           bool keeps_newest = true);

    struct Found {
        // Messages that were accepted, and those that nobody wanted: the caller counts.
        std::uint64_t& published;
        Group* group; // its members are none if nobody wants the fid, or it is not published here
    };
    // Good until the next lookup or change.
    Found lookup(Fid fid) {
        detail::FidState* state = fids_.find_current(fid);
        if (state == nullptr) state = &refresh(fid);
        return {.published = state->published, .group = static_cast<Group*>(state->lane)};
    }
    // Of one that was found: its fid is not published here. Subscribers may want it all the same.
    bool is_elsewhere(const Group& group) const noexcept { return &group == &elsewhere_group_; }
    // For those who look for themselves among what was looked up.
    detail::FidTable& fids() noexcept { return fids_; }

    // All of a request or nothing.
    struct Addition {
        SubscriptionResult result = SubscriptionResult::accepted;
        // The messages published so far of each fid that the subscriber did not have before. Fids
        // without a message are left out.
        std::vector<FidCount> positions;
    };
    SubscriptionResult subscribe(SubscriberId subscriber, const SubscriptionRequest& request) {
        return subscribe(subscriber, wishes_of(request)).result;
    }
    // The same where the policy is not the same for all of it.
    struct Wish {
        FidRange fids;
        SlowPolicy policy = SlowPolicy::block;
    };
    std::vector<Wish> wishes_of(const SubscriptionRequest& request) const;
    // The fids of those with this policy: disjoint, not adjacent, ascending.
    static std::vector<FidRange> asked_with(SlowPolicy policy, std::span<const Wish> wishes);
    Addition subscribe(SubscriberId subscriber, std::span<const Wish> wishes);
    struct Removal {
        SubscriptionResult result = SubscriptionResult::accepted;
        std::vector<FidRange> removed; // what it really had: as remove() says
    };
    Removal unsubscribe(SubscriberId subscriber, std::span<const FidRange> ranges);
    // Of all that it had, which is said: disjoint, not adjacent, ascending.
    std::vector<FidRange> remove(SubscriberId subscriber);

    bool keeps_newest() const noexcept { return keeps_newest_; }
    bool wants(SubscriberId subscriber, Fid fid) const;
    bool wants_anything(SubscriberId subscriber) const;
    // Of a fid that it wants.
    SlowPolicy policy_of(SubscriberId subscriber, Fid fid) const;

    // Memory for what has to be known of each fid of each subscriber: a few bytes.
    std::size_t bytes_of_subscribers() const noexcept;
    // What was looked at for the requests so far: fids, places of them, and ranges.
    std::size_t steps() const noexcept { return steps_; }

    // The totals of a subscriber: of every fid that it wants, the messages published since it
    // subscribed, in no order. Nothing is looked up and nobody subscribes meanwhile. Each call
    // looks at so many fids at most, whatever it finds, and goes on at `next`, a place that only
    // this function understands (0 at first).
    static constexpr std::size_t fids_at_once = 1024;
    TotalsPart totals(SubscriberId subscriber, std::size_t& next, std::span<FidCount> out) const;

  private:
    struct Step { // of a request, for the case that a later one fails
        Interest interest;
        FidRange range;
        bool added = false;
    };
    detail::FidState& refresh(Fid fid);
    bool owns(Fid fid) const;
    void void_groups();
    bool add(Interest interest, const FidRange& range, std::vector<Step>& steps);
    bool remove(Interest interest, const FidRange& range, std::vector<Step>& steps);
    void undo(std::span<const Step> steps);
    std::size_t range_count(SubscriberId subscriber) const;
    std::vector<FidCount> note_published_before(SubscriberId subscriber,
                                                std::span<const FidRange> fids);

    SlowPolicy own_policy_;
    bool keeps_newest_;
    std::size_t ranges_limit_;
    Owned owned_; // disjoint, ascending
    Group elsewhere_group_;
    detail::FidState elsewhere_; // of all fids that are not published here
    SubscriptionTable table_;
    detail::FidTable fids_;
    std::vector<std::unique_ptr<Group>> groups_; // by GroupId; made when first looked up
    // Messages published before the subscription, where there were any.
    std::unordered_map<SubscriberId, FidCountStore> published_before_;
    std::size_t steps_ = 0;
};

} // namespace netio::pubsub::inline v0_2
