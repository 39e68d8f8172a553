// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/complaints.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub {
namespace {

using std::chrono::seconds;

constexpr TimePoint start{seconds{1000}};

TEST(Complaints, ATroubleIsToldAgainWhenTheIntervalIsOverAndNotBefore) {
    Complaints complaints;
    EXPECT_EQ(complaints.about("one", start), "one");
    EXPECT_EQ(complaints.about("one", start + seconds{30}), std::nullopt);
    EXPECT_EQ(complaints.about("other", start + seconds{30}), "other");
    EXPECT_EQ(complaints.about("one", start + seconds{60} - Duration{1}), std::nullopt);
    EXPECT_EQ(complaints.about("one", start + seconds{60}), "one") << "since it was told";
    EXPECT_EQ(complaints.about("other", start + seconds{60}), std::nullopt);
    EXPECT_EQ(complaints.about("other", start + seconds{90}), "other");
}

TEST(Complaints, ThatThereAreMoreThanTheLimitIsToldOnceInAnInterval) {
    Complaints complaints;
    for (std::size_t i = 0; i < Complaints::limit; ++i)
        EXPECT_EQ(complaints.about(std::to_string(i), start), std::to_string(i));
    EXPECT_EQ(complaints.about("0", start), std::nullopt) << "it has been told";
    EXPECT_EQ(complaints.about("more", start), "the bus has more troubles than are told");
    for (const char* const next : {"more", "still more", "0"})
        EXPECT_EQ(complaints.about(next, start + seconds{59}), std::nullopt) << next;
    EXPECT_EQ(complaints.about("more", start + seconds{60}), "more");
}

} // namespace
} // namespace netio::pubsub
