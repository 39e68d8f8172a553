// SPDX-License-Identifier: Apache-2.0
#pragma once

// What happens to a subscriber that does not keep up.

#include "netio/base/require_cxx20.hpp"

#include <array>
#include <cstdint>

namespace netio::pubsub::inline v0_2 {

// Once the subscriber's share of the resources is used.
enum class SlowPolicy : std::uint8_t {
    block,      // publishing to it says `again`: nothing is lost, and it slows its fids down
    drop,       // it misses the newest messages, and is told in order how many of which fid
    disconnect, // as block, and after disconnect_after without progress it is disconnected
    newest,     // it misses all but the newest of each fid, and is told in order how many of which
};

inline constexpr std::array slow_policies{SlowPolicy::block, SlowPolicy::drop,
                                          SlowPolicy::disconnect, SlowPolicy::newest};

// Whether nobody ever waits for such a subscriber: it misses messages.
constexpr bool may_miss(SlowPolicy policy) noexcept {
    return policy == SlowPolicy::drop || policy == SlowPolicy::newest;
}

// Whether the one holds a publisher up longer than the other.
constexpr bool holds_up_more(SlowPolicy one, SlowPolicy other) noexcept {
    const auto patience = [](SlowPolicy policy) {
        return may_miss(policy) ? 0 : policy == SlowPolicy::disconnect ? 1 : 2;
    };
    return patience(one) > patience(other);
}

} // namespace netio::pubsub::inline v0_2
