// SPDX-License-Identifier: Apache-2.0
#include "stream/core/ring_span.hpp"

#include <gtest/gtest.h>

namespace netio::stream {
namespace {

TEST(RingSpan, GoesRoundAndRound) {
    const RingSpan ring{.begin = 0, .bytes = 10};
    EXPECT_EQ(ring.offset(0), 0U);
    EXPECT_EQ(ring.offset(9), 9U);
    EXPECT_EQ(ring.offset(10), 0U);
    EXPECT_EQ(ring.bytes_to_end(37), 3U);
}

TEST(RingSpan, BeginsAnywhere) {
    const RingSpan ring{.begin = 7, .bytes = 10};
    EXPECT_EQ(ring.offset(7), 0U);
    EXPECT_EQ(ring.offset(16), 9U);
    EXPECT_EQ(ring.offset(17), 0U);
    EXPECT_EQ(ring.bytes_to_end(7), 10U);
}

TEST(RingSpan, BytesOfTheRingBeforeTakeNoneOfItsSpace) {
    const RingSpan ring{.begin = 7, .bytes = 10};
    EXPECT_EQ(ring.used_bytes(3, 7), 0U);
    EXPECT_EQ(ring.used_bytes(3, 12), 5U);
    EXPECT_EQ(ring.free_bytes(3, 12), 5U);
    EXPECT_EQ(ring.free_bytes(9, 12), 7U);
    EXPECT_EQ(ring.free_bytes(12, 12), 10U);
}

} // namespace
} // namespace netio::stream
