// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/subscribe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace apps::subscribe::subscribe_log_test {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

TEST(ContestLog, LogsOneLinePerContestUpToALimitPerInterval) {
    netio::EventLoop loop;
    std::vector<std::string> lines;
    ContestLog log{loop, [&](const std::string& line) { lines.push_back(line); }};
    const std::string owner = "one";
    const netio::pubsub::FidRange first{.first = netio::pubsub::Fid{16},
                                        .last = netio::pubsub::Fid{16}};
    log.note({.owner = owner, .other = "other", .first = first, .fids = 29341});
    log.note({.owner = owner, .other = "other", .first = first, .fids = 1});
    EXPECT_THAT(lines,
                ElementsAre("one and other both announce 0x10 and 29340 more fids; using one",
                            "one and other both announce 0x10; using one"));
    for (int i = 0; i < 1000; ++i)
        log.note({.owner = owner, .other = std::to_string(i), .first = first, .fids = 1});
    EXPECT_THAT(lines, SizeIs(LimitedLog::lines_per_interval));
}

using netio::pubsub::Fid;

TEST(OutageLog, EachOutageHasItsLinesAndASumForTheRest) {
    OutageLog log{nullptr};
    for (int outage = 0; outage < 3; ++outage) {
        for (std::uint64_t fid = 0; fid < 25; ++fid) {
            const auto line = log.note(Fid{fid}, 2);
            ASSERT_EQ(line.has_value(), fid < OutageLog::shown_fids) << fid;
            if (fid == 10) {
                EXPECT_EQ(*line, "lost 2 messages of 0xa while not connected");
            }
        }
        EXPECT_EQ(log.end(), "lost 50 messages of 25 fids in total while not connected");
    }
}

TEST(OutageLog, NoSumRepeatsWhatTheLinesSay) {
    OutageLog log{nullptr};
    EXPECT_EQ(log.end(), std::nullopt);
    for (std::uint64_t fid = 0; fid < OutageLog::shown_fids; ++fid)
        EXPECT_TRUE(log.note(Fid{fid}, 1));
    EXPECT_EQ(log.end(), std::nullopt);
}

TEST(OutageLog, FidsAreShownByTheFieldsOfALayout) {
    OutageLog log{find_layout("felix")};
    EXPECT_EQ(log.note(Fid{0x1000000000000000}, 1)->find("0x1"), std::string::npos);
}

} // namespace

} // namespace apps::subscribe::subscribe_log_test
