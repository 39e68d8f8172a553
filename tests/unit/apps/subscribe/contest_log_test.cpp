// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/contest_log.hpp"

#include <gmock/gmock.h>

namespace apps::subscribe {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

TEST(ContestLog, TellsEachTwoOnceHoweverManyRangesAndSoManyInAnInterval) {
    netio::EventLoop loop;
    std::vector<std::string> lines;
    ContestLog log{loop, [&](const std::string& line) { lines.push_back(line); }};
    const std::string owner = "one";
    const netio::pubsub::FidRange first{.first = netio::pubsub::Fid{16},
                                        .last = netio::pubsub::Fid{16}};
    log.note({.owner = owner, .other = "other", .first = first, .fids = 29341});
    log.note({.owner = owner, .other = "other", .first = first, .fids = 1});
    EXPECT_THAT(lines,
                ElementsAre("one and other both announce 0x10 and 29340 more fids; taken from one",
                            "one and other both announce 0x10; taken from one"));
    for (int i = 0; i < 1000; ++i)
        log.note({.owner = owner, .other = std::to_string(i), .first = first, .fids = 1});
    EXPECT_THAT(lines, SizeIs(LimitedLog::lines_per_interval));
}

} // namespace
} // namespace apps::subscribe
