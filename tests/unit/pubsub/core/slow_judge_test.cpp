// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/slow_judge.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr TimePoint now{1h};

SlowJudge judge() {
    return SlowJudge{{.disconnect_after = 500ms, .close_timeout = 2s}};
}

TEST(SlowJudge, OnlyWhoIsWaitedForIsDisconnectedForBeingSlow) {
    const PublisherEnd end;
    EXPECT_THAT(judge().verdict({.time = 1h}, end, now), IsEmpty());
    EXPECT_THAT(judge().verdict({.time = 1h, .waited_for = true}, end, now), IsEmpty());
    EXPECT_THAT(judge().verdict({.time = 499ms, .waited_for = true, .limited = true}, end, now),
                IsEmpty());
    EXPECT_THAT(judge().verdict({.time = 500ms, .waited_for = true, .limited = true}, end, now),
                HasSubstr("more than 500 ms"));
}

TEST(SlowJudge, AtTheEndNobodyMayTakeNothingForLong) {
    PublisherEnd end;
    ASSERT_TRUE(end.begin(now + 1min));
    EXPECT_THAT(judge().verdict({.time = 1999ms}, end, now), IsEmpty());
    EXPECT_THAT(judge().verdict({.time = 2s}, end, now), HasSubstr("was ending"));
    EXPECT_THAT(judge().verdict({}, end, now + 1min), HasSubstr("close_limit"));
}

SlowJudge::Keeper keeper(std::uint64_t id, Duration idle,
                         std::vector<std::pair<Cookie, std::size_t>> posts, std::size_t rest = 0) {
    return {.subscriber = SubscriberId{id}, .idle = idle, .posts = std::move(posts), .rest = rest};
}

TEST(SlowJudge, WhoHasWaitedLongestGivesWayAndNoMoreThanAreNeeded) {
    const Shares shares{100};
    EXPECT_THAT(SlowJudge::who_gives_way({keeper(1, 5s, {{Cookie{1}, 20}}),
                                          keeper(2, 9s, {{Cookie{2}, 20}}),
                                          keeper(3, 7s, {{Cookie{3}, 20}})},
                                         shares, {}),
                ElementsAre(SubscriberId{2}));
    EXPECT_THAT(SlowJudge::who_gives_way({keeper(1, 5s, {{Cookie{1}, 49}})}, shares, {}),
                IsEmpty());
}

TEST(SlowJudge, WhatSeveralKeepCountsOnceAndIsFreeWithTheLast) {
    const Shares shares{100};
    const std::pair<Cookie, std::size_t> shared{Cookie{1}, 30};
    EXPECT_THAT(
        SlowJudge::who_gives_way({keeper(1, 5s, {shared}), keeper(2, 9s, {shared})}, shares, {}),
        IsEmpty());
    EXPECT_THAT(
        SlowJudge::who_gives_way(
            {keeper(1, 5s, {shared, {Cookie{2}, 30}}), keeper(2, 9s, {shared})}, shares, {}),
        ElementsAre(SubscriberId{2}, SubscriberId{1}));
}

TEST(SlowJudge, WhoKeepsWhatAMessageNeedsGivesWay) {
    Shares shares{100};
    shares.use(60);
    EXPECT_THAT(
        SlowJudge::who_gives_way({keeper(1, 5s, {{Cookie{1}, 20}})}, shares, {.amount = 80}),
        IsEmpty());
    EXPECT_THAT(SlowJudge::who_gives_way(
                    {keeper(1, 5s, {{Cookie{1}, 20}}), keeper(2, 9s, {{Cookie{2}, 10}})}, shares,
                    {.amount = 80}),
                ElementsAre(SubscriberId{2}));
}

// Others who were waited for have the rest, which nobody may take back.
TEST(SlowJudge, WhoKeepsSomethingGivesWayWhereAMessageWaitsInVain) {
    Shares shares{100};
    shares.use(95);
    const auto leaving = [&](std::size_t amount) {
        return SlowJudge::who_gives_way({keeper(1, 7s, {{Cookie{1}, 5}}), keeper(2, 9s, {}, 10),
                                         keeper(3, 5s, {{Cookie{2}, 5}}),
                                         keeper(4, 999ms, {{Cookie{3}, 5}})},
                                        shares, {.amount = amount, .in_vain = true});
    };
    EXPECT_THAT(leaving(15), ElementsAre(SubscriberId{2}));
    EXPECT_THAT(leaving(16), ElementsAre(SubscriberId{2}, SubscriberId{1}));
    EXPECT_THAT(leaving(60), ElementsAre(SubscriberId{2}, SubscriberId{1}, SubscriberId{3}));
    EXPECT_THAT(leaving(5), ElementsAre(SubscriberId{2})) << "what is free is in small pieces";
}

TEST(SlowJudge, WhatElseWaitsForWhoGivesWayIsFreeToo) {
    Shares shares{100};
    shares.use(95);
    EXPECT_THAT(SlowJudge::who_gives_way(
                    {keeper(1, 7s, {{Cookie{1}, 5}}, 40), keeper(2, 9s, {{Cookie{2}, 5}}, 40)},
                    shares, {.amount = 50, .in_vain = true}),
                ElementsAre(SubscriberId{2}));
}

TEST(SlowJudge, NobodyGivesWayBeforeItsTime) {
    const Shares shares{100};
    EXPECT_THAT(SlowJudge::who_gives_way({keeper(1, 999ms, {{Cookie{1}, 90}})}, shares, {}),
                IsEmpty());
    EXPECT_THAT(SlowJudge::who_gives_way({keeper(1, 1s, {{Cookie{1}, 90}})}, shares, {}),
                ElementsAre(SubscriberId{1}));
}

TEST(PublisherEnd, BeginsOnceAndIsOverdueAtItsLimit) {
    PublisherEnd end;
    EXPECT_FALSE(end.has_begun());
    EXPECT_FALSE(end.is_overdue(now + 1h));
    EXPECT_TRUE(end.begin(now));
    EXPECT_FALSE(end.begin(now + 1h));
    EXPECT_FALSE(end.is_overdue(now - 1ns));
    EXPECT_TRUE(end.is_overdue(now));
}

TEST(PublisherEnd, IsOrderlyOnlyIfEverybodyHasConfirmed) {
    PublisherEnd end;
    end.note_unconfirmed(); // whoever goes before the end is none of its business
    ASSERT_TRUE(end.begin(now));
    EXPECT_EQ(end.told().reason, CloseReason::orderly);
    end.note_unconfirmed();
    end.note_unconfirmed();
    EXPECT_EQ(end.told().reason, CloseReason::unconfirmed);
    EXPECT_THAT(end.told().detail, HasSubstr("2 subscriber(s)"));
    end.begin_at_once();
    EXPECT_EQ(end.told().reason, CloseReason::local);
}

} // namespace
} // namespace netio::pubsub
