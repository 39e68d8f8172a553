// SPDX-License-Identifier: Apache-2.0
#include "netio/base/control_characters.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace netio::control_characters_test {
namespace {

std::string utf8(std::uint32_t code) {
    const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
    if (code < 0x80) return {byte(code)};
    if (code < 0x800) return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
    const std::string last{byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
    if (code < 0x10000) return byte(0xe0 | code >> 12) + last;
    return std::string{byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f))} + last;
}

// From the property tables of Unicode, one line per property.
bool acts_on_a_reader(std::uint32_t code) {
    const auto within = [code](std::uint32_t first, std::uint32_t last) {
        return code >= first && code <= last;
    };
    const bool control = within(0, 0x1f) || within(0x7f, 0x9f);
    const bool separator = within(0x2028, 0x2029);
    const bool bidi = code == 0x061c || within(0x200e, 0x200f) || within(0x202a, 0x202e) ||
                      within(0x2066, 0x2069);
    const bool zero_width = within(0x200b, 0x200d) || within(0x2060, 0x2065) || code == 0xfeff ||
                            within(0x206a, 0x206f) || code == 0x180e;
    const bool ignorable = code == 0xad || code == 0x34f || within(0x17b4, 0x17b5) ||
                           within(0xfff0, 0xfff8) || within(0x1bca0, 0x1bca3) ||
                           within(0x1d173, 0x1d17a) || within(0xe0000, 0xe0fff);
    const bool filler = within(0x115f, 0x1160) || code == 0x3164 || code == 0xffa0 ||
                        code == 0x2800 || code == 0x16fe4;
    const bool variation = within(0x180b, 0x180d) || code == 0x180f || within(0xfe00, 0xfe0f);
    const bool annotation = within(0xfff9, 0xfffb) || within(0x13430, 0x1343f);
    return control || separator || bidi || zero_width || ignorable || filler || variation ||
           annotation;
}

TEST(Unseen, IsWhatActsOnATerminalOrIsInvisible) {
    for (std::uint32_t code = 0; code < 0x110000; ++code) {
        if (code >= 0xd800 && code < 0xe000) continue; // surrogates are not characters
        const bool expected = acts_on_a_reader(code);
        ASSERT_EQ(has_unprintable(utf8(code)), expected) << std::hex << code;
        ASSERT_EQ(has_unprintable("a" + utf8(code) + "b"), expected) << std::hex << code;
    }
}

TEST(Unseen, FindsALineEndInAnOverlongSequence) {
    EXPECT_TRUE(has_unprintable("a\xe0\x80\x8a"));
    EXPECT_TRUE(has_unprintable("a\xf0\x80\x80\x8a"));
}

TEST(Unseen, AByteAloneCountsWhereATerminalTakesItForAControl) {
    for (int byte = 0x80; byte < 0x100; ++byte) {
        const std::string alone{static_cast<char>(byte)};
        EXPECT_EQ(has_unprintable(alone), byte < 0xa0) << std::hex << byte;
        EXPECT_EQ(has_unprintable(alone + "x"), byte < 0xa0) << std::hex << byte;
    }
    EXPECT_FALSE(has_unprintable("na\xefve")) << "Latin 1";
    EXPECT_TRUE(has_unprintable("\xe2\x80")) << "an incomplete character";
    EXPECT_FALSE(has_unprintable(""));
}

} // namespace
} // namespace netio::control_characters_test
