// SPDX-License-Identifier: Apache-2.0
#include "apps/common/peer_log.hpp"

#include "tests/support/sim_world.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <vector>

namespace apps {
namespace {

TEST(PeerLog, AFloodOfOneKindIsCountedAndHidesNoOtherKind) {
    netio::test::SimWorld world;
    netio::EventLoop loop{netio::EventLoop::Options{}, world};
    std::vector<std::string> lines;
    const auto write = [&](const std::string& line) { lines.push_back(line); };
    std::optional<PeerLog> log{std::in_place, loop, write, write, write};
    constexpr auto limit = LimitedLog::lines_per_interval;
    for (std::uint64_t i = 0; i < 50 * limit; ++i)
        log->info("somebody has come");
    EXPECT_EQ(lines.size(), limit);
    log->warn("somebody was refused");
    log->error("a disk is full");
    EXPECT_EQ(lines.size(), limit + 2);
    log.reset();
    EXPECT_THAT(lines.back(), testing::HasSubstr("has come (and 4899 before it)"));
}

} // namespace
} // namespace apps
