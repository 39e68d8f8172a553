// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a subscriber wants, what it has asked its publisher for, and what it was granted: three sets
// of fids that differ as long as an answer is on its way. The last word about a fid counts; what is
// refused is as if it had never been asked for. No I/O.

#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_range_map.hpp"
#include "pubsub/core/frames.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class SubscriptionBook {
  public:
    using Policy = std::optional<SlowPolicy>; // none: the publisher's own

    struct Request {
        std::uint32_t number = 0;
        bool subscribe = true;
        Policy policy;
        std::vector<FidRange> ranges;
    };

    void subscribe(std::span<const FidRange> ranges, Policy policy);
    void unsubscribe(const FidRange& range);

    // A connection begins: all that is wanted is asked for, so many ranges in a request.
    void begin(std::size_t ranges_per_request);
    // It has ended: nothing is granted, no answer comes.
    void end();

    // The next request that has not been sent, until sent(); nullptr: none.
    const Request* next() const noexcept {
        return unsent_.empty() ? nullptr : &unsent_.front().request;
    }
    void sent();
    // The publisher's answer; nothing: to a request that was not made. Where several ranges are not
    // permitted together, each is asked for alone, and there is nothing to tell: no ranges.
    std::optional<Request> answered(const SubscriptionAnswer& answer);

    // Whether the publisher may send messages of this fid.
    bool grants(Fid fid) const { return granted_.find(fid) != nullptr; }
    // The subscription with this number, if it waits for its answer.
    const Request* awaited(std::uint32_t number) const;
    // Unsubscribed from, and without an answer.
    std::vector<FidRange> leaving() const;
    bool empty() const noexcept { return wanted_.empty(); }
    std::vector<FidRange> wanted() const; // disjoint, not adjacent, ascending
    // What it is kept as: neighbours of one policy are one range once they are granted.
    std::size_t wanted_count() const noexcept { return wanted_.size(); }
    // How many ranges have been looked at for requests and answers so far: what they have cost.
    std::size_t steps() const noexcept { return steps_; }

  private:
    struct Wish {
        Policy policy;
        // The last one that asked for it; 0: none yet, or one whose answer has come, after those of
        // all before it.
        std::uint32_t request = 0;

        friend bool operator==(const Wish&, const Wish&) = default;
    };
    using Wishes = FidRangeMap<Wish>;
    struct Pending {
        Request request;
        std::vector<Wishes::Piece> before; // what was wanted of its ranges until then
    };

    // What a map has of a range.
    template <typename Value>
    auto look_at(const FidRangeMap<Value>& map, const FidRange& range) {
        auto pieces = map.pieces(range);
        steps_ += 1 + pieces.size();
        return pieces;
    }
    void ask(bool subscribe, std::span<const FidRange> ranges, Policy policy);
    void refuse(const Pending& pending);
    void ask_one_by_one(const Pending& pending);
    void settle(const Request& request);

    Wishes wanted_;
    FidRangeMap<std::monostate> granted_;
    std::deque<Pending> unsent_;
    std::map<std::uint32_t, Pending> asked_;
    std::size_t ranges_per_request_ = 0; // 0: there is no connection
    std::uint32_t last_request_ = 0;
    std::size_t steps_ = 0;
};

} // namespace netio::pubsub::inline v0_2
