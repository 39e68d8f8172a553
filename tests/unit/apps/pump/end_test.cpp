// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/end.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace apps::pump::end_test {
namespace {

Header some_header() {
    return {
        .bytes = 1, .seed = 2, .size_min = 3, .size_max = 4, .verify = true, .bidirectional = true};
}

TEST(PumpWire, IsDecodedUnchangedAndHasTheDocumentedBytes) {
    const auto bytes = encode(some_header());
    EXPECT_EQ(decode_header(bytes), some_header());
    EXPECT_EQ(std::to_integer<char>(bytes[0]), 'N');
    EXPECT_EQ(std::to_integer<char>(bytes[4]), 'P');
    EXPECT_EQ(std::to_integer<int>(bytes[5]), 1);
    EXPECT_EQ(std::to_integer<int>(bytes[8]), 1);
    EXPECT_EQ(std::to_integer<int>(bytes[16]), 2);
    EXPECT_EQ(std::to_integer<int>(bytes[24]), 3);
    EXPECT_EQ(std::to_integer<int>(bytes[32]), 4);
    EXPECT_EQ(std::to_integer<int>(bytes[40]), 3);
}

TEST(PumpWire, RefusesInvalidHeaders) {
    const auto good = encode(some_header());
    EXPECT_FALSE(decode_header(std::span{good}.first(47)));
    const auto with = [&](std::size_t at, unsigned value) {
        auto bytes = good;
        bytes[at] = static_cast<std::byte>(value);
        return decode_header(bytes).has_value();
    };
    EXPECT_FALSE(with(0, 'M'));
    EXPECT_FALSE(with(5, 2)) << "another version";
    EXPECT_FALSE(with(24, 0)) << "sends of 0 bytes would never end";
    EXPECT_FALSE(with(24, 5)) << "the minimum exceeds the maximum";
    EXPECT_FALSE(with(36, 1)) << "4 GiB or more in one send";
    EXPECT_FALSE(with(40, 4)) << "an unknown flag";
    EXPECT_FALSE(with(44, 1));
}

TEST(PumpWire, TakesAnyBytesWithoutHarm) {
    std::mt19937_64 random{1};
    for (int i = 0; i < 10'000; ++i) {
        auto bytes = encode(some_header());
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        if (const auto header = decode_header(bytes)) {
            EXPECT_EQ(encode(*header), bytes);
            EXPECT_LE(header->size_max, size_limit_bytes);
        }
    }
}

std::vector<std::byte> filled(std::size_t size, std::uint64_t seed, std::uint64_t position) {
    std::vector<std::byte> bytes(size);
    fill_stream(bytes, seed, position);
    return bytes;
}

TEST(BytePattern, IsIndependentOfTheDivision) {
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

} // namespace apps::pump::end_test
