// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/slow_judge.hpp"

#include <algorithm>
#include <unordered_map>

namespace netio::pubsub::inline v0_2 {

std::string SlowJudge::verdict(const Idleness& idle, const PublisherEnd& end, TimePoint now) const {
    if (idle.limited && idle.time >= patience_.disconnect_after) {
        return "took nothing for more than " + std::to_string(patience_.disconnect_after.count()) +
               " ms";
    }
    if (end.has_begun() && idle.time >= patience_.close_timeout) {
        return "took nothing while the publisher was ending";
    }
    if (end.is_overdue(now)) return "did not take everything within close_limit";
    return {};
}

std::vector<SubscriberId> SlowJudge::who_gives_way(std::vector<Keeper> keepers,
                                                   const Shares& shares, const Need& need) {
    struct Post {
        std::size_t amount = 0;
        std::size_t users = 0;
    };
    std::unordered_map<Cookie, Post> posts; // what several have counts once
    std::size_t sum = 0;
    for (const Keeper& keeper : keepers) {
        for (const auto& [cookie, amount] : keeper.posts) {
            Post& post = posts[cookie];
            if (post.users++ == 0) sum += post.amount = amount;
        }
    }
    std::ranges::stable_sort(keepers, std::greater{}, &Keeper::idle);
    std::vector<SubscriberId> leaving;
    std::size_t freed = 0;
    for (const Keeper& keeper : keepers) {
        const bool in_vain = need.in_vain && (freed == 0 || shares.free() + freed < need.amount);
        const bool too_much = in_vain || shares.posts_hold_too_much(sum, need.amount);
        if (!too_much || keeper.idle < post_patience) break;
        leaving.push_back(keeper.subscriber);
        freed += keeper.rest;
        for (const auto& [cookie, amount] : keeper.posts) {
            Post& post = posts[cookie];
            if (--post.users > 0) continue;
            sum -= post.amount;
            freed += post.amount;
        }
    }
    return leaving;
}

} // namespace netio::pubsub::inline v0_2
