// SPDX-License-Identifier: Apache-2.0
#include "apps/common/accept_failure_log.hpp"

#include "tests/support/sim_world.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <vector>

namespace apps {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AcceptFailedLogTest : public testing::Test {
  protected:
    AcceptFailedLogTest() {
        log.emplace(loop, [this](const std::string& line) { lines.push_back(line); });
    }
    void note(const std::string& peer) {
        log->note(peer, netio::FabricError{{ENOMEM, std::system_category()}, "no pages; buy some"});
    }
    // Time that passes while the loop runs.
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
    std::optional<AcceptFailureLog> log;
};

TEST_F(AcceptFailedLogTest, TheFirstIsToldAtOnceWithPeerReasonAndRemedy) {
    note("10.0.0.7:4000");
    EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("10.0.0.7:4000 is rejected: "),
                                         HasSubstr("no pages; buy some"),
                                         HasSubstr("Cannot allocate memory"))));
}

TEST_F(AcceptFailedLogTest, AFloodOfThoseWhoAreRejectedHidesNoShortage) {
    for (int i = 0; i < 1000; ++i)
        log->rejected("10.0.0.8:1", "it speaks another protocol or version");
    EXPECT_THAT(lines, ElementsAre(HasSubstr("10.0.0.8:1 is rejected: it speaks another")));
    note("10.0.0.7:4000");
    EXPECT_EQ(lines.size(), 2U);
}

TEST_F(AcceptFailedLogTest, ThoseThatFollowAreALineAnIntervalThatCountsThem) {
    note("first");
    for (int i = 0; i < 40; ++i) {
        note("again");
        wait(std::chrono::milliseconds{100});
    }
    note("last");
    ASSERT_EQ(lines.size(), 1U);
    wait(LimitedLog::interval);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines[1], AllOf(HasSubstr("last is rejected: "), HasSubstr("and 40 before it")));
}

TEST_F(AcceptFailedLogTest, AfterAQuietIntervalTheNextIsToldAtOnce) {
    note("first");
    wait(LimitedLog::interval + std::chrono::seconds{1});
    EXPECT_EQ(lines.size(), 1U) << "there is nothing to tell";
    note("second");
    EXPECT_EQ(lines.size(), 2U);
}

TEST_F(AcceptFailedLogTest, WhatIsLeftIsToldAtTheEnd) {
    note("first");
    note("second");
    log.reset();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines[1], HasSubstr("second"));
}

TEST_F(AcceptFailedLogTest, SaysNothingWhereNothingHappened) {
    wait(2 * LimitedLog::interval);
    log.reset();
    EXPECT_THAT(lines, IsEmpty());
}

} // namespace
} // namespace apps
