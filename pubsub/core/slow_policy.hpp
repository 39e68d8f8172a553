// SPDX-License-Identifier: Apache-2.0
#pragma once

// What happens when a subscriber is slow.

#include "netio/base/require_cxx20.hpp"

#include <array>
#include <cstdint>

namespace netio::pubsub::inline v0_3 {

// What a publisher does when the data that is queued for a subscriber reaches the subscriber's
// queue limit.
enum class SlowPolicy : std::uint8_t {
    block,      // publishing its fids returns `again`: nothing is dropped
    drop,       // new messages are dropped, and reported to it in order as counts per fid
    disconnect, // as block; after disconnect_after without progress it is disconnected
    newest,     // conflation: only the newest of each fid is sent, with the number of dropped ones
};

inline constexpr std::array slow_policies{SlowPolicy::block, SlowPolicy::drop,
                                          SlowPolicy::disconnect, SlowPolicy::newest};

// Whether publishing never waits for such a subscriber; messages for it are dropped instead.
constexpr bool may_drop(SlowPolicy policy) noexcept {
    return policy == SlowPolicy::drop || policy == SlowPolicy::newest;
}

// Whether the first policy blocks a publisher longer than the second.
constexpr bool blocks_longer(SlowPolicy one, SlowPolicy other) noexcept {
    const auto rank = [](SlowPolicy policy) {
        return may_drop(policy) ? 0 : policy == SlowPolicy::disconnect ? 1 : 2;
    };
    return rank(one) > rank(other);
}

} // namespace netio::pubsub::inline v0_3
