// SPDX-License-Identifier: Apache-2.0
#pragma once

// The subscriptions of one subscriber: the fids that it wants, has requested from its publisher,
// and was granted. The three sets differ while an answer is outstanding. The last request for a fid
// counts; a refused request has no effect. No I/O.

#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class SubscriptionState {
  public:
    using Policy = std::optional<SlowPolicy>; // nullopt: the policy of the publisher

    struct Request {
        std::uint32_t number = 0;
        bool subscribe = true;
        Policy policy;
        // With history: whether it was asked for before (ask_for_history()), for all ranges.
        bool supplied = false;
        std::vector<FidRange> ranges;
    };

    // From now on subscribe requests are for history: those of these fids, which another object
    // owns and changes, are separate from the others.
    using Fids = FidRangeMap<std::monostate>;
    void ask_for_history(const Fids& supplied) noexcept { supplied_ = &supplied; }

    void subscribe(std::span<const FidRange> ranges, Policy policy);
    void unsubscribe(const FidRange& range);

    // A connection begins: requests all wanted fids, with up to `ranges_per_request` each.
    void begin(std::size_t ranges_per_request);
    // The connection has ended: nothing is granted and no answer follows.
    void end();

    // The request to send next, until sent() is called; nullptr: none.
    const Request* next() const noexcept {
        return unsent_.empty() ? nullptr : &unsent_.front().request;
    }
    void sent();
    // Takes an answer of the publisher and returns its request; `nullopt` if there is no such
    // request. If several ranges are not permitted together, each is requested alone, and the
    // returned request has no ranges.
    std::optional<Request> answered(const SubscriptionAnswer& answer);

    // Whether the publisher may send messages of this fid.
    bool grants(Fid fid) const { return granted_.find(fid) != nullptr; }
    // The subscribe request with this number, if its answer is outstanding; else nullptr.
    const Request* awaited(std::uint32_t number) const;
    // The ranges of unsubscribe requests without an answer.
    std::vector<FidRange> leaving() const;
    bool empty() const noexcept { return wanted_.empty(); }
    // The parts of a range that are wanted.
    std::vector<FidRange> wanted_in(const FidRange& range) const;
    std::vector<FidRange> wanted() const; // disjoint, not adjacent, ascending
    // Number of stored ranges. Granted neighbours with the same policy are one range.
    std::size_t wanted_count() const noexcept { return wanted_.size(); }
    // The number of ranges examined for requests and answers, as a measure of their cost.
    std::size_t steps() const noexcept { return steps_; }

  private:
    struct Wish {
        Policy policy;
        // The last request for it. 0: none yet, or it and all earlier requests were answered.
        std::uint32_t request = 0;

        friend bool operator==(const Wish&, const Wish&) = default;
    };
    using Wishes = FidRangeMap<Wish>;
    struct Pending {
        Request request;
        std::vector<Wishes::Piece> before; // the wishes for its ranges before it
    };

    // The entries of a map in a range, counted in steps_.
    template <typename Value>
    auto look_at(const FidRangeMap<Value>& map, const FidRange& range) {
        auto pieces = map.pieces(range);
        steps_ += 1 + pieces.size();
        return pieces;
    }
    void ask(bool subscribe, std::span<const FidRange> ranges, Policy policy);
    void ask_for(bool subscribe, std::span<const FidRange> ranges, Policy policy, bool supplied);
    void refuse(const Pending& pending);
    void ask_one_by_one(const Pending& pending);
    void settle(const Request& request);

    Wishes wanted_;
    FidRangeMap<std::monostate> granted_;
    std::deque<Pending> unsent_;
    std::map<std::uint32_t, Pending> asked_;
    std::size_t ranges_per_request_ = 0; // 0: not connected
    std::uint32_t last_request_ = 0;
    std::size_t steps_ = 0;
    const Fids* supplied_ = nullptr; // null: no history
};

} // namespace netio::pubsub::inline v0_3
