// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/byte_pattern.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace apps::pump {
namespace {

std::vector<std::byte> filled(std::size_t size, std::uint64_t seed, std::uint64_t position) {
    std::vector<std::byte> bytes(size);
    fill_stream(bytes, seed, position);
    return bytes;
}

TEST(BytePattern, IsTheSameHoweverItIsCut) {
    const auto whole = filled(1'000, 7, 0);
    std::mt19937_64 random{1};
    for (int i = 0; i < 1'000; ++i) {
        const std::size_t from = random() % 1'000;
        const std::size_t size = random() % (1'001 - from);
        const std::vector expected(whole.begin() + static_cast<std::ptrdiff_t>(from),
                                   whole.begin() + static_cast<std::ptrdiff_t>(from + size));
        EXPECT_EQ(filled(size, 7, from), expected) << from << " + " << size;
        EXPECT_FALSE(find_wrong_byte(expected, 7, from));
    }
}

TEST(BytePattern, FindsEverySingleWrongByte) {
    for (std::uint64_t position = 0; position < 9; ++position) {
        for (std::size_t size = 1; size < 40; ++size) {
            auto bytes = filled(size, 3, position);
            for (std::size_t i = 0; i < size; ++i) {
                bytes[i] ^= std::byte{1};
                EXPECT_EQ(find_wrong_byte(bytes, 3, position), i);
                bytes[i] ^= std::byte{1};
            }
        }
    }
}

TEST(BytePattern, AnotherSeedOrPositionIsWrong) {
    const auto bytes = filled(100, 3, 50);
    EXPECT_TRUE(find_wrong_byte(bytes, 4, 50));
    EXPECT_TRUE(find_wrong_byte(bytes, 3, 51));
    EXPECT_TRUE(find_wrong_byte(bytes, 3, 58));
}

} // namespace
} // namespace apps::pump
