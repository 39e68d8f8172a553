// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/connection_places.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub {
namespace {

constexpr SourceId a{1};
constexpr SourceId b{2};
constexpr SourceId c{3};
constexpr SourceId d{4};

TEST(ConnectionPlaces, AreHeldOnceByEachAndNotByMoreThanTheLimit) {
    ConnectionPlaces places{2};
    EXPECT_TRUE(places.take(a));
    EXPECT_TRUE(places.take(a)) << "it has one";
    EXPECT_TRUE(places.has_room());
    EXPECT_TRUE(places.take(b));
    EXPECT_FALSE(places.has_room());
    EXPECT_FALSE(places.take(c));
    EXPECT_TRUE(places.take(b));
    EXPECT_TRUE(places.is_passed_over(c));
    EXPECT_FALSE(places.is_passed_over(a));
    EXPECT_EQ(places.next(), std::nullopt) << "there is no room";
}

TEST(ConnectionPlaces, ThatBecomeFreeAreForThoseThatWerePassedOverInTurns) {
    ConnectionPlaces places{1};
    ASSERT_TRUE(places.take(c));
    ASSERT_FALSE(places.take(b));
    ASSERT_FALSE(places.take(d));
    places.give_back(c);
    EXPECT_EQ(places.next(), b);
    ASSERT_TRUE(places.take(b));
    EXPECT_FALSE(places.take(a));
    places.give_back(b);
    EXPECT_EQ(places.next(), d) << "the one behind the last";
    EXPECT_EQ(places.next(), a) << "as long as there is room";
    EXPECT_EQ(places.next(), std::nullopt);
}

TEST(ConnectionPlaces, WhoIsForgottenIsNotAskedLater) {
    ConnectionPlaces places{1};
    ASSERT_TRUE(places.take(a));
    ASSERT_FALSE(places.take(b));
    places.forget(b);
    EXPECT_FALSE(places.is_passed_over(b));
    places.forget(a);
    EXPECT_EQ(places.next(), std::nullopt);
    EXPECT_TRUE(places.take(c));
}

TEST(ConnectionPlaces, ThatSomebodyIsPassedOverIsToldOnceUntilNobodyIs) {
    ConnectionPlaces places{1};
    EXPECT_EQ(places.untold(), std::nullopt);
    ASSERT_TRUE(places.take(a));
    ASSERT_FALSE(places.take(b));
    EXPECT_EQ(places.untold(), b);
    ASSERT_FALSE(places.take(c));
    EXPECT_EQ(places.untold(), std::nullopt);
    places.forget(b);
    EXPECT_EQ(places.untold(), std::nullopt);
    places.forget(c);
    ASSERT_FALSE(places.take(d));
    EXPECT_EQ(places.untold(), d);
}

TEST(ConnectionPlaces, WhoGetsOneBeforeItsTurnIsPassedOverNoMore) {
    ConnectionPlaces places{1};
    ASSERT_TRUE(places.take(a));
    ASSERT_FALSE(places.take(b));
    places.give_back(a);
    EXPECT_TRUE(places.take(b));
    EXPECT_FALSE(places.is_passed_over(b));
    places.give_back(b);
    EXPECT_EQ(places.next(), std::nullopt);
}

} // namespace
} // namespace netio::pubsub
