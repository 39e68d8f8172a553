// SPDX-License-Identifier: Apache-2.0
#include "stream/core/protocol.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

namespace netio::stream::protocol_test {
namespace {

constexpr std::uint32_t last = std::numeric_limits<std::uint32_t>::max();

TEST(Sequence, CountsBytesWithoutWrappingAt32Bits) {
    Sequence position{last};
    position += 2;

    EXPECT_EQ(position.value(), std::uint64_t{last} + 2);
    EXPECT_EQ(position - Sequence{last}, 2U);
    EXPECT_LT(Sequence{last}, position);
    EXPECT_EQ(Sequence{7} + 3, Sequence{10});
}

TEST(Phase, R6IsDirectWhenEvenAndStartsDirect) {
    EXPECT_TRUE(Phase{}.is_direct());
    EXPECT_FALSE(Phase{1}.is_direct());
    EXPECT_TRUE(Phase{2}.is_direct());
    EXPECT_EQ(Phase{1}.next(), Phase{2});
}

TEST(Phase, R6DistanceHasASignAndIsTheSameAcrossTheWrap) {
    constexpr std::array<std::uint32_t, 6> begins{0, 1, 5, last / 2, last - 1, last};
    for (const std::uint32_t begin : begins) {
        Phase later{begin};
        for (std::int32_t steps = 0; steps < 5; ++steps) {
            EXPECT_EQ(later - Phase{begin}, steps) << begin;
            EXPECT_EQ(Phase{begin} - later, -steps) << begin;
            later = later.next();
        }
    }
}

TEST(Phase, R6KeepsTurnsOfDirectAndIndirectAcrossTheWrap) {
    Phase phase{last - 2};
    for (int i = 0; i < 6; ++i) {
        EXPECT_NE(phase.is_direct(), phase.next().is_direct()) << phase.value();
        phase = phase.next();
    }
}

TEST(RingSpan, WrapsAround) {
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
} // namespace netio::stream::protocol_test
