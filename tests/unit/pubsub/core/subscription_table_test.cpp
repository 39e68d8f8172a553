// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/subscription_table.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Interest named(std::uint64_t number) {
    return {.subscriber = SubscriberId{number}, .policy = SlowPolicy::block};
}
constexpr Interest a = named(1);
constexpr Interest b = named(2);
constexpr std::size_t plenty = 1000;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

std::vector<Interest> who(const SubscriptionTable& table, Fid fid) {
    const auto members = table.members(table.find(fid));
    return {members.begin(), members.end()};
}

TEST(SubscriptionTable, IsEmptyAtFirst) {
    const SubscriptionTable table{plenty};
    EXPECT_EQ(table.find(Fid{0}), nobody);
    EXPECT_EQ(table.find(Fid{UINT64_MAX}), nobody);
    EXPECT_FALSE(table.wants_anything(a));
}

TEST(SubscriptionTable, TakesTheWholeRangeOfFids) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> added;
    ASSERT_TRUE(table.add(a, range(0, UINT64_MAX), added));
    EXPECT_THAT(added, ElementsAre(range(0, UINT64_MAX)));
    EXPECT_THAT(who(table, Fid{0}), ElementsAre(a));
    EXPECT_THAT(who(table, Fid{UINT64_MAX}), ElementsAre(a));
    std::vector<FidRange> removed;
    ASSERT_TRUE(table.remove(a, range(UINT64_MAX, UINT64_MAX), removed));
    EXPECT_THAT(removed, ElementsAre(range(UINT64_MAX, UINT64_MAX)));
    EXPECT_EQ(table.find(Fid{UINT64_MAX}), nobody);
    EXPECT_THAT(who(table, Fid{UINT64_MAX - 1}), ElementsAre(a));
}

TEST(SubscriptionTable, TellsOneChangeOverTheBordersOfOthers) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed;
    ASSERT_TRUE(table.add(a, range(10, 20), changed));
    changed.clear();
    ASSERT_TRUE(table.add(b, range(5, 30), changed));
    EXPECT_THAT(changed, ElementsAre(range(5, 30)));
    changed.clear();
    ASSERT_TRUE(table.remove(b, range(0, 40), changed));
    EXPECT_THAT(changed, ElementsAre(range(5, 30)));
}

TEST(SubscriptionTable, TellsWhatIsNew) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed;
    ASSERT_TRUE(table.add(a, range(10, 20), changed));
    changed.clear();
    ASSERT_TRUE(table.add(a, range(5, 30), changed));
    EXPECT_THAT(changed, ElementsAre(range(5, 9), range(21, 30)));
    const std::uint64_t generation = table.generation();
    changed.clear();
    ASSERT_TRUE(table.add(a, range(6, 29), changed));
    EXPECT_THAT(changed, IsEmpty());
    EXPECT_EQ(table.generation(), generation) << "nothing has changed";
}

TEST(SubscriptionTable, EqualSetsAreOneGroup) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed;
    ASSERT_TRUE(table.add(a, range(1, 1), changed));
    ASSERT_TRUE(table.add(a, range(100, 100), changed));
    ASSERT_TRUE(table.add(b, range(100, 100), changed));
    ASSERT_TRUE(table.add(b, range(1, 1), changed));
    EXPECT_EQ(table.find(Fid{1}), table.find(Fid{100}));
    EXPECT_THAT(who(table, Fid{1}), ElementsAre(a, b));
}

TEST(SubscriptionTable, RefusesMoreRangesThanTheLimitAndChangesNothing) {
    SubscriptionTable table{2};
    std::vector<FidRange> changed;
    ASSERT_TRUE(table.add(a, range(10, 19), changed));
    ASSERT_TRUE(table.add(a, range(30, 39), changed));
    changed.clear();
    EXPECT_FALSE(table.add(a, range(50, 50), changed));
    EXPECT_THAT(changed, IsEmpty());
    EXPECT_EQ(table.find(Fid{50}), nobody);
    EXPECT_FALSE(table.remove(a, range(15, 15), changed)); // would make three
    EXPECT_THAT(who(table, Fid{15}), ElementsAre(a));
    EXPECT_TRUE(table.add(a, range(20, 29), changed)); // makes one of two
    EXPECT_TRUE(table.add(a, range(50, 50), changed));
    EXPECT_TRUE(table.add(b, range(50, 50), changed)) << "another session has its own limit";
}

TEST(SubscriptionTable, WhoMayHaveNoRangesHasNone) {
    SubscriptionTable table{0};
    std::vector<FidRange> changed;
    EXPECT_FALSE(table.add(a, range(1, 1), changed));
    EXPECT_FALSE(table.wants_anything(a));
}

TEST(SubscriptionTable, WhatChangesStandsBehindWhatTheCallerHadNotedBefore) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed{range(0, 9)};
    ASSERT_TRUE(table.add(a, range(10, 19), changed));
    EXPECT_THAT(changed, ElementsAre(range(0, 9), range(10, 19)));
    ASSERT_TRUE(table.remove(a, range(20, 29), changed)) << "which it does not have";
    EXPECT_THAT(changed, testing::SizeIs(2));
}

TEST(SubscriptionTable, WhereSomebodyWantsEverythingNobodyIsStillNobody) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed;
    ASSERT_TRUE(table.add(a, range(0, UINT64_MAX), changed));
    ASSERT_TRUE(table.add(b, range(5, 5), changed));
    EXPECT_NE(table.find(Fid{5}), nobody);
    EXPECT_NE(table.find(Fid{4}), nobody);
    ASSERT_TRUE(table.remove(a, range(0, 4), changed));
    EXPECT_EQ(table.find(Fid{4}), nobody);
    EXPECT_THAT(who(table, Fid{5}), ElementsAre(a, b));
}

TEST(SubscriptionTable, ALinkThatIsGoneLeavesNothing) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed;
    for (std::uint64_t i = 0; i < 100; ++i) {
        ASSERT_TRUE(table.add(a, range(i * 10, i * 10 + 4), changed));
        ASSERT_TRUE(table.add(b, range(i * 10 + 3, i * 10 + 6), changed));
    }
    table.remove_subscriber(a);
    EXPECT_FALSE(table.wants_anything(a));
    table.remove_subscriber(b);
    EXPECT_EQ(table.segment_count(), 1U);
    EXPECT_EQ(table.group_count(), 1U) << "nobody";
}

TEST(SubscriptionTable, EqualSubscribersWithOtherPoliciesAreAnotherGroup) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed;
    const Interest dropping{.subscriber = SubscriberId{1}, .policy = SlowPolicy::drop};
    ASSERT_TRUE(table.add(a, range(1, 1), changed));
    ASSERT_TRUE(table.add(dropping, range(2, 2), changed));
    EXPECT_NE(table.find(Fid{1}), table.find(Fid{2}));
    EXPECT_EQ(table.range_count(a), 1U);
}

// The same as the table, one bit for each session and fid.
struct PlainTable {
    static constexpr std::uint64_t fids = 16; // the last stands for the last fid of all
    std::array<std::set<Interest>, fids> wanted;

    static std::uint64_t index(Fid fid) {
        return fid == Fid{UINT64_MAX} ? fids - 1 : to_integer(fid);
    }
    std::size_t ranges(Interest session) const {
        std::size_t count = 0;
        for (std::uint64_t i = 0; i < fids; ++i) {
            const bool before = i > 0 && i < fids - 1 && wanted[i - 1].contains(session);
            if (wanted[i].contains(session) && !before) ++count;
        }
        return count;
    }
};

TEST(SubscriptionTable, AgreesWithAPlainTable) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random{seed};
        const std::size_t limit = 1 + seed % 5;
        SubscriptionTable table{limit};
        PlainTable plain;
        for (int step = 0; step < 60; ++step) {
            const Interest session = named(random() % 4);
            std::uint64_t first = random() % (PlainTable::fids - 2);
            std::uint64_t last = first + random() % (PlainTable::fids - 2 - first);
            if (random() % 8 == 0) first = last = UINT64_MAX;
            PlainTable after = plain;
            const bool adding = random() % 5 < 3;
            const bool leaving = random() % 20 == 0;
            std::vector<FidRange> expected_fids;
            for (std::uint64_t i = 0; i < PlainTable::fids; ++i) {
                const Fid fid{i == PlainTable::fids - 1 ? UINT64_MAX : i};
                const bool hit = leaving || (Fid{first} <= fid && fid <= Fid{last});
                if (!hit) continue;
                const bool changes = adding && !leaving ? after.wanted[i].insert(session).second
                                                        : after.wanted[i].erase(session) == 1;
                if (changes) expected_fids.push_back({.first = fid, .last = fid});
            }
            const std::uint64_t generation = table.generation();
            std::vector<FidRange> changed;
            if (leaving) {
                table.remove_subscriber(session);
                plain = after;
            } else {
                const bool fits = after.ranges(session) <= limit;
                const bool done = adding ? table.add(session, range(first, last), changed)
                                         : table.remove(session, range(first, last), changed);
                // A refusal is only for what would exceed the limit, and then certain.
                ASSERT_EQ(done, fits) << "seed " << seed << " step " << step;
                if (done) {
                    plain = after;
                    std::vector<FidRange> fids;
                    for (const FidRange& each : changed)
                        for (std::uint64_t i = 0; i < PlainTable::fids; ++i) {
                            const Fid fid{i == PlainTable::fids - 1 ? UINT64_MAX : i};
                            if (contains(each, fid)) fids.push_back({.first = fid, .last = fid});
                        }
                    ASSERT_EQ(fids, expected_fids) << "seed " << seed << " step " << step;
                    ASSERT_EQ(table.generation() != generation, !expected_fids.empty());
                }
            }
            std::map<std::vector<Interest>, GroupId> groups;
            for (std::uint64_t i = 0; i < PlainTable::fids; ++i) {
                const Fid fid{i == PlainTable::fids - 1 ? UINT64_MAX : i};
                const std::vector<Interest> expected{plain.wanted[i].begin(),
                                                     plain.wanted[i].end()};
                ASSERT_EQ(who(table, fid), expected) << "seed " << seed << " step " << step;
                const auto [known, is_new] = groups.emplace(expected, table.find(fid));
                ASSERT_EQ(known->second, table.find(fid)) << "equal sets, two groups";
                for (std::uint64_t l = 0; l < 4; ++l)
                    ASSERT_EQ(table.wants(named(l), fid), plain.wanted[i].contains(named(l)));
            }
        }
    }
}

} // namespace
} // namespace netio::pubsub
