// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/wire.hpp"

#include <gtest/gtest.h>

#include <random>

namespace apps::pump {
namespace {

Header some_header() {
    return {
        .bytes = 1, .seed = 2, .size_min = 3, .size_max = 4, .verify = true, .bidirectional = true};
}

TEST(PumpWire, SurvivesTheJourneyAndLooksAsThePictureSays) {
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

TEST(PumpWire, RefusesWhatIsNoHeaderOrAsksForTheImpossible) {
    const auto good = encode(some_header());
    EXPECT_FALSE(decode_header(std::span{good}.first(47)));
    const auto with = [&](std::size_t at, unsigned value) {
        auto bytes = good;
        bytes[at] = static_cast<std::byte>(value);
        return decode_header(bytes).has_value();
    };
    EXPECT_FALSE(with(0, 'M'));
    EXPECT_FALSE(with(5, 2)) << "another version";
    EXPECT_FALSE(with(24, 0)) << "sends of no bytes would never end";
    EXPECT_FALSE(with(24, 5)) << "the least is more than the most";
    EXPECT_FALSE(with(36, 1)) << "4 GiB and more in one send";
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

} // namespace
} // namespace apps::pump
