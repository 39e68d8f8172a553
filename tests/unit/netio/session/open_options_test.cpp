// SPDX-License-Identifier: Apache-2.0
#include "netio/session/open_options.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace netio::test {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
    std::vector<std::byte> bytes;
    for (const int number : numbers)
        bytes.push_back(static_cast<std::byte>(number));
    return bytes;
}

TEST(OpenOptions, ComeOutAsTheyWentIn) {
    for (unsigned roles = 0; roles < 256; ++roles) {
        OpenOptionsBytes out;
        const OpenOptions options{.roles = static_cast<std::uint8_t>(roles)};
        const std::size_t size = encode(options, out);
        EXPECT_EQ(size, roles == 0 ? 0U : 9U);
        EXPECT_EQ(decode_open_options(std::span{out}.first(size)), options);
    }
}

TEST(OpenOptions, LieWhereTheDocumentSays) {
    OpenOptionsBytes out;
    const std::size_t size = encode({.roles = 6}, out);
    const auto expected = bytes_of({1, 0, 0, 0, 0x01, 0x80, 1, 0, 6});
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin()));
    EXPECT_EQ(size, expected.size());
}

TEST(OpenOptions, WhatIsNotKnownIsPassedOverUnlessItMustBeKnown) {
    const auto optional = bytes_of({1, 0, 0, 0, 7, 0, 2, 0, 9, 9, 0x01, 0x80, 1, 0, 6});
    EXPECT_EQ(decode_open_options(optional), (OpenOptions{.roles = 6}));
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0, 7, 0x80, 0, 0})), std::nullopt);
}

TEST(OpenOptions, RefusesWhatIsMalformed) {
    for (const auto& bytes :
         {bytes_of({1}), bytes_of({2, 0, 0, 0}), bytes_of({1, 0, 0, 1}), bytes_of({1, 0, 0, 0, 7}),
          bytes_of({1, 0, 0, 0, 7, 0, 3, 0, 1}), bytes_of({1, 0, 0, 0, 0x01, 0x80, 1, 0, 0}),
          bytes_of({1, 0, 0, 0, 0x01, 0x80, 2, 0, 1, 1}),
          bytes_of({1, 0, 0, 0, 0x01, 0x80, 1, 0, 1, 0x01, 0x80, 1, 0, 1})})
        EXPECT_EQ(decode_open_options(bytes), std::nullopt);
    EXPECT_EQ(decode_open_options({}), OpenOptions{});
}

TEST(OpenOptions, HaveNothingOfWhatWasInTheirMemory) {
    OpenOptionsBytes out;
    out.fill(std::byte{0xff});
    const std::size_t size = encode({.roles = 6}, out);
    const auto expected = bytes_of({1, 0, 0, 0, 0x01, 0x80, 1, 0, 6});
    ASSERT_EQ(size, expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin()));
}

TEST(OpenOptions, MayBeAListOfNothingAndHaveAnOptionWithoutAValue) {
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0})), OpenOptions{});
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0, 7, 0, 0, 0})), OpenOptions{});
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0, 7, 0, 0, 0, 0x01, 0x80, 1, 0, 6})),
              (OpenOptions{.roles = 6}));
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0, 0x01, 0x80, 0, 0})), std::nullopt)
        << "roles need one";
}

} // namespace
} // namespace netio::test
