// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many faults were made on purpose: as many as a checker must find who has seen all messages.

#include <cstdint>

namespace apps {

struct FaultCounts {
    std::uint64_t missing = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t corrupted = 0;
    std::uint64_t late = 0; // behind the next one of its fid
    std::uint64_t truncated = 0;

    FaultCounts& operator+=(const FaultCounts& other) {
        missing += other.missing;
        duplicated += other.duplicated;
        corrupted += other.corrupted;
        late += other.late;
        truncated += other.truncated;
        return *this;
    }
    friend bool operator==(const FaultCounts&, const FaultCounts&) = default;
};

} // namespace apps
