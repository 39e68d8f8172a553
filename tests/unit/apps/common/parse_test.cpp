// SPDX-License-Identifier: Apache-2.0
#include "apps/common/parse.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace apps::parse_test {
namespace {

using namespace std::chrono_literals;

TEST(Quantity, CountsHaveThousands) {
    EXPECT_EQ(parse_count("0"), 0U);
    EXPECT_EQ(parse_count("0x10"), 16U);
    EXPECT_EQ(parse_count("10k"), 10'000U);
    EXPECT_EQ(parse_count("1.5M"), 1'500'000U);
    EXPECT_EQ(parse_count("18446744073709551615"), UINT64_MAX);
}

TEST(Quantity, BytesHavePowersOfTwo) {
    EXPECT_EQ(parse_bytes("10"), 10U);
    for (const auto* text : {"64k", "64K", "64kb", "64kB", "64 KiB", "65536b"})
        EXPECT_EQ(parse_bytes(text), 65536U) << text;
    EXPECT_EQ(parse_bytes("1.5M"), 3U << 19);
    EXPECT_EQ(parse_bytes("2G"), 2ULL << 30);
}

TEST(Quantity, WhatIsNoneOrDoesNotFitIsRefused) {
    for (const auto* text : {"", "-1", "+1", "x", "1x", "k", "1.5", "0.3k", "nan", "inf", "0x",
                             "1e99", "99999999999999999999", "17179869184G", "1 2", " 1"}) {
        EXPECT_FALSE(parse_bytes(text)) << text;
    }
    EXPECT_FALSE(parse_count("64kb")) << "only bytes";
    for (const auto* text : {"", "-1", "nan", "inf", "fast"})
        EXPECT_FALSE(parse_rate(text)) << text;
}

TEST(Quantity, RatesHaveThousandsAndParts) {
    EXPECT_EQ(parse_rate("0.5"), 0.5);
    EXPECT_EQ(parse_rate("10k"), 10'000.0);
    EXPECT_EQ(parse_rate("1e6"), 1e6);
}

TEST(Quantity, DurationsHaveAUnit) {
    EXPECT_EQ(parse_duration("10s"), 10s);
    EXPECT_EQ(parse_duration("0.5s"), 500ms);
    EXPECT_EQ(parse_duration("40us"), 40us);
    EXPECT_EQ(parse_duration("1800ns"), 1800ns);
    EXPECT_EQ(parse_duration("1.1us"), 1100ns) << "although the product is a little larger";
    EXPECT_EQ(parse_duration("0.1ns"), 1ns);
    EXPECT_EQ(parse_duration("250ms"), 250ms);
    EXPECT_EQ(parse_duration("2m"), 2min);
    EXPECT_EQ(parse_duration("2 min"), 2min);
    EXPECT_EQ(parse_duration("1h"), 1h);
    EXPECT_EQ(parse_duration("1e-300s"), 1ns) << "not 0, which means immediately";
    EXPECT_EQ(parse_duration("3650d"), longest_duration);
}

TEST(Quantity, DurationsThatNoClockCanCountAreRefused) {
    for (const auto* text : {"0", "-1", "10", "0.5", "0s", "-1s", "nan", "inf", "1e10s", "1e300s",
                             "3651d", "10x", "s"})
        EXPECT_FALSE(parse_duration(text)) << text;
    EXPECT_EQ(duration_problem("10"), "'10' has no unit");
    EXPECT_EQ(duration_problem("10x"), "'10x' is not a time");
    EXPECT_EQ(duration_problem("3651d"), "'3651d' is out of range");
}

TEST(Quantity, WhatIsShownIsWhatIsRead) {
    EXPECT_EQ(shown_time(0s), "0");
    for (const auto& [time, text] : {std::pair<netio::Duration, const char*>{1800ns, "1800ns"},
                                     {40us, "40us"},
                                     {1500ms, "1500ms"},
                                     {60s, "60s"},
                                     {1h, "1h"},
                                     {24h * 365, "365d"}}) {
        EXPECT_EQ(shown_time(time), text);
        EXPECT_EQ(parse_duration(text), time);
    }
    for (const auto& [bytes, text] : {std::pair<std::uint64_t, const char*>{0, "0"},
                                      {1000, "1000"},
                                      {4096, "4KiB"},
                                      {3U << 20U, "3MiB"},
                                      {std::uint64_t{16} << 30U, "16GiB"},
                                      {std::uint64_t{1} << 40U, "1TiB"}}) {
        EXPECT_EQ(shown_bytes(bytes), text);
        EXPECT_EQ(parse_bytes(text), bytes);
    }
}

TEST(Spelling, TheNearestWordIsSuggestedIfItIsNear) {
    const std::string_view words[] = {"publish", "subscribe", "pump"};
    EXPECT_EQ(suggestion("subcribe", words), " (did you mean 'subscribe'?)");
    EXPECT_EQ(suggestion("pumb", words), " (did you mean 'pump'?)");
    EXPECT_EQ(suggestion("pub", words), " (did you mean 'publish'?)") << "it begins with this";
    EXPECT_EQ(suggestion("doctor", words), "");
    EXPECT_EQ(suggestion("x", {}), "");
}

} // namespace

} // namespace apps::parse_test
