// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of several publishers is asked for which fids. One that is known by its address alone is
// asked for all that is wanted. One that was found says which fids it has, and each of those is
// asked of one publisher only: the first that claimed it, as long as it does. No I/O.
//
// What a stranger claims may be long. A change of it is carried out in slices, ascending by fids,
// and behind each of them everything here is true: it claims what it says now up to there, and what
// it said before beyond. Only what differs is touched.

#include "pubsub/core/fid_set.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

enum class SourceId : std::uint64_t {};

class Assignment {
  public:
    using Policy = std::optional<SlowPolicy>;
    static constexpr std::size_t usual_slice = 512;
    static constexpr std::size_t contest_limit = 32; // owners in a change; of the others, none

    // What is to be asked of a publisher.
    struct Order {
        SourceId source{};
        bool subscribe = true;
        FidRange fids;
        Policy policy;

        friend bool operator==(const Order&, const Order&) = default;
    };
    // Two that claim the same fids.
    struct Contest {
        SourceId owner{};
        SourceId other{};
        FidRange first;         // the lowest of them
        std::uint64_t fids = 0; // how many in all; UINT64_MAX: at least

        friend bool operator==(const Contest&, const Contest&) = default;
    };
    struct Outcome {
        std::vector<Order> orders;
        // Of what is wanted, that are new; at the end of a change, one of each two publishers.
        std::vector<Contest> contests;
    };

    // `slice`: so many ranges of what was claimed, and of what is, are looked at in a call.
    explicit Assignment(std::size_t slice = usual_slice) noexcept : slice_{slice} {}

    Outcome want(std::span<const FidRange> fids, Policy policy);
    Outcome unwant(const FidRange& fids);
    // Known by its address.
    Outcome add(SourceId source);
    // Found; or one that claims something else than before. The first slice of it.
    Outcome claim(SourceId source, std::span<const FidRange> fids);
    // It could not be reached, or not `for_good`: what others claim as well is asked of the next of
    // them. One that is refused for good owns nothing until it claims something again.
    Outcome yield(SourceId source, bool for_good);
    // What it is to be asked for, once more: it could not be asked before.
    Outcome ask(SourceId source);
    // It has proved who it is, and is there: what it claims and others own that have not is its own
    // from here on, and what others give up is its before theirs. Until lose().
    Outcome reach(SourceId source);
    void lose(SourceId source) { reached_.erase(source); }
    // Another one answers in its place. What it owns and claimants that are there do, too, is
    // theirs; reach() ends it.
    Outcome doubt(SourceId source);
    // What it says it has, however far that is carried out.
    std::vector<FidRange> claimed(SourceId source) const;
    // It claimed fids that another one owned, or the other way round.
    bool is_contested(SourceId source) const { return contested_.count(source) > 0; }
    // It has claimed, and has not been refused for good since.
    bool is_claimant(SourceId source) const { return claims_.count(source) > 0; }
    // Nothing is asked of it any more; there are no orders for it from here on. The first slice.
    Outcome remove(SourceId source);
    // The next slice of those changes that have not ended, which take turns.
    Outcome advance();
    bool is_settled() const noexcept { return changing_.empty(); }

    bool empty() const noexcept { return wanted_.empty(); }
    // How many ranges have been looked at so far: what it has cost.
    std::size_t steps() const noexcept { return steps_; }

  private:
    using Wishes = FidRangeMap<Policy>;
    struct Claim {
        std::vector<FidRange> fids; // now
        std::vector<FidRange> next; // while it changes: what it is to become,
        Fid from{};                 // beyond what has been done
        bool changing = false;
        bool leaving = false;
        std::map<SourceId, Contest> contests; // of this change, by owner
    };

    Outcome begin_change(SourceId source, Claim& claim);
    void change(SourceId source, Claim& claim, Fid last, Outcome& outcome);
    void note_contests(SourceId source, Claim& claim, std::span<const FidRange> fids);
    void assign_free(SourceId source, std::span<const FidRange> fids, Outcome& outcome);
    void release(SourceId source, std::span<const FidRange> fids, Outcome& outcome);
    void take_over(SourceId source, std::span<const FidRange> fids, Outcome& outcome);
    std::vector<SourceId> heirs(SourceId source, SourceId after) const;
    std::vector<FidRange> hand_over(SourceId source, std::span<const SourceId> heirs,
                                    Outcome& outcome);
    std::vector<FidRange> owned(SourceId source, std::span<const FidRange> fids);
    bool is_leaving(SourceId source) const;
    void order(SourceId source, bool subscribe, std::span<const FidRange> fids, Outcome& outcome);

    Wishes wanted_;
    std::vector<SourceId> known_;
    std::map<SourceId, Claim> claims_;
    std::deque<SourceId> changing_; // whose turn is next first
    FidRangeMap<SourceId> owners_;  // of what is claimed
    std::set<SourceId> reached_;
    std::set<SourceId> contested_;
    std::size_t slice_;
    std::size_t steps_ = 0;
};

} // namespace netio::pubsub::inline v0_2
