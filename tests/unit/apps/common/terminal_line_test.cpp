// SPDX-License-Identifier: Apache-2.0
#include "apps/common/terminal_line.hpp"

#include <gmock/gmock.h>

namespace apps {
namespace {

TEST(TerminalLine, StandsInThePlaceOfTheOneBefore) {
    EXPECT_EQ(in_its_place("45%", 80), "\r45%\x1b[K");
}

TEST(TerminalLine, IsCutToWhatTheTerminalShowsInOneLine) {
    EXPECT_EQ(in_its_place("123456789", 10), "\r123456789\x1b[K");
    EXPECT_EQ(in_its_place("1234567890", 10), "\r123456789\x1b[K") << "the cursor needs a column";
    EXPECT_EQ(in_its_place("1234567890", 2), "\r1\x1b[K");
}

TEST(TerminalLine, WhatAStrangerHasNamedDoesNotLeaveIt) {
    EXPECT_EQ(in_its_place("a\nb\x1b[2J", 80), "\ra?b?[2J\x1b[K");
}

} // namespace
} // namespace apps
