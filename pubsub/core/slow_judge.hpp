// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who has to go because it takes nothing, and why. Values in, verdicts out: no I/O, no clock.

#include "netio/base/cookie.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/publisher_end.hpp"
#include "pubsub/core/shares.hpp"
#include "pubsub/core/slow_watch.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class SlowJudge {
  public:
    // Who keeps what is posted for so long may have to give it up for the others.
    static constexpr std::chrono::seconds post_patience{1};

    struct Patience {
        std::chrono::milliseconds disconnect_after{}; // of those that publishing has to wait for
        std::chrono::milliseconds close_timeout{};    // of all, while the publisher is ending
    };
    explicit SlowJudge(const Patience& patience) noexcept : patience_{patience} {}

    // What is said to a subscriber that has to go; empty: it stays.
    std::string verdict(const Idleness& idle, const PublisherEnd& end, TimePoint now) const;

    // Somebody who has stalled, and what the fabric has of it.
    struct Keeper {
        SubscriberId subscriber{};
        Duration idle{};
        std::vector<std::pair<Cookie, std::size_t>> posts; // with what each takes of the pool
        std::size_t rest = 0; // what else waits for it, and is free when it is gone
    };
    // What the publisher waits for.
    struct Need {
        std::size_t amount = 0; // of the pool; 0: nothing
        // Whoever goes on holds nothing, so nothing becomes free by itself. What is free may lie in
        // pieces too small, so it can wait in vain with enough left.
        bool in_vain = false;
    };
    // Who has to go for the others to have enough, and the publisher what it waits for: those that
    // have waited longest, and no more of them than are needed.
    static std::vector<SubscriberId> who_gives_way(std::vector<Keeper> keepers,
                                                   const Shares& shares, const Need& need);

  private:
    Patience patience_;
};

} // namespace netio::pubsub::inline v0_2
