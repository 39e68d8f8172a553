// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/require_cxx20.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_3 {

// Another publish socket answers at the address. It counts from the beginning.
struct PublisherChange {
    std::uint64_t former = 0; // instance number of the publish socket that answered before
    std::uint64_t now = 0;
    bool tail_known = false; // the former had sent its totals, so all of its losses are known

    friend bool operator==(const PublisherChange&, const PublisherChange&) = default;
};

} // namespace netio::pubsub::inline v0_3
