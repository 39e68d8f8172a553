// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of several publishers is asked for which fids. A publisher that is known by its address
// only is asked for all wanted fids. A publisher that was found on a bus claims fids, and each of
// these is owned by one publisher only: the first that claimed it, as long as it does. No I/O.
//
// A claim comes from an unauthenticated peer and may be long. A change of it is applied in slices,
// in ascending order of fids. After each slice the state is consistent: the new claim holds up to
// there, and the former one beyond. Only differences are processed.

#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_3 {

enum class PublisherId : std::uint64_t {};

class FidAssignment {
  public:
    using Policy = std::optional<SlowPolicy>;
    static constexpr std::size_t usual_slice = 512;
    // Owners per change; further ones are not reported.
    static constexpr std::size_t contest_limit = 32;

    // A request to send to a publisher.
    struct Order {
        PublisherId publisher{};
        bool subscribe = true;
        FidRange fids;
        Policy policy;

        friend bool operator==(const Order&, const Order&) = default;
    };
    // Two publishers that claim the same fids.
    struct Contest {
        PublisherId owner{};
        PublisherId other{};
        FidRange first;         // the lowest range of them
        std::uint64_t fids = 0; // number of fids; UINT64_MAX: that many or more

        friend bool operator==(const Contest&, const Contest&) = default;
    };
    struct Outcome {
        std::vector<Order> orders;
        // New contests of wanted fids; at the end of a change, one for each pair of publishers.
        std::vector<Contest> contests;
    };

    // `slice`: the number of ranges of the old and of the new claim that a call examines.
    explicit FidAssignment(std::size_t slice = usual_slice) noexcept : slice_{slice} {}

    Outcome want(std::span<const FidRange> fids, Policy policy);
    Outcome unwant(const FidRange& fids);
    // Adds a publisher that is known by its address only.
    Outcome add(PublisherId publisher);
    // Sets the claim of a publisher, which may be new. Applies the first slice of the change.
    Outcome claim(PublisherId publisher, std::span<const FidRange> fids);
    // Call it when the publisher could not be reached: the fids that others claim too are requested
    // from the next of these. With `for_good`, the publisher owns nothing until it claims again.
    Outcome yield(PublisherId publisher, bool for_good);
    // Repeats the requests of a publisher that could not be asked before.
    Outcome ask(PublisherId publisher);
    // Call it when the publisher is connected and authenticated. Until lose(), it takes over its
    // claimed fids from owners that are not, and is preferred for released fids.
    Outcome reach(PublisherId publisher);
    void lose(PublisherId publisher) { reached_.erase(publisher); }
    // Call it when another process answers at the publisher's address: its fids go to reached
    // publishers that claim them too, until reach().
    Outcome suspect(PublisherId publisher);
    // The publisher's current claim, even if it is not applied completely.
    std::vector<FidRange> claimed(PublisherId publisher) const;
    // Whether the publisher claimed fids that another one owned, or the reverse.
    bool is_contested(PublisherId publisher) const { return contested_.count(publisher) > 0; }
    // Whether the publisher has claimed fids, and has not yielded them for good since.
    bool is_claimant(PublisherId publisher) const { return claims_.count(publisher) > 0; }
    // Removes the publisher: no further orders for it follow. Applies the first slice of the
    // removal of its claim.
    Outcome remove(PublisherId publisher);
    // Applies the next slice of the pending changes, which take turns.
    Outcome advance();
    bool is_settled() const noexcept { return changing_.empty(); }

    // Up to `limit` ranges of wanted fids that no publisher owns.
    std::vector<FidRange> unclaimed(std::size_t limit) const;
    bool empty() const noexcept { return wanted_.empty(); }
    // The number of examined ranges, as a measure of the cost.
    std::size_t steps() const noexcept { return steps_; }

  private:
    using Wishes = FidRangeMap<Policy>;
    struct Claim {
        std::vector<FidRange> fids; // current
        std::vector<FidRange> next; // the target of a change
        Fid from{};                 // the first fid of the next slice
        bool changing = false;
        bool leaving = false;
        std::map<PublisherId, Contest> contests; // of the change, by owner
    };

    Outcome begin_change(PublisherId publisher, Claim& claim);
    void change(PublisherId publisher, Claim& claim, Fid last, Outcome& outcome);
    void record_conflicts(PublisherId publisher, Claim& claim, std::span<const FidRange> fids);
    void assign_free(PublisherId publisher, std::span<const FidRange> fids, Outcome& outcome);
    void release(PublisherId publisher, std::span<const FidRange> fids, Outcome& outcome);
    void take_over(PublisherId publisher, std::span<const FidRange> fids, Outcome& outcome);
    std::vector<PublisherId> successors(PublisherId publisher, PublisherId after) const;
    std::vector<FidRange> hand_over(PublisherId publisher, std::span<const PublisherId> successors,
                                    Outcome& outcome);
    std::vector<FidRange> owned(PublisherId publisher, std::span<const FidRange> fids);
    bool is_leaving(PublisherId publisher) const;
    void order(PublisherId publisher, bool subscribe, std::span<const FidRange> fids,
               Outcome& outcome);

    Wishes wanted_;
    std::vector<PublisherId> known_;
    std::map<PublisherId, Claim> claims_;
    std::deque<PublisherId> changing_; // in the order of their turns
    FidRangeMap<PublisherId> owners_;  // of claimed fids
    std::set<PublisherId> reached_;
    std::set<PublisherId> contested_;
    std::size_t slice_;
    std::size_t steps_ = 0;
};

} // namespace netio::pubsub::inline v0_3
