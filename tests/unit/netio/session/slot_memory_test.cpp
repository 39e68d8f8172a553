// SPDX-License-Identifier: Apache-2.0
#include "netio/session/slot_memory.hpp"

#include <gtest/gtest.h>

namespace netio {
namespace {

// A peer may say that it takes frames of 4 GiB.
TEST(SlotMemory, GrowsWithWhatIsGatheredAndNotWithWhatThePeerSaysThatItTakes) {
    SlotMemory memory{2};
    for (std::size_t bytes = 1; bytes <= (1U << 20U); bytes += bytes / 2 + 1) {
        const std::size_t size = memory.gather(0, bytes, UINT32_MAX).size();
        EXPECT_GE(size, bytes);
        EXPECT_LE(size, 2 * bytes + frame_extension_limit);
    }
    EXPECT_LE(memory.gather(1, 1, UINT32_MAX).size(), frame_extension_limit + 1);
}

TEST(SlotMemory, IsNeverLargerThanThePeerTakes) {
    SlotMemory memory{1};
    static_cast<void>(memory.gather(0, 600, 1000));
    EXPECT_EQ(memory.gather(0, 700, 1000).size(), 1000U);
}

} // namespace
} // namespace netio
