// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of several publishers is asked for which fids. One that is known by its address alone is
// asked for all that is wanted. One that was found says which fids it has, and each of those is
// asked of one publisher only: the first that claimed it, as long as it does. No I/O.

#include "pubsub/core/fid_range_map.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

enum class SourceId : std::uint64_t {};

class Assignment {
  public:
    using Policy = std::optional<SlowPolicy>;

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
        FidRange fids;
        SourceId owner{};
        SourceId other{};

        friend bool operator==(const Contest&, const Contest&) = default;
    };
    struct Outcome {
        std::vector<Order> orders;
        std::vector<Contest> contests; // of what is wanted, that are new
    };

    Outcome want(std::span<const FidRange> fids, Policy policy);
    Outcome unwant(const FidRange& fids);
    // Known by its address.
    Outcome add(SourceId source);
    // Found; or one that claims something else than before.
    Outcome claim(SourceId source, std::span<const FidRange> fids);
    // It could not be reached, or not `for_good`: what others claim as well is asked of the next of
    // them. One that is refused for good owns nothing until it claims something again.
    Outcome yield(SourceId source, bool for_good);
    // Nothing is asked of it any more; there are no orders for it.
    Outcome remove(SourceId source);

    bool empty() const noexcept { return wanted_.empty(); }

  private:
    using Wishes = FidRangeMap<Policy>;

    void assign_free(SourceId source, std::span<const FidRange> fids, Outcome& outcome);
    void release(SourceId source, const FidRange& fids, Outcome& outcome);
    void order(SourceId source, bool subscribe, const FidRange& fids, Outcome& outcome) const;

    Wishes wanted_;
    std::vector<SourceId> known_;
    std::map<SourceId, std::vector<FidRange>> claims_;
    FidRangeMap<SourceId> owners_; // of what is claimed
};

} // namespace netio::pubsub::inline v0_2
