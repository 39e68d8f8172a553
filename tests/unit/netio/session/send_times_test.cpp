// SPDX-License-Identifier: Apache-2.0
#include "netio/session/send_times.hpp"

#include <gtest/gtest.h>

namespace netio::send_times_test {
namespace {

using namespace std::chrono_literals;

TEST(SendTimes, EachHasItsOwn) {
    SendTimes times;
    const TimePoint begin{1h};
    times.on_posted(begin);
    times.on_posted(begin + 1s);
    times.on_posted(begin + 2s);
    times.on_posted(begin + 3s);
    times.on_sent(begin + 4s);
    times.on_canceled();
    times.on_sent(begin + 4s);
    times.on_sent(begin + 4s);
    EXPECT_EQ(times.latency().count(), 3U);
    EXPECT_EQ(times.latency().sum(), 4s + 2s + 1s);
    EXPECT_EQ(times.latency().longest(), 4s);
}

} // namespace
} // namespace netio::send_times_test
