// SPDX-License-Identifier: Apache-2.0
#include "apps/common/terminal_line.hpp"

#include "apps/common/descriptor.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

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
    EXPECT_EQ(in_its_place("a\nb\x1b[2J", 80), "\ra\\nb\\u001b[2J\x1b[K");
}

// A terminal in the place of standard output, which nobody reads.
class UnreadTerminal {
  public:
    UnreadTerminal() : before_{::dup(STDOUT_FILENO)}, leader_{::posix_openpt(O_RDWR | O_NOCTTY)} {
        EXPECT_EQ(::grantpt(leader_.get()) + ::unlockpt(leader_.get()), 0);
        const Descriptor follower{::open(::ptsname(leader_.get()), O_RDWR | O_NOCTTY)};
        EXPECT_TRUE(follower.is_open());
        ::dup2(follower.get(), STDOUT_FILENO);
        ::alarm(60); // whoever waits for it waits for ever
    }
    ~UnreadTerminal() {
        ::alarm(0);
        ::dup2(before_.get(), STDOUT_FILENO);
    }
    UnreadTerminal(const UnreadTerminal&) = delete;
    UnreadTerminal& operator=(const UnreadTerminal&) = delete;

  private:
    Descriptor before_;
    Descriptor leader_;
};

TEST(TerminalLine, IsLeftOutWhereTheTerminalTakesNoMore) {
    for (const std::size_t length : {1U, 100U, 255U, 1000U, 40'000U}) {
        const UnreadTerminal terminal;
        std::size_t lines = 0;
        while (put_on_terminal(std::string(length, 'x')))
            ++lines;
        EXPECT_GT(lines, 0U);
    }
}

} // namespace
} // namespace apps
