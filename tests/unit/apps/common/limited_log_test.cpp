// SPDX-License-Identifier: Apache-2.0
#include "apps/common/limited_log.hpp"

#include "tests/support/sim_world.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <vector>

namespace apps {
namespace {

class LimitedLogTest : public testing::Test {
  protected:
    LimitedLogTest() {
        log.emplace(loop, [this](const std::string& line) { lines.push_back(line); });
    }
    void wait(netio::Duration duration) {
        bool over = false;
        netio::Timer timer{loop, [&] { over = true; }};
        timer.start(duration);
        while (!over)
            loop.run_once(netio::TimePoint::max());
    }

    netio::test::SimWorld world;
    netio::EventLoop loop{netio::EventLoop::Options{}, world};
    std::vector<std::string> lines;
    std::optional<LimitedLog> log;
};

TEST_F(LimitedLogTest, AFloodIsCountedAndNotWritten) {
    for (std::uint64_t i = 0; i < LimitedLog::lines_per_interval + 7; ++i)
        log->note("come");
    EXPECT_EQ(lines.size(), LimitedLog::lines_per_interval);
    wait(LimitedLog::interval);
    EXPECT_EQ(lines.back(), "come (and 6 before it)");
    log->note("next");
    EXPECT_EQ(lines.back(), "next");
}

TEST_F(LimitedLogTest, WhatWasNotCountedIsCountedAtTheEnd) {
    for (std::uint64_t i = 0; i < LimitedLog::lines_per_interval + 1; ++i)
        log->note("come " + std::to_string(i));
    log.reset();
    EXPECT_EQ(lines.back(), "come 100");
}

TEST_F(LimitedLogTest, AFloodThatGoesOnIsALineAnIntervalAndTheNumberOfAll) {
    log.emplace(
        loop, [this](const std::string& line) { lines.push_back(line); }, 1);
    for (int i = 0; i < 25; ++i) {
        log->note("come");
        wait(std::chrono::seconds{1});
    }
    EXPECT_EQ(lines, (std::vector<std::string>{"come", "come (and 8 before it)",
                                               "come (and 9 before it)"}));
}

TEST_F(LimitedLogTest, TheOrdinaryIsWrittenAtOnce) {
    log->note("one");
    log->note("two");
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
    wait(2 * LimitedLog::interval);
    EXPECT_EQ(lines.size(), 2U);
}

} // namespace
} // namespace apps
