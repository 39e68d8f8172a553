// SPDX-License-Identifier: Apache-2.0
#include "netio/base/unseen.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace netio {
namespace {

std::string utf8(std::uint32_t code) {
    const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
    if (code < 0x80) return {byte(code)};
    if (code < 0x800) return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
    const std::string last{byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
    if (code < 0x10000) return byte(0xe0 | code >> 12) + last;
    return std::string{byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f))} + last;
}

// Unicode: the categories Cc, Zl and Zp, and the characters of the property Bidi_Control.
bool acts_on_a_reader(std::uint32_t code) {
    const bool is_control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
    const bool is_separator = code == 0x2028 || code == 0x2029;
    const bool turns = code == 0x061c || code == 0x200e || code == 0x200f ||
                       (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return is_control || is_separator || turns;
}

TEST(Unseen, IsWhatActsOnATerminalOrOnAReaderAndNothingElse) {
    for (std::uint32_t code = 0; code < 0x110000; ++code) {
        if (code >= 0xd800 && code < 0xe000) continue; // no characters
        const bool expected = acts_on_a_reader(code);
        ASSERT_EQ(has_unseen(utf8(code)), expected) << std::hex << code;
        ASSERT_EQ(has_unseen("a" + utf8(code) + "b"), expected) << std::hex << code;
    }
}

TEST(Unseen, AByteAloneCountsWhereATerminalTakesItForAControl) {
    for (int byte = 0x80; byte < 0x100; ++byte) {
        const std::string alone{static_cast<char>(byte)};
        EXPECT_EQ(has_unseen(alone), byte < 0xa0) << std::hex << byte;
        EXPECT_EQ(has_unseen(alone + "x"), byte < 0xa0) << std::hex << byte;
    }
    EXPECT_FALSE(has_unseen("na\xefve")) << "Latin 1";
    EXPECT_TRUE(has_unseen("\xe2\x80")) << "the rest of what was cut off";
    EXPECT_FALSE(has_unseen(""));
}

} // namespace
} // namespace netio
