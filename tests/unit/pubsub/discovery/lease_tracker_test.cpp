// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/lease_tracker.hpp"

#include <gmock/gmock.h>

#include <random>

namespace netio::pubsub {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Seen = LeaseTracker::Seen;

constexpr TimePoint start{seconds{1000}};

Announcement of(const std::string& name, std::uint64_t instance, std::uint64_t counter) {
    return {.name = name, .instance = instance, .counter = counter};
}

class Leases : public testing::Test {
  protected:
    LeaseTracker tracker{seconds{10}, 3};
};

TEST_F(Leases, APublisherIsFoundAtOnce) {
    EXPECT_EQ(tracker.saw(of("a", 1, 1), start), Seen::found);
    EXPECT_EQ(tracker.alive(), 1U);
}

TEST_F(Leases, WhoseCounterMovesStays) {
    tracker.saw(of("a", 1, 1), start);
    EXPECT_EQ(tracker.saw(of("a", 1, 2), start + seconds{9}), Seen::alive);
    EXPECT_THAT(tracker.expire(start + seconds{18}), IsEmpty());
    EXPECT_EQ(tracker.next_expiry(), start + seconds{19});
}

TEST_F(Leases, WhoseCounterDoesNotMoveIsGoneHoweverOftenItIsRead) {
    tracker.saw(of("a", 1, 1), start);
    EXPECT_EQ(tracker.saw(of("a", 1, 1), start + seconds{9}), Seen::stale);
    EXPECT_THAT(tracker.expire(start + seconds{10}), ElementsAre("a"));
    EXPECT_THAT(tracker.expire(start + seconds{10}), IsEmpty());
}

TEST_F(Leases, WhoAnnouncesALeaseOfItsOwnIsJudgedByIt) {
    Announcement quick = of("quick", 1, 1);
    quick.lease = seconds{1};
    Announcement slow = of("slow", 1, 1);
    slow.lease = seconds{60};
    tracker.saw(quick, start);
    tracker.saw(slow, start);
    EXPECT_EQ(tracker.next_expiry(), start + seconds{1});
    EXPECT_THAT(tracker.expire(start + seconds{2}), ElementsAre("quick"));
    EXPECT_THAT(tracker.expire(start + seconds{59}), IsEmpty());
    EXPECT_THAT(tracker.expire(start + seconds{60}), ElementsAre("slow"));
}

TEST_F(Leases, WhatAllOfThemSayHasALimit) {
    Announcement wordy = of("a", 1, 1);
    wordy.fids.resize(10, {.fids = {}, .meaning = std::string(100, 'm')});
    const std::size_t each = 10 * (sizeof(AnnouncedFids) + 100);
    LeaseTracker small{seconds{10}, 100, 2 * each};
    const auto say = [&](const char* name, std::uint64_t counter) {
        wordy.name = name;
        wordy.counter = counter;
        return small.saw(wordy, start);
    };
    EXPECT_EQ(say("a", 1), Seen::found);
    EXPECT_EQ(say("b", 1), Seen::found);
    EXPECT_EQ(say("c", 1), Seen::refused);
    EXPECT_EQ(say("b", 2), Seen::alive) << "in place of what it said before";
    EXPECT_TRUE(small.withdrawn("a"));
    EXPECT_EQ(say("c", 1), Seen::found);
    wordy.fids.resize(11, wordy.fids.front());
    EXPECT_EQ(say("c", 2), Seen::refused);
    EXPECT_EQ(small.saw(of("c", 1, 3), start), Seen::changed);
    EXPECT_EQ(small.expire(start + seconds{10}).size(), 2U);
    EXPECT_EQ(small.saw(of("d", 1, 1), start + seconds{10}), Seen::found);
}

TEST_F(Leases, WhatAKilledPublisherLeftIsNotFoundAgain) {
    tracker.saw(of("a", 1, 1), start);
    tracker.expire(start + seconds{10});
    EXPECT_EQ(tracker.saw(of("a", 1, 1), start + seconds{11}), Seen::stale);
    EXPECT_EQ(tracker.alive(), 0U);
}

TEST_F(Leases, WhoWasOnlyStoppedIsFoundAgain) {
    tracker.saw(of("a", 1, 1), start);
    tracker.expire(start + seconds{10});
    EXPECT_EQ(tracker.saw(of("a", 1, 2), start + seconds{11}), Seen::found);
}

TEST_F(Leases, ARestartedPublisherTakesItsNameAtOnce) {
    tracker.saw(of("a", 1, 1), start);
    EXPECT_EQ(tracker.saw(of("a", 2, 1), start + seconds{1}), Seen::changed);
    EXPECT_THAT(tracker.expire(start + seconds{10}), IsEmpty());
}

TEST_F(Leases, TwoOfOneNameDoNotTakeTurns) {
    tracker.saw(of("a", 1, 1), start);
    tracker.saw(of("a", 2, 1), start);
    EXPECT_EQ(tracker.saw(of("a", 1, 2), start), Seen::contested);
    EXPECT_EQ(tracker.saw(of("a", 2, 2), start), Seen::alive);
}

TEST_F(Leases, TheFirstOfTwoMayComeBackWhenTheOtherIsGone) {
    tracker.saw(of("a", 1, 1), start);
    tracker.saw(of("a", 2, 1), start);
    tracker.expire(start + seconds{10});
    EXPECT_EQ(tracker.saw(of("a", 1, 2), start + seconds{10}), Seen::found);
}

TEST_F(Leases, NewFidsAreAChange) {
    tracker.saw(of("a", 1, 1), start);
    Announcement more = of("a", 1, 2);
    more.fids.push_back({.fids = {.first = Fid{1}, .last = Fid{2}}, .meaning = {}});
    EXPECT_EQ(tracker.saw(more, start), Seen::changed);
    more.counter = 3;
    EXPECT_EQ(tracker.saw(more, start), Seen::alive);
}

TEST_F(Leases, OnlySoManyAreTaken) {
    for (const char* name : {"a", "b", "c"})
        tracker.saw(of(name, 1, 1), start);
    EXPECT_EQ(tracker.saw(of("d", 1, 1), start), Seen::refused);
    EXPECT_TRUE(tracker.withdrawn("b"));
    EXPECT_EQ(tracker.saw(of("d", 1, 1), start), Seen::found);
    EXPECT_FALSE(tracker.withdrawn("b"));
}

TEST_F(Leases, WhoseBusKeepsThemAreTakenOnceThereIsRoom) {
    const TimePoint later = start + seconds{9};
    for (const char* name : {"a", "b", "c", "d"})
        tracker.saw(of(name, 1, 1), start);
    for (const char* name : {"a", "b", "d"})
        EXPECT_TRUE(tracker.keep(name, later)) << "to read it again would not help";
    EXPECT_THAT(tracker.expire(start + seconds{10}), ElementsAre("c"));
    EXPECT_TRUE(tracker.keep("a", later));
    EXPECT_FALSE(tracker.keep("d", later));
    EXPECT_EQ(tracker.saw(of("d", 1, 1), later), Seen::found);
    EXPECT_EQ(tracker.saw(of("c", 1, 2), later), Seen::refused);
    EXPECT_TRUE(tracker.keep("c", later));
    tracker.withdrawn("a");
    EXPECT_FALSE(tracker.keep("c", later)) << "it was known, and its last word was refused";
    EXPECT_EQ(tracker.saw(of("c", 1, 2), later), Seen::found);
    EXPECT_TRUE(tracker.keep("c", later));
}

TEST_F(Leases, NobodyIsJudgedByATimeInWhichNothingCouldBeRead) {
    tracker.saw(of("a", 1, 1), start);
    tracker.excuse_all(start + seconds{30});
    EXPECT_THAT(tracker.expire(start + seconds{39}), IsEmpty());
    EXPECT_THAT(tracker.expire(start + seconds{40}), ElementsAre("a"));
}

// Whatever is read, those that are alive are those whose last move is younger than the lease.
TEST_F(Leases, AtRandomAgreeWithASimplerBook) {
    std::mt19937 random{1};
    LeaseTracker many{seconds{10}, 100};
    std::map<std::string, std::pair<std::uint64_t, TimePoint>> book; // counter, when it moved
    TimePoint now = start;
    for (int step = 0; step < 20000; ++step) {
        const std::string name{static_cast<char>('a' + random() % 20)};
        auto& [counter, moved] = book.try_emplace(name, 0, TimePoint{}).first->second;
        if (random() % 4 == 0) {
            ++counter;
            moved = now;
        }
        if (counter > 0) many.saw(of(name, 1, counter), now);
        now += std::chrono::milliseconds{random() % 500};
        many.expire(now);
        std::size_t alive = 0;
        for (const auto& [each, held] : book)
            if (held.first > 0 && now - held.second < seconds{10}) ++alive;
        ASSERT_EQ(many.alive(), alive) << step;
    }
}

} // namespace
} // namespace netio::pubsub
