// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// A message in memory of its own.
struct Message {
    Fid fid{};
    std::uint8_t status = 0;
    std::uint64_t missed = 0; // as MessageBatch::Item's
    bool is_gap = false;
    std::vector<std::byte> bytes;
};

} // namespace netio::pubsub::inline v0_2
