// SPDX-License-Identifier: Apache-2.0
// How much those who are there may say together, exactly; and what a claim to a name remembers.

#include "pubsub/discovery/lease_tracker.hpp"
#include "pubsub/discovery/name_claim.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using Seen = LeaseTracker::Seen;

constexpr TimePoint start{seconds{1000}};

// Room for twenty ranges, of whomever.
class LeaseRoom : public testing::Test {
  protected:
    Seen say(const std::string& name, std::size_t ranges, TimePoint now = start) {
        Announcement one{.name = name, .instance = 1, .counter = ++counter_};
        one.fids.resize(ranges, {.fids = {}, .meaning = std::string(100, 'm')});
        return tracker.saw(one, now);
    }

    LeaseTracker tracker{seconds{10}, 100, 20 * (sizeof(AnnouncedFids) + 100)};

  private:
    std::uint64_t counter_ = 0;
};

TEST_F(LeaseRoom, IsLargerByWhatSomebodyDoesNotSayAnyMore) {
    EXPECT_EQ(say("a", 10), Seen::found);
    EXPECT_EQ(say("b", 10), Seen::found);
    EXPECT_EQ(say("c", 1), Seen::refused);
    EXPECT_EQ(say("a", 10), Seen::alive);
    EXPECT_TRUE(tracker.keep("c", start)) << "there is no more room than there was";
    EXPECT_EQ(say("a", 7), Seen::changed);
    EXPECT_FALSE(tracker.keep("c", start)) << "it is to be read again";
    EXPECT_EQ(say("c", 4), Seen::refused);
    EXPECT_EQ(say("c", 3), Seen::found);
    EXPECT_EQ(say("d", 1), Seen::refused);
}

TEST_F(LeaseRoom, IsSmallerByWhatSomebodySaysNow) {
    EXPECT_EQ(say("a", 10), Seen::found);
    EXPECT_EQ(say("a", 15), Seen::changed);
    EXPECT_EQ(say("b", 6), Seen::refused);
    EXPECT_EQ(say("b", 5), Seen::found);
    EXPECT_EQ(say("a", 16), Seen::refused);
    EXPECT_EQ(say("a", 15), Seen::alive) << "it has what it had";
}

TEST_F(LeaseRoom, OfThoseWhoAreGoneIsWholeAgain) {
    EXPECT_EQ(say("a", 10), Seen::found);
    EXPECT_EQ(say("b", 10), Seen::found);
    EXPECT_EQ(say("c", 1), Seen::refused);
    EXPECT_THAT(tracker.expire(start + seconds{10}), ElementsAre("a", "b"));
    EXPECT_FALSE(tracker.keep("c", start + seconds{10}));
    EXPECT_EQ(say("d", 10, start + seconds{10}), Seen::found);
    EXPECT_EQ(say("a", 10, start + seconds{10}), Seen::found) << "it is back";
    EXPECT_EQ(say("c", 1, start + seconds{10}), Seen::refused);
    EXPECT_TRUE(tracker.withdrawn("d"));
    EXPECT_FALSE(tracker.withdrawn("b")) << "it was gone before";
    EXPECT_EQ(say("c", 10, start + seconds{10}), Seen::found);
    EXPECT_EQ(say("e", 1, start + seconds{10}), Seen::refused);
}

TEST(LeaseInstances, ThatAreZeroAreTakenForNobodysPredecessor) {
    LeaseTracker tracker{seconds{10}, 3};
    Announcement zero{.name = "a", .instance = 0, .counter = 1};
    EXPECT_EQ(tracker.saw(zero, start), Seen::found);
    zero.counter = 2;
    EXPECT_EQ(tracker.saw(zero, start), Seen::alive);
    EXPECT_TRUE(tracker.keep("a", start));
}

// A file server may show what stood there for a while.
TEST(NameClaim, WhatItsPredecessorLeftIsJudgedFromWhenItWasFirstRead) {
    const std::optional<Announcement> left = Announcement{.name = "a", .instance = 1, .counter = 9};
    NameClaim claim{2, seconds{10}};
    EXPECT_TRUE(claim.may_write(left, false, start));
    EXPECT_FALSE(claim.may_write(left, false, start + seconds{10} - Duration{1}));
    EXPECT_TRUE(claim.may_write(left, false, start + seconds{10}));
}

} // namespace
} // namespace netio::pubsub
