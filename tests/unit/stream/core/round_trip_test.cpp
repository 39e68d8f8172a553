// SPDX-License-Identifier: Apache-2.0
#include "stream/core/round_trip.hpp"

#include <gtest/gtest.h>

namespace netio::stream {
namespace {

TEST(RoundTrip, IsTheShortestOfThoseMeasured) {
    RoundTrip trip;
    EXPECT_EQ(trip.shortest(), RoundTrip::Duration::max());
    trip.begin(RoundTrip::Duration{100});
    trip.end(RoundTrip::Duration{150});
    trip.end(RoundTrip::Duration{900});
    EXPECT_EQ(trip.shortest(), RoundTrip::Duration{50});
}

} // namespace
} // namespace netio::stream
