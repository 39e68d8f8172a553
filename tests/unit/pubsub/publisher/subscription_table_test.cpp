// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscription_table.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace netio::pubsub::subscription_table_test {
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
    EXPECT_EQ(table.find(Fid{0}), empty_group);
    EXPECT_EQ(table.find(Fid{UINT64_MAX}), empty_group);
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
    EXPECT_EQ(table.find(Fid{UINT64_MAX}), empty_group);
    EXPECT_THAT(who(table, Fid{UINT64_MAX - 1}), ElementsAre(a));
}

TEST(SubscriptionTable, ReportsOneChangeAcrossTheBordersOfOthers) {
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

TEST(SubscriptionTable, ReportsTheNewFids) {
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

TEST(SubscriptionTable, RefusesRangesBeyondTheLimit) {
    SubscriptionTable table{2};
    std::vector<FidRange> changed;
    ASSERT_TRUE(table.add(a, range(10, 19), changed));
    ASSERT_TRUE(table.add(a, range(30, 39), changed));
    changed.clear();
    EXPECT_FALSE(table.add(a, range(50, 50), changed));
    EXPECT_THAT(changed, IsEmpty());
    EXPECT_EQ(table.find(Fid{50}), empty_group);
    EXPECT_FALSE(table.remove(a, range(15, 15), changed)); // would make three
    EXPECT_THAT(who(table, Fid{15}), ElementsAre(a));
    EXPECT_TRUE(table.add(a, range(20, 29), changed)); // merges two
    EXPECT_TRUE(table.add(a, range(50, 50), changed));
    EXPECT_TRUE(table.add(b, range(50, 50), changed)) << "another session has its own limit";
}

TEST(SubscriptionTable, WithALimitOfZeroNoRangeIsAccepted) {
    SubscriptionTable table{0};
    std::vector<FidRange> changed;
    EXPECT_FALSE(table.add(a, range(1, 1), changed));
    EXPECT_FALSE(table.wants_anything(a));
}

TEST(SubscriptionTable, AppendsChangesToTheCallersList) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed{range(0, 9)};
    ASSERT_TRUE(table.add(a, range(10, 19), changed));
    EXPECT_THAT(changed, ElementsAre(range(0, 9), range(10, 19)));
    ASSERT_TRUE(table.remove(a, range(20, 29), changed)) << "not subscribed";
    EXPECT_THAT(changed, testing::SizeIs(2));
}

TEST(SubscriptionTable, EmptyGroupStaysWithFullSubscription) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed;
    ASSERT_TRUE(table.add(a, range(0, UINT64_MAX), changed));
    ASSERT_TRUE(table.add(b, range(5, 5), changed));
    EXPECT_NE(table.find(Fid{5}), empty_group);
    EXPECT_NE(table.find(Fid{4}), empty_group);
    ASSERT_TRUE(table.remove(a, range(0, 4), changed));
    EXPECT_EQ(table.find(Fid{4}), empty_group);
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
    EXPECT_EQ(table.group_count(), 1U) << "empty_group";
}

TEST(SubscriptionTable, OtherPoliciesMakeAnotherGroup) {
    SubscriptionTable table{plenty};
    std::vector<FidRange> changed;
    const Interest dropping{.subscriber = SubscriberId{1}, .policy = SlowPolicy::drop};
    ASSERT_TRUE(table.add(a, range(1, 1), changed));
    ASSERT_TRUE(table.add(dropping, range(2, 2), changed));
    EXPECT_NE(table.find(Fid{1}), table.find(Fid{2}));
    EXPECT_EQ(table.range_count(a), 1U);
}

// The model: one bit for each session and fid.
struct PlainTable {
    static constexpr std::uint64_t fids = 16; // the last one stands for the last fid of all
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
                // A refusal occurs only if, and always when, the limit would be exceeded.
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

// A request may have as many ranges as a subscriber, and a key as many as its file has room for.
TEST(SubscriptionRights, CostIsLinearInRequestAndKey) {
    constexpr std::uint64_t count = 16384;
    access::Rights rights;
    SubscriptionRequest request;
    for (std::uint64_t i = 0; i < count; ++i) {
        rights.fids.push_back({.first = 4 * i, .last = 4 * i + 1});
        request.ranges.push_back({.first = Fid{4 * i}, .last = Fid{4 * i + 1}});
    }
    std::size_t steps = 0;
    const auto wishes = permitted(rights, request, {}, steps);
    ASSERT_TRUE(wishes);
    EXPECT_EQ(wishes->size(), count);
    EXPECT_LE(steps, count * 2 * (15 + 2));
}

// The policy of one fid, looked up separately; nullopt: not permitted.
std::optional<SlowPolicy> policy_for(const access::Rights& rights, std::uint64_t fid,
                                     std::optional<SlowPolicy> asked, const OwnPolicies& own) {
    for (const access::FidRight& right : rights.fids) {
        if (fid < right.first || fid > right.last) continue;
        if (!right.slow_policy) return asked ? *asked : own.policy;
        const SlowPolicy most = policy_of(*right.slow_policy);
        if (asked == most) return most;
        if (asked && !right.forced) {
            if (access_policy_of(*asked) > *right.slow_policy) return std::nullopt;
            return asked;
        }
        if (most == SlowPolicy::newest && !own.keeps_newest) return SlowPolicy::drop;
        return blocks_longer(most, own.policy) ? own.policy : most;
    }
    return std::nullopt;
}

class RandomRights {
  public:
    explicit RandomRights(std::uint64_t seed) : random_{seed} {}

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    // Rights for some of the fids from `first` to `last`; the ranges may touch.
    access::Rights make(std::uint64_t first, std::uint64_t last) {
        access::Rights rights;
        for (std::uint64_t at = first; rights.fids.size() < 4;) {
            at += below(3) == 0 ? 1 + below(2) : 0;
            if (at > last || at < first) break;
            const std::uint64_t end = at + std::min(below(4), last - at);
            access::FidRight right{.first = at, .last = end};
            if (below(4) != 0) right.slow_policy = static_cast<access::SlowPolicy>(below(4));
            right.forced = right.slow_policy && below(3) == 0;
            rights.fids.push_back(right);
            if (end == last) break;
            at = end + 1;
        }
        return rights;
    }
    SubscriptionRequest ask(std::uint64_t first, std::uint64_t last) {
        SubscriptionRequest request;
        if (below(3) != 0) request.policy = slow_policies.at(below(slow_policies.size()));
        for (std::uint64_t count = 1 + below(2); count > 0; --count) {
            const std::uint64_t begin = first + below(last - first + 1);
            const std::uint64_t end = begin + std::min(below(5), last - begin);
            request.ranges.push_back({.first = Fid{begin}, .last = Fid{end}});
        }
        return request;
    }

  private:
    std::mt19937_64 random_;
};

// Requests with a few fids, near the smallest or the largest fid: together they get what each would
// get separately, all or none.
TEST(SubscriptionRights, GiveEachFidTheSameAsASeparateRequest) {
    int given = 0;
    int refused = 0;
    for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
        SCOPED_TRACE(seed);
        RandomRights random{seed};
        const std::uint64_t first = seed % 2 == 0 ? 0 : UINT64_MAX - 11;
        const access::Rights rights = random.make(first, first + 11);
        const SubscriptionRequest request = random.ask(first, first + 11);
        const OwnPolicies own{.policy = slow_policies.at(random.below(3)),
                              .keeps_newest = random.below(2) == 0};
        std::vector<std::pair<std::uint64_t, SlowPolicy>> expected;
        bool all = true;
        for (const FidRange& range : request.ranges) {
            const std::uint64_t count = to_integer(range.last) - to_integer(range.first) + 1;
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t fid = to_integer(range.first) + i;
                const auto policy = policy_for(rights, fid, request.policy, own);
                all = all && policy;
                if (policy) expected.emplace_back(fid, *policy);
            }
        }
        std::size_t steps = 0;
        const auto wishes = permitted(rights, request, own, steps);
        ASSERT_EQ(wishes.has_value(), all);
        ++(all ? given : refused);
        if (!all) continue;
        std::vector<std::pair<std::uint64_t, SlowPolicy>> found;
        for (const FanOut::Wish& wish : *wishes) {
            ASSERT_LE(wish.fids.first, wish.fids.last);
            const std::uint64_t count =
                to_integer(wish.fids.last) - to_integer(wish.fids.first) + 1;
            for (std::uint64_t i = 0; i < count; ++i)
                found.emplace_back(to_integer(wish.fids.first) + i, wish.policy);
        }
        ASSERT_EQ(found, expected);
    }
    EXPECT_GT(given, 1000);
    EXPECT_GT(refused, 1000);
}

constexpr std::array everything{FidRange{.first = Fid{0}, .last = Fid{UINT64_MAX}}};

FidListing listing_of(const std::set<std::uint64_t>& fids) {
    FidMap<int> map;
    for (const std::uint64_t fid : fids)
        map[Fid{fid}] = 1;
    FidListing listing;
    EXPECT_EQ(listing.is_outdated(map.size()), !map.empty());
    listing.make(map);
    EXPECT_FALSE(listing.is_outdated(map.size()));
    return listing;
}

TEST(FidListing, HasTheNearestFidsOnBothSides) {
    const FidListing listing = listing_of({1, 2, 3, 10, 20, UINT64_MAX});
    const auto page = [&](std::uint64_t from, std::size_t limit) {
        return listing.page(Fid{from}, limit, everything).ranges;
    };
    using Ranges = std::vector<FidRange>;
    EXPECT_EQ(page(5, 2), (Ranges{{Fid{1}, Fid{3}}, {Fid{10}, Fid{10}}}));
    EXPECT_EQ(page(0, 1), (Ranges{{Fid{1}, Fid{3}}}));
    EXPECT_EQ(page(2, 2), (Ranges{{Fid{1}, Fid{3}}, {Fid{10}, Fid{10}}})) << "begins below";
    EXPECT_EQ(page(30, 9), (Ranges{{Fid{20}, Fid{20}}, {Fid{UINT64_MAX}, Fid{UINT64_MAX}}}));
    EXPECT_EQ(page(UINT64_MAX, 9),
              (Ranges{{Fid{20}, Fid{20}}, {Fid{UINT64_MAX}, Fid{UINT64_MAX}}}));
    EXPECT_TRUE(FidListing{}.page(Fid{7}, 9, everything).ranges.empty());
}

// All pages together are the whole list, with exactly the permitted fids.
TEST(FidListing, IsReadInPagesAndOnlyWhereItIsPermitted) {
    std::mt19937_64 random{1};
    for (int run = 0; run < 500; ++run) {
        std::set<std::uint64_t> fids;
        for (auto left = random() % 30; left > 0; --left)
            fids.insert(random() % 60);
        std::vector<FidRange> rights;
        for (auto left = random() % 4; left > 0; --left) {
            const std::uint64_t first = random() % 60;
            rights.push_back({.first = Fid{first}, .last = Fid{first + random() % 20}});
        }
        const std::vector<FidRange> permitted =
            run % 4 == 0 ? std::vector<FidRange>(everything.begin(), everything.end())
                         : normalised(rights);
        const FidListing listing = listing_of(fids);
        std::set<std::uint64_t> read;
        for (Fid from{0};;) {
            const FidPage page = listing.page(from, 1 + random() % 4, permitted);
            for (const FidRange& range : page.ranges)
                for (auto fid = to_integer(range.first); fid <= to_integer(range.last); ++fid)
                    read.insert(fid);
            if (!page.more) break;
            ASSERT_GE(page.ranges.size(), 1U);
            from = Fid{to_integer(page.ranges.back().last) + 1};
        }
        std::erase_if(fids, [&](std::uint64_t fid) { return !contains(permitted, Fid{fid}); });
        ASSERT_EQ(read, fids) << "run " << run;
    }
}

} // namespace
} // namespace netio::pubsub::subscription_table_test
