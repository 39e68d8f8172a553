// SPDX-License-Identifier: Apache-2.0
#include "apps/file/file.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace apps::file::summary_test {
namespace {

using namespace std::chrono_literals;

netio::RecordingTime after(std::chrono::nanoseconds time) {
    return netio::RecordingTime{1h} + time;
}

TEST(RateHistogram, KeepsEveryMessageWhileItsIntervalsGrow) {
    RateHistogram rate;
    std::uint64_t count = 0;
    for (std::chrono::nanoseconds time{0}; time < 100s; time += 7ms, ++count)
        rate.add(after(time), 10);
    const auto intervals = rate.intervals();
    EXPECT_LE(intervals.size(), RateHistogram::interval_limit);
    EXPECT_GT(intervals.size(), RateHistogram::interval_limit / 2);
    std::uint64_t sum = 0;
    for (const auto& each : intervals)
        sum += each.messages;
    EXPECT_EQ(sum, count);
    // All intervals but the last have the same number, to within one.
    for (std::size_t i = 0; i + 1 < intervals.size(); ++i)
        EXPECT_NEAR(static_cast<double>(intervals[i].messages),
                    static_cast<double>(rate.width() / 7ms), 1);
}

TEST(Summary, CountsAbsentNumbersAndNewBeginnings) {
    Summary summary;
    const auto add = [&](std::uint64_t sequence) {
        summary.add(netio::RecordedMessage{
            .fid = netio::Fid{5}, .sequence = sequence, .arrival_time = after(1s)});
    };
    for (const std::uint64_t sequence : {7U, 8U, 11U, 1U, 2U, 4U})
        add(sequence);
    EXPECT_EQ(summary.lost, 3U);
    EXPECT_EQ(summary.restarts, 1U);
    EXPECT_EQ(summary.fids.at(netio::Fid{5}).messages, 6U);
}

} // namespace
} // namespace apps::file::summary_test
