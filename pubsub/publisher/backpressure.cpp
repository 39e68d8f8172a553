// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/backpressure.hpp"

#include <functional>
#include <unordered_map>

namespace netio::pubsub::inline v0_3 {

Closed ShutdownState::result() const {
    Closed closed{.reason = CloseReason::orderly, .detail = {}};
    if (unconfirmed_ > 0) {
        closed.reason = CloseReason::unconfirmed;
        closed.detail = std::to_string(unconfirmed_) +
                        " subscriber(s) did not confirm that they received everything";
    }
    if (aborted_) closed.reason = CloseReason::local;
    return closed;
}

std::string EvictionPolicy::verdict(const SubscriberProgress& subscriber,
                                    const ShutdownState& shutdown, TimePoint now) const {
    if (subscriber.limited && subscriber.time >= timeouts_.disconnect_after) {
        return "received nothing for more than " +
               std::to_string(timeouts_.disconnect_after.count()) + " ms";
    }
    if (shutdown.has_begun() && subscriber.time >= timeouts_.close_timeout) {
        return "received nothing while the publisher was closing";
    }
    if (shutdown.is_overdue(now)) return "did not receive everything within close_limit";
    return {};
}

std::vector<SubscriberId> EvictionPolicy::evicted(std::vector<Holder> holders,
                                                  const MemoryBudget& budget, const Need& need) {
    struct Post {
        std::size_t amount = 0;
        std::size_t users = 0;
    };
    std::unordered_map<Cookie, Post> posts; // a page that several hold counts once
    std::size_t sum = 0;
    for (const Holder& holder : holders) {
        for (const auto& [cookie, amount] : holder.posts) {
            Post& post = posts[cookie];
            if (post.users++ == 0) sum += post.amount = amount;
        }
    }
    std::ranges::stable_sort(holders, std::greater{}, &Holder::idle);
    std::vector<SubscriberId> leaving;
    std::size_t freed = 0;
    for (const Holder& holder : holders) {
        const bool in_vain = need.in_vain && (freed == 0 || budget.free() + freed < need.amount);
        const bool too_much = in_vain || budget.posts_hold_too_much(sum, need.amount);
        if (!too_much || holder.idle < post_timeout) break;
        leaving.push_back(holder.subscriber);
        freed += holder.rest;
        for (const auto& [cookie, amount] : holder.posts) {
            Post& post = posts[cookie];
            if (--post.users > 0) continue;
            sum -= post.amount;
            freed += post.amount;
        }
    }
    return leaving;
}

} // namespace netio::pubsub::inline v0_3
