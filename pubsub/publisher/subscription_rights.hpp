// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a subscriber's key makes of what it asks for. No I/O.

#include "netio/access/rights.hpp"
#include "pubsub/core/fan_out.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace netio::pubsub::inline v0_2 {

constexpr access::Patience patience_of(SlowPolicy policy) noexcept {
    switch (policy) {
    case SlowPolicy::drop:
        return access::Patience::drop;
    case SlowPolicy::newest:
        return access::Patience::newest;
    case SlowPolicy::disconnect:
        return access::Patience::disconnect;
    case SlowPolicy::block:
        break;
    }
    return access::Patience::block;
}

constexpr SlowPolicy policy_of(access::Patience patience) noexcept {
    switch (patience) {
    case access::Patience::drop:
        return SlowPolicy::drop;
    case access::Patience::newest:
        return SlowPolicy::newest;
    case access::Patience::disconnect:
        return SlowPolicy::disconnect;
    case access::Patience::block:
        break;
    }
    return SlowPolicy::block;
}

// What a key gives without being asked is no more than the publisher has.
struct OwnPolicies {
    SlowPolicy policy = SlowPolicy::block;
    bool keeps_newest = false;

    SlowPolicy instead_of(SlowPolicy given) const noexcept {
        if (given == SlowPolicy::newest && !keeps_newest) return SlowPolicy::drop;
        return holds_up_more(given, policy) ? policy : given;
    }
};

// The policies that it gets, and for which fids; together they are what it asks for. Nothing: a fid
// of it is not permitted, or not with this policy. Adds to `steps` how many ranges of the key's
// were looked at.
inline std::optional<std::vector<FanOut::Wish>> permitted(const access::Rights& rights,
                                                          const SubscriptionRequest& request,
                                                          OwnPolicies own, std::size_t& steps) {
    std::optional<access::Patience> asked;
    if (request.policy) asked = patience_of(*request.policy);
    std::vector<FanOut::Wish> wishes;
    for (const FidRange& range : request.ranges) {
        std::uint64_t next = to_integer(range.first); // that nothing was found for
        const std::uint64_t last = to_integer(range.last);
        bool whole = false;
        for (std::size_t at = rights.fids_from(next, steps); at < rights.fids.size(); ++at) {
            const access::FidRight& right = rights.fids[at];
            const std::uint64_t end = std::min(right.last, last);
            const auto found = rights.subscribe(next, end, asked, steps);
            if (right.first > next || !found.permitted) return std::nullopt;
            SlowPolicy policy = found.patience ? policy_of(*found.patience) : own.policy;
            const bool is_asked = asked && found.patience == asked;
            if (!is_asked) policy = own.instead_of(policy);
            wishes.push_back({.fids = {.first = Fid{next}, .last = Fid{end}}, .policy = policy});
            whole = end == last;
            if (whole) break;
            next = end + 1;
        }
        if (!whole) return std::nullopt;
    }
    return wishes;
}

} // namespace netio::pubsub::inline v0_2
