// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of a fid that publish() needs. In a separate header, because the publish() of users is
// inline. No I/O.

#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/wire.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_3 {
namespace detail {

// The page that is being filled for all fids of one group. Without a page the writer has no room.
struct GroupWriter {
    PageWriter writer;
};

struct FidState {
    std::uint64_t published = 0; // messages that were accepted, or had no subscriber
    std::uint64_t generation = 0;
    GroupWriter* group = nullptr; // of that generation
};

static_assert(FidMap<FidState>::slot_bytes() == 32, "two in a cache line");

struct FidTable {
    FidMap<FidState> fids;
    std::uint64_t generation = 1; // of the groups

    // The state of a fid whose group is known; nullptr: FanOut::lookup() must find the group.
    FidState* find_current(Fid fid) noexcept {
        FidState* const state = fids.find_or_vacant(fid); // whose generation is 0
        return state != nullptr && state->generation == generation ? state : nullptr;
    }
};

} // namespace detail
} // namespace netio::pubsub::inline v0_3
