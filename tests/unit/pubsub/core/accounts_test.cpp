// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/account.hpp"
#include "pubsub/core/arrival_counter.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::accounts_test {
namespace {

void finish(ArrivalCounter& counter, std::span<const FidCount> totals) {
    for (const FidCount& total : totals)
        counter.expect(total);
    counter.complete_totals();
}

using Difference = ArrivalCounter::Difference;

TEST(ArrivalCounter, CountsTheLossAgainstTheTotals) {
    ArrivalCounter counter;
    counter.add(Fid{1}, 10);
    counter.add(Fid{1}, 20);
    counter.add(Fid{2}, 5);
    EXPECT_EQ(counter.messages(), 3U);
    EXPECT_EQ(counter.bytes(), 35U);
    EXPECT_FALSE(counter.complete());
    EXPECT_EQ(counter.difference(), std::nullopt);
    EXPECT_EQ(counter.difference(Fid{1}), std::nullopt);
    const std::array<FidCount, 3> totals{FidCount{.fid = Fid{1}, .count = 5},
                                         FidCount{.fid = Fid{2}, .count = 1},
                                         FidCount{.fid = Fid{3}, .count = 2}};
    finish(counter, totals);
    EXPECT_TRUE(counter.complete());
    EXPECT_EQ(counter.difference(), (Difference{.lost = 3 + 0 + 2, .surplus = 0}));
    EXPECT_EQ(counter.difference(Fid{3}), (Difference{.lost = 2, .surplus = 0}));
    EXPECT_EQ(counter.difference(Fid{4}), Difference{});
}

TEST(ArrivalCounter, WhatArrivesBeyondTheTotalsIsASurplusAndHidesNoLoss) {
    ArrivalCounter counter;
    for (int i = 0; i < 3; ++i)
        counter.add(Fid{1}, 10); // two were published
    counter.add(Fid{2}, 10);     // three were published
    counter.add(Fid{9}, 10);     // none was published: it came under a wrong fid
    const std::array<FidCount, 2> totals{FidCount{.fid = Fid{1}, .count = 2},
                                         FidCount{.fid = Fid{2}, .count = 3}};
    finish(counter, totals);
    EXPECT_EQ(counter.difference(Fid{1}), (Difference{.lost = 0, .surplus = 1}));
    EXPECT_EQ(counter.difference(Fid{9}), (Difference{.lost = 0, .surplus = 1}));
    EXPECT_EQ(counter.difference(Fid{2}), (Difference{.lost = 2, .surplus = 0}));
    EXPECT_EQ(counter.difference(), (Difference{.lost = 2, .surplus = 2}));
}

TEST(ArrivalCounter, ADuplicateDoesNotCompensateAReportedLoss) {
    ArrivalCounter counter;
    counter.add(Fid{1}, 10);
    counter.add(Fid{1}, 10);
    counter.add_dropped(Fid{1}, 1);
    const FidCount total{.fid = Fid{1}, .count = 2};
    finish(counter, {&total, 1});
    EXPECT_EQ(counter.difference(), (Difference{.lost = 1, .surplus = 1}));
}

TEST(ArrivalCounter, GapsThatAreLargerThanAnyNumberStayAtTheLargest) {
    ArrivalCounter counter;
    counter.add_dropped(Fid{1}, std::uint64_t{1} << 63);
    counter.add_dropped(Fid{1}, std::uint64_t{1} << 63);
    EXPECT_EQ(counter.dropped(Fid{1}), UINT64_MAX);
    counter.add_dropped(Fid{2}, 1);
    EXPECT_EQ(counter.dropped(), UINT64_MAX);
}

TEST(ArrivalCounter, WhatIsSaidToBeMissingIsKnownBeforeTheTotals) {
    ArrivalCounter counter;
    counter.add(Fid{1}, 10);
    counter.add_dropped(Fid{1}, 4);
    EXPECT_EQ(counter.dropped(), 4U);
    EXPECT_EQ(counter.dropped(Fid{2}), 0U);
    const FidCount total{.fid = Fid{1}, .count = 5};
    finish(counter, {&total, 1});
    EXPECT_EQ(counter.difference(), (Difference{.lost = 4, .surplus = 0}));
}

TEST(ArrivalCounter, ForgetsAnUnsubscribedRangeAndKeepsTheSums) {
    ArrivalCounter counter;
    for (std::uint64_t fid = 0; fid < 100; ++fid)
        counter.add(Fid{fid}, 1);
    counter.add_dropped(Fid{50}, 3);
    counter.forget({.first = Fid{10}, .last = Fid{89}});
    EXPECT_EQ(counter.fids().size(), 20U);
    EXPECT_EQ(counter.fids().find(Fid{10}), nullptr);
    EXPECT_NE(counter.fids().find(Fid{90}), nullptr);
    EXPECT_EQ(counter.messages(), 100U);
    EXPECT_EQ(counter.dropped(Fid{50}), 0U);
    EXPECT_EQ(counter.dropped(), 3U);
    counter.forget_all();
    EXPECT_EQ(counter.dropped(), 3U);
}

TEST(ArrivalCounter, ANewConnectionResetsTheCounters) {
    ArrivalCounter counter;
    counter.add(Fid{1}, 10);
    counter.add_dropped(Fid{1}, 3);
    const FidCount before{.fid = Fid{1}, .count = 9};
    finish(counter, {&before, 1});
    counter.forget_all();
    EXPECT_TRUE(counter.fids().empty());
    EXPECT_EQ(counter.dropped(Fid{1}), 0U);
    EXPECT_FALSE(counter.complete());
    EXPECT_EQ(counter.difference(), std::nullopt);
    counter.add(Fid{1}, 10);
    const FidCount now{.fid = Fid{1}, .count = 1};
    finish(counter, {&now, 1});
    EXPECT_EQ(counter.difference(), Difference{}) << "earlier losses are forgotten";
    EXPECT_EQ(counter.messages(), 2U) << "over all connections";
}

TEST(FramesSeen, AreThoseOfAllThatAreTakenTogether) {
    for (bool FramesSeen::*const kind : {&FramesSeen::pages, &FramesSeen::messages,
                                         &FramesSeen::gathered, &FramesSeen::fragments}) {
        FramesSeen all;
        FramesSeen seen;
        seen.*kind = true;
        merge(all, {});
        EXPECT_FALSE(all.*kind);
        merge(all, seen);
        EXPECT_TRUE(all.*kind);
        merge(all, {});
        EXPECT_TRUE(all.*kind) << "it was seen";
        EXPECT_EQ(int{all.pages} + int{all.messages} + int{all.gathered} + int{all.fragments}, 1);
    }
}

// Losses reported by gaps are in ArrivalCounter::dropped().
TEST(Account, CountsSeparatelyWhatNoGapReported) {
    ArrivalCounter arrivals;
    Account account;
    account.begin_connection();
    EXPECT_TRUE(account.is_connected());
    arrivals.add(Fid{1}, 10);
    arrivals.add_dropped(Fid{1}, 2);
    const FidCount total{.fid = Fid{1}, .count = 8}; // 5 more than reported so far
    finish(arrivals, {&total, 1});
    EXPECT_EQ(account.found_missing(), 0U);
    account.end_connection(arrivals);
    EXPECT_FALSE(account.is_connected());
    EXPECT_EQ(account.found_missing(), 5U);
    account.add_lost(Fid{1}, 100);
    EXPECT_EQ(account.found_missing(), 105U);
    EXPECT_EQ(account.fids().find(Fid{1})->lost, 107U);
    EXPECT_EQ(arrivals.dropped() + account.found_missing(), 107U);
}

TEST(Account, SumsUpTheFidsBeyondItsLimit) {
    Account account;
    account.limit_fids(3);
    for (std::uint64_t connection = 0; connection < 3; ++connection) {
        account.begin_connection();
        ArrivalCounter arrivals;
        for (const std::uint64_t fid : {2 * connection, 2 * connection + 1, std::uint64_t{0}})
            arrivals.add(Fid{fid}, 10);
        account.end_connection(arrivals);
    }
    account.add_lost(Fid{1}, 4);
    account.add_lost(Fid{77}, 5);
    ASSERT_EQ(account.fids().size(), 3U);
    EXPECT_EQ(account.fids().find(Fid{0})->messages, 4U);
    EXPECT_EQ(account.fids().find(Fid{1})->lost, 4U);
    EXPECT_EQ(account.others().messages, 3U);
    EXPECT_EQ(account.others().bytes, 30U);
    EXPECT_EQ(account.others().lost, 5U);
}

TEST(Account, KeepsWhatASubscriptionThatHasEndedBrought) {
    ArrivalCounter arrivals;
    Account account;
    account.begin_connection();
    for (const std::uint64_t fid : {1U, 2U}) {
        arrivals.add(Fid{fid}, 10 * fid);
        arrivals.add_dropped(Fid{fid}, fid);
    }
    const FidRange first{.first = Fid{1}, .last = Fid{1}};
    account.end_subscription(first, arrivals);
    arrivals.forget(first);
    const auto check = [](const FidMap<Account::Row>& rows) {
        ASSERT_EQ(rows.size(), 2U);
        EXPECT_EQ(rows.find(Fid{1})->bytes, 10U);
        EXPECT_EQ(rows.find(Fid{1})->lost, 1U);
        EXPECT_EQ(rows.find(Fid{2})->bytes, 20U);
        EXPECT_EQ(rows.find(Fid{2})->lost, 2U);
    };
    check(account.fids(arrivals));
    account.end_connection(arrivals);
    check(account.fids());
    check(account.fids(arrivals)); // the arrivals were not reset
}

TEST(Account, ReportsWhatArrivedBeyondTheTotals) {
    ArrivalCounter arrivals;
    Account account;
    account.begin_connection();
    for (int i = 0; i < 3; ++i)
        arrivals.add(Fid{1}, 10);
    const FidCount total{.fid = Fid{1}, .count = 1};
    finish(arrivals, {&total, 1});
    EXPECT_EQ(account.fids(arrivals).find(Fid{1})->surplus, 2U) << "during the connection";
    account.end_connection(arrivals);
    EXPECT_EQ(account.fids().find(Fid{1})->surplus, 2U);
    EXPECT_EQ(account.fids().find(Fid{1})->lost, 0U);
}

TEST(Account, CountsConnectionsAndThePublishSocketsThatHaveEndedThere) {
    Account account;
    ArrivalCounter arrivals;
    arrivals.add(Fid{1}, 10);
    account.end_connection(arrivals);
    EXPECT_TRUE(account.fids().empty()) << "it was only an attempt";
    for (int i = 0; i < 2; ++i) {
        account.begin_connection();
        account.end_connection({});
    }
    EXPECT_EQ(account.connections(), 2U);
    for (const bool known : {true, false, false})
        account.add_change({.former = 1, .now = 2, .tail_known = known});
    EXPECT_EQ(account.changes(), 3U);
    EXPECT_EQ(account.unknown_tails(), 2U);
}

TEST(Account, RowsAddUpInEachOfTheirCounters) {
    Account::Row sum{.messages = 1, .bytes = 2, .lost = 3, .surplus = 4};
    sum += {.messages = 10, .bytes = 20, .lost = 30, .surplus = 40};
    EXPECT_EQ(sum.messages, 11U);
    EXPECT_EQ(sum.bytes, 22U);
    EXPECT_EQ(sum.lost, 33U);
    EXPECT_EQ(sum.surplus, 44U);
}

} // namespace
} // namespace netio::pubsub::accounts_test
