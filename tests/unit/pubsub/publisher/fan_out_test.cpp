// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscription_table.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace netio::pubsub::fan_out_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr SubscriberId a{1};
constexpr SubscriberId b{2};

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

SubscriptionRequest wanting(std::vector<FidRange> ranges, std::optional<SlowPolicy> policy = {}) {
    return {.request = 1, .policy = policy, .ranges = std::move(ranges)};
}

// The positions for an accepted request.
std::vector<FidCount> positions_of(FanOut& fan_out, SubscriberId subscriber,
                                   const SubscriptionRequest& request) {
    FanOut::Addition added = fan_out.subscribe(subscriber, fan_out.wishes_of(request));
    EXPECT_EQ(added.result, SubscriptionResult::accepted);
    return std::move(added.positions);
}

std::vector<FidCount> totals_of(FanOut& fan_out, SubscriberId subscriber, std::size_t at_once = 2) {
    std::vector<FidCount> all;
    std::size_t next = 0;
    for (;;) {
        std::vector<FidCount> some(at_once);
        const TotalsPart part = fan_out.totals(subscriber, next, some);
        all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(part.count));
        if (part.last) break;
    }
    std::ranges::sort(all, {}, &FidCount::fid); // the order is undefined
    return all;
}

TEST(FanOut, GroupsDifferByPolicy) {
    FanOut fan_out{SlowPolicy::block, 100};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(1, 9)})), SubscriptionResult::accepted);
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(5, 5)}, SlowPolicy::drop)),
              SubscriptionResult::accepted);
    EXPECT_EQ(fan_out.lookup(Fid{1}).group, fan_out.lookup(Fid{9}).group);
    EXPECT_THAT(fan_out.lookup(Fid{1}).group->members, ElementsAre(Interest{a, SlowPolicy::block}));
    EXPECT_THAT(fan_out.lookup(Fid{5}).group->members, ElementsAre(Interest{a, SlowPolicy::drop}));
    EXPECT_EQ(fan_out.policy_of(a, Fid{5}), SlowPolicy::drop);
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(5, 5)})), SubscriptionResult::accepted);
    EXPECT_EQ(fan_out.lookup(Fid{5}).group, fan_out.lookup(Fid{1}).group);
}

void keep(HistoryLog& log, FanOut& fan_out, std::uint64_t fid) {
    log.append({.fid = Fid{fid}, .number = fan_out.lookup(Fid{fid}).published++, .time = {}}, {});
}

TEST(FanOut, ALateSubscriptionIsNoMemberUntilItIsLive) {
    using enum SlowPolicy;
    FanOut fan_out{block, 100};
    HistoryLog log{{.bytes = 1000, .time = {}}};
    for (int i = 0; i < 5; ++i)
        keep(log, fan_out, 1);
    log.drop_front();
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(2, 2)})), SubscriptionResult::accepted);
    const std::array wishes{FanOut::Wish{range(1, 4), block}};
    FanOut::Addition added = fan_out.subscribe(a, wishes, &log);
    EXPECT_THAT(added.late, ElementsAre(range(1, 1), range(3, 4))) << "2 is live already";
    EXPECT_THAT(added.positions, ElementsAre(FidCount{Fid{1}, 1}));
    EXPECT_THAT(totals_of(fan_out, a), ElementsAre(FidCount{Fid{1}, 4}));
    EXPECT_THAT(fan_out.lookup(Fid{1}).group->members, IsEmpty());
    EXPECT_TRUE(fan_out.lookup(Fid{1}).group->has_late);
    EXPECT_FALSE(fan_out.lookup(Fid{2}).group->has_late);
    EXPECT_TRUE(fan_out.wants(a, Fid{1}));
    // Another policy, asked for with and without history: it stays late.
    added = fan_out.subscribe(a, std::array{FanOut::Wish{range(1, 2), drop}}, &log);
    EXPECT_THAT(added.late, IsEmpty());
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(3, 5)}, drop)), SubscriptionResult::accepted);
    EXPECT_EQ(fan_out.policy_of(a, Fid{1}), drop);
    EXPECT_EQ(fan_out.policy_of(a, Fid{4}), drop);
    EXPECT_TRUE(fan_out.lookup(Fid{4}).group->has_late);
    EXPECT_THAT(fan_out.lookup(Fid{5}).group->members, ElementsAre(Interest{a, drop}));
    fan_out.make_live(a, std::array{range(1, 1)});
    EXPECT_THAT(fan_out.lookup(Fid{1}).group->members, ElementsAre(Interest{a, drop}));
    EXPECT_FALSE(fan_out.lookup(Fid{1}).group->has_late);
    EXPECT_EQ(fan_out.lookup(Fid{1}).group, fan_out.lookup(Fid{5}).group);
    EXPECT_THAT(fan_out.unsubscribe(a, std::array{range(4, 9)}).removed, ElementsAre(range(4, 5)));
    EXPECT_THAT(fan_out.remove(a), ElementsAre(range(1, 3)));
    EXPECT_FALSE(fan_out.wants_anything(a));
}

TEST(FanOut, ARefusedRequestForHistoryChangesNothing) {
    FanOut fan_out{SlowPolicy::block, 2};
    const HistoryLog log{{.bytes = 1000, .time = {}}};
    const std::array two{FanOut::Wish{range(1, 1), SlowPolicy::block},
                         FanOut::Wish{range(3, 3), SlowPolicy::block}};
    const std::array more{FanOut::Wish{range(1, 3), SlowPolicy::drop},
                          FanOut::Wish{range(7, 7), SlowPolicy::block},
                          FanOut::Wish{range(9, 9), SlowPolicy::block}};
    ASSERT_EQ(fan_out.subscribe(a, two, &log).result, SubscriptionResult::accepted);
    EXPECT_EQ(fan_out.subscribe(a, more, &log).result, SubscriptionResult::table_full);
    EXPECT_FALSE(fan_out.wants(a, Fid{2}));
    EXPECT_EQ(fan_out.policy_of(a, Fid{1}), SlowPolicy::block);
    EXPECT_TRUE(fan_out.lookup(Fid{3}).group->has_late);
    // A fid that was subscribed before, and counts from another message now.
    fan_out.make_live(a, std::array{range(1, 3)});
    EXPECT_THAT(fan_out.lookup(Fid{3}).group->members, ElementsAre(Interest{a, SlowPolicy::block}));
}

TEST(FanOut, WhatIsAskedForWithAPolicyAndWhatIsRemovedAreSets) {
    using enum SlowPolicy;
    const std::array wishes{FanOut::Wish{range(5, 9), drop}, FanOut::Wish{range(1, 2), newest},
                            FanOut::Wish{range(1, 4), drop}, FanOut::Wish{range(20, 20), drop}};
    EXPECT_THAT(FanOut::asked_with(drop, wishes), ElementsAre(range(1, 9), range(20, 20)));
    EXPECT_THAT(FanOut::asked_with(newest, wishes), ElementsAre(range(1, 2)));
    EXPECT_THAT(FanOut::asked_with(block, wishes), IsEmpty());
    FanOut fan_out{block, 100};
    ASSERT_EQ(fan_out.subscribe(a, wishes).result, SubscriptionResult::accepted);
    EXPECT_THAT(fan_out.unsubscribe(a, std::vector{range(7, 30), range(1, 3)}).removed,
                ElementsAre(range(1, 3), range(7, 9), range(20, 20)));
}

// This makes a publication a single look-up in a hash table.
TEST(FanOut, RemembersTheGroupOfAFidUntilASubscriptionChanges) {
    FanOut fan_out{SlowPolicy::block, 100};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(1, 9)})), SubscriptionResult::accepted);
    for (const bool adding : {true, false}) {
        EXPECT_EQ(fan_out.fids().find_current(Fid{1}), nullptr);
        const Group* const group = fan_out.lookup(Fid{1}).group;
        const detail::FidState* const remembered = fan_out.fids().find_current(Fid{1});
        ASSERT_NE(remembered, nullptr);
        EXPECT_EQ(remembered->group, group);
        EXPECT_EQ(fan_out.lookup(Fid{1}).group, group);
        EXPECT_EQ(fan_out.fids().find_current(Fid{2}), nullptr) << "not looked up yet";
        if (adding) {
            ASSERT_EQ(fan_out.subscribe(b, wanting({range(20, 20)})), SubscriptionResult::accepted);
        }
    }
}

TEST(FanOut, RefusesAMoreBlockingPolicyAndChangesNothing) {
    FanOut fan_out{SlowPolicy::drop, 100};
    EXPECT_EQ(fan_out.subscribe(a, wanting({range(1, 1)}, SlowPolicy::block)),
              SubscriptionResult::policy_refused);
    EXPECT_FALSE(fan_out.wants_anything(a));
}

TEST(FanOut, FindsNoSubscriberForAFidPublishedElsewhere) {
    FanOut fan_out{SlowPolicy::block, 100, std::vector{range(10, 19), range(30, 39)}};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(0, 100)})), SubscriptionResult::accepted);
    for (const std::uint64_t fid : {0U, 9U, 20U, 29U, 40U, 100U}) {
        const FanOut::Found found = fan_out.lookup(Fid{fid});
        EXPECT_TRUE(fan_out.is_owned_elsewhere(*found.group)) << fid;
        EXPECT_THAT(found.group->members, IsEmpty()) << fid;
    }
    EXPECT_EQ(fan_out.fids().fids.size(), 0U);
    for (const std::uint64_t fid : {10U, 19U, 30U, 39U}) {
        const FanOut::Found found = fan_out.lookup(Fid{fid});
        EXPECT_FALSE(fan_out.is_owned_elsewhere(*found.group)) << fid;
        EXPECT_THAT(found.group->members, ElementsAre(Interest{a, SlowPolicy::block})) << fid;
        ++found.published;
    }
    EXPECT_EQ(totals_of(fan_out, a).size(), 4U);
    FanOut all{SlowPolicy::block, 100};
    EXPECT_FALSE(all.is_owned_elsewhere(*all.lookup(Fid{0}).group));
    FanOut none{SlowPolicy::block, 100, std::vector<FidRange>{}};
    EXPECT_TRUE(none.is_owned_elsewhere(*none.lookup(Fid{0}).group));
}

TEST(FanOut, CarriesOutARequestWhollyOrNotAtAll) {
    FanOut fan_out{SlowPolicy::block, 3};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(10, 19), range(30, 39)})),
              SubscriptionResult::accepted);
    EXPECT_EQ(fan_out.subscribe(
                  a, wanting({range(50, 50), range(12, 12), range(70, 70)}, SlowPolicy::drop)),
              SubscriptionResult::table_full);
    EXPECT_EQ(fan_out.policy_of(a, Fid{12}), SlowPolicy::block);
    EXPECT_FALSE(fan_out.wants(a, Fid{50}));
    EXPECT_EQ(fan_out.unsubscribe(a, std::vector{range(12, 12), range(14, 14)}).result,
              SubscriptionResult::table_full);
    EXPECT_TRUE(fan_out.wants(a, Fid{12}));
    EXPECT_TRUE(fan_out.wants(a, Fid{14}));
}

TEST(FanOut, TotalsCountFromTheSubscriptionOn) {
    FanOut fan_out{SlowPolicy::block, 100};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(0, UINT64_MAX)})), SubscriptionResult::accepted);
    fan_out.lookup(Fid{7}).published += 5;
    fan_out.lookup(Fid{3}).published += 1;
    ASSERT_EQ(fan_out.subscribe(b, wanting({range(5, 7)})), SubscriptionResult::accepted);
    fan_out.lookup(Fid{7}).published += 2;
    fan_out.lookup(Fid{6}).published += 4;
    EXPECT_THAT(totals_of(fan_out, a),
                ElementsAre(FidCount{Fid{3}, 1}, FidCount{Fid{6}, 4}, FidCount{Fid{7}, 7}));
    EXPECT_THAT(totals_of(fan_out, b), ElementsAre(FidCount{Fid{6}, 4}, FidCount{Fid{7}, 2}));
    EXPECT_THAT(totals_of(fan_out, SubscriberId{3}), IsEmpty());
}

TEST(FanOut, OnePartOfTheTotalsLooksAtFewFidsHoweverManyThereAre) {
    FanOut fan_out{SlowPolicy::block, 100};
    constexpr std::uint64_t fids = 100000;
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(fids - 1, fids - 1)})),
              SubscriptionResult::accepted);
    for (std::uint64_t fid = 0; fid < fids; ++fid)
        ++fan_out.lookup(Fid{fid}).published;
    std::vector<FidCount> room(1000);
    std::size_t found = 0;
    for (std::size_t next = 0;;) {
        const std::size_t before = next;
        const TotalsPart part = fan_out.totals(a, next, room);
        ASSERT_LE(next - before, FanOut::fids_at_once);
        found += part.count;
        if (part.last) break;
        ASSERT_GT(next, before);
    }
    EXPECT_EQ(found, 1U);
}

// A request with as many ranges as a frame holds, each nearly as wide as the table is large.
TEST(FanOut, ARequestLooksAtEachFidOnceHoweverManyWideRangesItHas) {
    constexpr std::uint64_t fids = 100000;
    constexpr std::uint64_t ranges = 255;
    constexpr std::uint64_t width = 65536;
    FanOut fan_out{SlowPolicy::block, ranges};
    for (std::uint64_t i = 0; i < fids; ++i)
        ++fan_out.lookup(Fid{i * (ranges * width / fids)}).published;
    SubscriptionRequest request = wanting({});
    for (std::uint64_t i = 0; i < ranges; ++i) // with one unsubscribed fid between them
        request.ranges.push_back(range(i * width, (i + 1) * width - 2));
    EXPECT_GT(positions_of(fan_out, a, request).size(), fids * 9 / 10);
    EXPECT_LT(fan_out.steps(), 8 * fids);
}

TEST(FanOut, ARequestOfFewFidsLooksAtNoMoreHoweverManyThereAre) {
    FanOut fan_out{SlowPolicy::block, 255};
    for (std::uint64_t fid = 0; fid < 100000; ++fid)
        ++fan_out.lookup(Fid{fid}).published;
    SubscriptionRequest request = wanting({});
    for (std::uint64_t i = 0; i < 255; ++i)
        request.ranges.push_back(range(300 * i, 300 * i));
    EXPECT_EQ(positions_of(fan_out, a, request).size(), 255U);
    EXPECT_LT(fan_out.steps(), 1000U);
}

TEST(FanOut, AnotherPolicyForManyFidsLooksAtEachAFewTimes) {
    constexpr std::uint64_t fids = 4096;
    FanOut fan_out{SlowPolicy::block, fids};
    for (std::uint64_t i = 0; i < fids; ++i)
        ASSERT_EQ(fan_out.subscribe(a, wanting({range(2 * i, 2 * i)}, SlowPolicy::drop)),
                  SubscriptionResult::accepted);
    const std::size_t before = fan_out.steps();
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(0, 2 * fids)})), SubscriptionResult::accepted);
    EXPECT_LT(fan_out.steps() - before, 20 * fids);
}

// The ranges overlap, within a request and with earlier requests; some are wide and some narrow, so
// that both kinds of search occur.
TEST(FanOut, PositionsAreOfTheFidsThatARequestAdds) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random{seed};
        const std::uint64_t fids = seed % 2 == 0 ? 20 : 2000;
        const std::uint64_t widest = seed % 3 == 0 ? 3 : fids / 2;
        FanOut fan_out{SlowPolicy::block, 100000};
        std::map<Fid, std::uint64_t> published;
        for (int step = 0; step < 40; ++step) {
            for (int i = 0; i < 10; ++i) {
                const Fid fid{random() % fids};
                ++fan_out.lookup(fid).published;
                ++published[fid];
            }
            SubscriptionRequest request = wanting({}, static_cast<SlowPolicy>(random() % 3));
            for (std::uint64_t i = 1 + random() % 5; i > 0; --i) {
                const std::uint64_t first = random() % fids;
                request.ranges.push_back(range(first, first + random() % widest));
            }
            std::map<Fid, std::uint64_t> expected;
            const auto asked_for = [&](Fid fid) {
                return std::ranges::any_of(request.ranges,
                                           [&](const FidRange& r) { return contains(r, fid); });
            };
            for (std::uint64_t i = 0; i < 2 * fids; ++i) {
                const Fid fid{i};
                if (!asked_for(fid)) continue;
                if (!fan_out.wants(a, fid) && published[fid] > 0) expected[fid] = published[fid];
            }
            std::map<Fid, std::uint64_t> found;
            for (const FidCount& count : positions_of(fan_out, a, request))
                ASSERT_TRUE(found.emplace(count.fid, count.count).second) << "seed " << seed;
            ASSERT_EQ(found, expected) << "seed " << seed << " step " << step;
            if (random() % 3 != 0) continue;
            const std::uint64_t first = random() % fids;
            const FidRange left = range(first, first + random() % widest);
            ASSERT_EQ(fan_out.unsubscribe(a, std::vector{left}).result,
                      SubscriptionResult::accepted);
        }
    }
}

TEST(FanOut, ASubscriberNeedsAFewBytesForEachFid) {
    constexpr std::uint64_t fids = 10'000;
    FanOut fan_out{SlowPolicy::block, 100};
    for (std::uint64_t i = 0; i < fids; ++i)
        fan_out.lookup(Fid{i}).published += 100'000;
    for (int again = 0; again < 20; ++again) {
        EXPECT_EQ(positions_of(fan_out, a, wanting({range(0, fids)})).size(), fids);
        EXPECT_EQ(positions_of(fan_out, b, wanting({range(0, fids)})).size(), again > 0 ? 0 : fids);
        ASSERT_EQ(fan_out.unsubscribe(a, std::vector{range(0, fids)}).result,
                  SubscriptionResult::accepted);
    }
    EXPECT_LT(fan_out.bytes_of_subscribers(), 2 * 5 * fids);
}

TEST(FanOut, AnotherPolicyIsNoNewSubscription) {
    FanOut fan_out{SlowPolicy::block, 100};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(1, 1)})), SubscriptionResult::accepted);
    fan_out.lookup(Fid{1}).published += 3;
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(1, 1)}, SlowPolicy::drop)),
              SubscriptionResult::accepted);
    EXPECT_THAT(totals_of(fan_out, a), ElementsAre(FidCount{Fid{1}, 3}));
}

TEST(FanOut, OneThatIsGoneLeavesNothing) {
    FanOut fan_out{SlowPolicy::block, 100};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(1, 4), range(9, 9)}, SlowPolicy::drop)),
              SubscriptionResult::accepted);
    fan_out.remove(a);
    EXPECT_FALSE(fan_out.wants_anything(a));
    EXPECT_TRUE(fan_out.lookup(Fid{2}).group->members.empty());
}

// The model: a policy for each subscriber and fid.
TEST(FanOut, AgreesWithAPlainTable) {
    constexpr std::uint64_t fids = 12;
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937_64 random{seed};
        FanOut fan_out{SlowPolicy::block, 4};
        std::array<std::array<std::optional<SlowPolicy>, fids>, 3> plain;
        std::array<std::array<std::uint64_t, fids>, 3> since{};
        std::array<std::uint64_t, fids> published{};
        for (int step = 0; step < 80; ++step) {
            const std::uint64_t who = random() % 3;
            const SubscriberId subscriber{who};
            const std::uint64_t first = random() % fids;
            const std::uint64_t last = first + random() % (fids - first);
            if (random() % 2 == 0) {
                if (fan_out.lookup(Fid{first}).group->members.empty()) continue;
                ++fan_out.lookup(Fid{first}).published;
                ++published[first];
            } else if (random() % 3 != 0) {
                const auto policy = static_cast<SlowPolicy>(random() % 3);
                if (fan_out.subscribe(subscriber, wanting({range(first, last)}, policy)) !=
                    SubscriptionResult::accepted)
                    continue;
                for (std::uint64_t fid = first; fid <= last; ++fid) {
                    if (!plain[who][fid]) since[who][fid] = published[fid];
                    plain[who][fid] = policy;
                }
            } else {
                if (fan_out.unsubscribe(subscriber, std::vector{range(first, last)}).result !=
                    SubscriptionResult::accepted)
                    continue;
                for (std::uint64_t fid = first; fid <= last; ++fid)
                    plain[who][fid].reset();
            }
            for (std::uint64_t fid = 0; fid < fids; ++fid) {
                std::vector<Interest> expected;
                for (std::uint64_t i = 0; i < 3; ++i)
                    if (plain[i][fid]) expected.push_back({SubscriberId{i}, *plain[i][fid]});
                ASSERT_EQ(fan_out.lookup(Fid{fid}).group->members, expected)
                    << "seed " << seed << " step " << step << " fid " << fid;
            }
        }
        for (std::uint64_t i = 0; i < 3; ++i) {
            std::vector<FidCount> expected;
            for (std::uint64_t fid = 0; fid < fids; ++fid)
                if (plain[i][fid] && published[fid] > 0)
                    expected.push_back({Fid{fid}, published[fid] - since[i][fid]});
            ASSERT_EQ(totals_of(fan_out, SubscriberId{i}), expected) << "seed " << seed;
        }
    }
}

using Result = SubscriptionResult;

TEST(FanOutRules, WithoutConflationTheNewestPolicyIsRefused) {
    FanOut fan_out{SlowPolicy::block, 100, {}, false};
    EXPECT_FALSE(fan_out.keeps_newest());
    EXPECT_EQ(fan_out.subscribe(a, wanting({range(1, 1)}, SlowPolicy::newest)),
              Result::policy_refused);
    EXPECT_FALSE(fan_out.wants_anything(a));
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::disconnect})
        EXPECT_EQ(fan_out.subscribe(a, wanting({range(1, 1)}, policy)), Result::accepted);
}

TEST(FanOutRules, SubscriptionsAreLimitedToTheMaximumOfRanges) {
    FanOut fan_out{SlowPolicy::block, 3};
    EXPECT_EQ(fan_out.subscribe(a, wanting({range(10, 19), range(30, 39), range(50, 59)})),
              Result::accepted);
    EXPECT_EQ(fan_out.subscribe(a, wanting({range(70, 79)}, SlowPolicy::drop)), Result::table_full)
        << "of all policies together";
    EXPECT_EQ(fan_out.unsubscribe(a, std::vector{range(50, 59)}).result, Result::accepted);
    EXPECT_EQ(fan_out.unsubscribe(a, std::vector{range(35, 35)}).result, Result::accepted);
    EXPECT_FALSE(fan_out.wants(a, Fid{35}));
    EXPECT_EQ(fan_out.unsubscribe(a, std::vector{range(15, 15)}).result, Result::table_full);
    EXPECT_TRUE(fan_out.wants(a, Fid{15}));
}

TEST(FanOutRules, ARemovedSubscriberIsInNoCachedGroup) {
    FanOut fan_out{SlowPolicy::block, 100};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(1, 4)})), Result::accepted);
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(5, 9), range(20, 20)}, SlowPolicy::drop)),
              Result::accepted);
    ASSERT_EQ(fan_out.subscribe(b, wanting({range(4, 5)})), Result::accepted);
    ASSERT_EQ(fan_out.lookup(Fid{4}).group->members.size(), 2U);
    EXPECT_THAT(fan_out.remove(a), ElementsAre(range(1, 9), range(20, 20))) << "all that it had";
    EXPECT_THAT(fan_out.lookup(Fid{4}).group->members, ElementsAre(Interest{b, SlowPolicy::block}));
    EXPECT_THAT(fan_out.lookup(Fid{20}).group->members, IsEmpty());
    EXPECT_THAT(fan_out.remove(a), IsEmpty()) << "it has none any more";
}

TEST(FanOutRules, ReturnsPositionsAgainToAReturner) {
    FanOut fan_out{SlowPolicy::block, 100};
    fan_out.lookup(Fid{1}).published += 3;
    EXPECT_EQ(fan_out.lookup(Fid{2}).published, 0U) << "it was only looked up";
    const auto positions = [&] {
        return fan_out.subscribe(a, fan_out.wishes_of(wanting({range(0, 9)}))).positions;
    };
    EXPECT_THAT(positions(), ElementsAre(FidCount{Fid{1}, 3}));
    EXPECT_THAT(positions(), IsEmpty()) << "the subscriber has all of them";
    ASSERT_EQ(fan_out.unsubscribe(a, std::vector{range(1, 1)}).result, Result::accepted);
    EXPECT_THAT(positions(), ElementsAre(FidCount{Fid{1}, 3}));
    fan_out.remove(a);
    EXPECT_THAT(positions(), ElementsAre(FidCount{Fid{1}, 3}));
}

} // namespace
} // namespace netio::pubsub::fan_out_test
