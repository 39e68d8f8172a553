// SPDX-License-Identifier: Apache-2.0
#pragma once

// What publishing a message needs of its fid, and nothing else does: kept apart because users'
// code has it inline. No I/O.

#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/page.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_2 {
namespace detail {

// What the fids of one group share: the page that is being filled for all of them. Without one it
// has room for nothing.
struct Lane {
    PageWriter writer;
};

struct FidState {
    std::uint64_t published = 0; // messages accepted, and those that nobody wanted
    std::uint64_t generation = 0;
    Lane* lane = nullptr; // of that generation
};

static_assert(FidMap<FidState>::slot_bytes() == 32, "two in a cache line");

struct FidTable {
    FidMap<FidState> fids;
    std::uint64_t generation = 1; // of the lanes

    // The state of a fid whose lane is known; nullptr: it is to be looked up.
    FidState* find_current(Fid fid) noexcept {
        FidState* const state = fids.find_or_vacant(fid); // whose generation is 0
        return state != nullptr && state->generation == generation ? state : nullptr;
    }
};

} // namespace detail
} // namespace netio::pubsub::inline v0_2
