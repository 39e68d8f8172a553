// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_assignment.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace netio::pubsub::fid_assignment_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Order = FidAssignment::Order;

constexpr PublisherId a{1};
constexpr PublisherId b{2};

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}
Order ask(PublisherId publisher, const FidRange& fids, FidAssignment::Policy policy = {}) {
    return {.publisher = publisher, .subscribe = true, .fids = fids, .policy = policy};
}
Order leave(PublisherId publisher, const FidRange& fids) {
    return {.publisher = publisher, .subscribe = false, .fids = fids, .policy = {}};
}

class AssignmentTest : public testing::Test {
  protected:
    FidAssignment assignment;
    std::vector<Order> want(const FidRange& fids, FidAssignment::Policy policy = {}) {
        return assignment.want({&fids, 1}, policy).orders;
    }
    FidAssignment::Outcome claim(PublisherId publisher, const FidRange& fids) {
        return assignment.claim(publisher, {&fids, 1});
    }
};

TEST_F(AssignmentTest, APublisherKnownByAddressIsAskedForAllFids) {
    want(range(1, 9), SlowPolicy::drop);
    EXPECT_THAT(assignment.add(a).orders, ElementsAre(ask(a, range(1, 9), SlowPolicy::drop)));
    EXPECT_THAT(want(range(20, 29)), ElementsAre(ask(a, range(20, 29))));
    EXPECT_THAT(assignment.unwant(range(5, 25)).orders,
                ElementsAre(leave(a, range(5, 9)), leave(a, range(20, 25))));
    EXPECT_THAT(assignment.remove(a).orders, IsEmpty());
}

TEST_F(AssignmentTest, AnUnreachablePublisherYieldsFidsToTheNextClaimant) {
    constexpr PublisherId c{3};
    want(range(0, 100));
    claim(a, range(0, 9));
    EXPECT_THAT(assignment.yield(a, false).orders, IsEmpty()) << "no other publisher claims it";
    claim(b, range(0, 4));
    claim(c, range(3, 9));
    EXPECT_THAT(assignment.yield(a, false).orders,
                UnorderedElementsAre(leave(a, range(0, 4)), ask(b, range(0, 4)),
                                     leave(a, range(5, 9)), ask(c, range(5, 9))));
    EXPECT_THAT(assignment.yield(b, false).orders,
                UnorderedElementsAre(leave(b, range(3, 4)), ask(c, range(3, 4)),
                                     leave(b, range(0, 2)), ask(a, range(0, 2))));
    EXPECT_THAT(assignment.yield(c, false).orders,
                UnorderedElementsAre(leave(c, range(3, 9)), ask(a, range(3, 9))));
}

TEST_F(AssignmentTest, AConnectedPublisherHasPriorityForItsFids) {
    constexpr PublisherId c{3};
    want(range(0, 100));
    claim(a, range(0, 9));
    EXPECT_FALSE(assignment.is_contested(a));
    claim(b, range(5, 14));
    claim(c, range(0, 9));
    EXPECT_TRUE(assignment.is_contested(a));
    EXPECT_TRUE(assignment.is_contested(c));
    EXPECT_THAT(assignment.reach(c).orders,
                ElementsAre(leave(a, range(0, 9)), ask(c, range(0, 9))));
    EXPECT_THAT(assignment.reach(b).orders, IsEmpty()) << "another connected publisher has them";
    EXPECT_THAT(claim(c, range(0, 20)).orders, ElementsAre(ask(c, range(15, 20))));
    assignment.lose(c);
    EXPECT_THAT(assignment.yield(c, false).orders,
                UnorderedElementsAre(leave(c, range(5, 9)), ask(b, range(5, 9)),
                                     leave(c, range(0, 4)), ask(a, range(0, 4))))
        << "connected first";
}

TEST_F(AssignmentTest, FidsOfADoubtedPublisherGoToConnectedClaimants) {
    constexpr PublisherId c{3};
    want(range(0, 100));
    claim(a, range(0, 9));
    assignment.reach(a);
    claim(b, range(0, 2));
    claim(c, range(2, 4));
    assignment.reach(c);
    EXPECT_THAT(assignment.suspect(a).orders,
                ElementsAre(leave(a, range(2, 4)), ask(c, range(2, 4))))
        << "the other one is not authenticated";
    EXPECT_THAT(claim(c, range(2, 5)).orders,
                ElementsAre(leave(a, range(5, 5)), ask(c, range(5, 5))));
    EXPECT_THAT(assignment.reach(b).orders,
                ElementsAre(leave(a, range(0, 1)), ask(b, range(0, 1))));
    assignment.reach(a);
    EXPECT_THAT(claim(c, range(2, 6)).orders, IsEmpty()) << "it is connected again";
    EXPECT_THAT(assignment.suspect(PublisherId{9}).orders, IsEmpty());
}

TEST_F(AssignmentTest, ALaterRequestCoversTheFidsOwnedByThen) {
    claim(a, range(0, 9));
    claim(b, range(5, 14));
    want(range(3, 100), SlowPolicy::drop);
    EXPECT_THAT(assignment.ask(a).orders, ElementsAre(ask(a, range(3, 9), SlowPolicy::drop)));
    EXPECT_THAT(assignment.ask(b).orders, ElementsAre(ask(b, range(10, 14), SlowPolicy::drop)));
    EXPECT_THAT(assignment.ask(PublisherId{9}).orders, IsEmpty());
    assignment.unwant(range(0, 12));
    EXPECT_THAT(assignment.ask(a).orders, IsEmpty());
    EXPECT_THAT(assignment.ask(b).orders, ElementsAre(ask(b, range(13, 14), SlowPolicy::drop)));
}

TEST_F(AssignmentTest, APermanentlyRefusedPublisherOwnsNothing) {
    want(range(0, 100));
    claim(a, range(0, 9));
    EXPECT_THAT(assignment.yield(a, true).orders, IsEmpty());
    EXPECT_THAT(want(range(0, 3), SlowPolicy::drop), IsEmpty());
    const FidAssignment::Outcome outcome = claim(b, range(0, 9));
    EXPECT_THAT(outcome.contests, IsEmpty());
    EXPECT_EQ(outcome.orders.front().publisher, b);
    EXPECT_THAT(assignment.remove(b).orders, IsEmpty());
    EXPECT_EQ(claim(a, range(0, 9)).orders.front().publisher, a);
}

TEST_F(AssignmentTest, AFoundPublisherIsAskedForItsWantedFids) {
    want(range(5, 14));
    EXPECT_THAT(claim(a, range(0, 9)).orders, ElementsAre(ask(a, range(5, 9))));
    EXPECT_THAT(claim(b, range(10, 19)).orders, ElementsAre(ask(b, range(10, 14))));
    EXPECT_THAT(want(range(9, 15), SlowPolicy::drop),
                ElementsAre(ask(a, range(9, 9), SlowPolicy::drop),
                            ask(b, range(10, 15), SlowPolicy::drop)));
    EXPECT_THAT(claim(a, range(0, 9)).orders, IsEmpty()) << "the same claim again";
}

TEST_F(AssignmentTest, TheFirstClaimantHasAFidUntilItIsGone) {
    want(range(0, 100));
    claim(a, range(0, 9));
    const FidAssignment::Outcome outcome = claim(b, range(5, 14));
    EXPECT_THAT(outcome.orders, ElementsAre(ask(b, range(10, 14))));
    EXPECT_THAT(outcome.contests, ElementsAre(FidAssignment::Contest{
                                      .owner = a, .other = b, .first = range(5, 9), .fids = 5}));
    EXPECT_THAT(assignment.remove(a).orders, ElementsAre(ask(b, range(5, 9))));
}

TEST_F(AssignmentTest, AFidThatMovesIsFollowed) {
    want(range(0, 100));
    claim(a, range(0, 9));
    claim(b, range(10, 19));
    EXPECT_THAT(claim(a, range(0, 4)).orders, ElementsAre(leave(a, range(5, 9))));
    EXPECT_THAT(claim(b, range(5, 19)).orders, ElementsAre(ask(b, range(5, 9))));
    // In the other order: b still claims the fids when a claims them.
    EXPECT_THAT(claim(a, range(0, 9)).orders, IsEmpty());
    EXPECT_THAT(claim(b, range(10, 19)).orders,
                UnorderedElementsAre(leave(b, range(5, 9)), ask(a, range(5, 9))));
}

TEST_F(AssignmentTest, ALaterWishIsAskedOfKnownPublishers) {
    claim(a, range(0, 9));
    EXPECT_THAT(claim(b, range(0, 9)).contests, IsEmpty()) << "no subscriber wants it";
    EXPECT_THAT(want(range(3, 3)), ElementsAre(ask(a, range(3, 3))));
    EXPECT_TRUE(!assignment.empty());
}

TEST_F(AssignmentTest, ContestsAreReportedOncePerPairUpToALimit) {
    want(range(0, 1000));
    std::vector<FidRange> single;
    for (std::uint64_t i = 0; i < 1000; i += 2)
        single.push_back(range(i, i));
    assignment.claim(a, single);
    EXPECT_THAT(assignment.claim(b, single).contests,
                ElementsAre(FidAssignment::Contest{
                    .owner = a, .other = b, .first = range(0, 0), .fids = 500}));
    for (std::uint64_t i = 1; i < 1000; i += 2)
        claim(PublisherId{i + 2}, range(i, i));
    EXPECT_THAT(claim(PublisherId{2000}, range(0, 1000)).contests,
                SizeIs(FidAssignment::contest_limit));
}

// The rest of another publisher's claim must not be processed here, where its contests would not be
// reported.
TEST(AssignmentInSlices, ARemovedPublisherUsesNoSliceOfAnother) {
    constexpr PublisherId c{3};
    const FidRange all = range(0, 100);
    const std::vector<FidRange> many{range(0, 0), range(2, 2), range(4, 4), range(6, 6)};
    using Change = FidAssignment::Outcome (*)(FidAssignment&);
    for (const Change change : {Change{[](FidAssignment& it) { return it.remove(c); }},
                                Change{[](FidAssignment& it) { return it.claim(c, {}); }}}) {
        FidAssignment assignment{2};
        assignment.want({&all, 1}, {});
        assignment.claim(a, {&many.front(), 1});
        const FidRange other = range(90, 90);
        assignment.claim(c, {&other, 1});
        ASSERT_THAT(assignment.claim(b, many).orders, SizeIs(1)) << "half of it";
        EXPECT_THAT(change(assignment).contests, IsEmpty());
        std::vector<FidAssignment::Contest> contests;
        while (!assignment.is_settled())
            std::ranges::move(assignment.advance().contests, std::back_inserter(contests));
        EXPECT_THAT(contests, ElementsAre(FidAssignment::Contest{
                                  .owner = a, .other = b, .first = range(0, 0), .fids = 1}));
    }
}

// --- cost of an announcement by an unauthenticated peer --------------------------------------

class LongAssignment : public testing::Test {
  protected:
    static constexpr std::size_t many = 65536;
    static constexpr std::size_t slice = FidAssignment::usual_slice;
    // Every fourth fid, beginning with `first`.
    static std::vector<FidRange> single_fids(std::uint64_t first) {
        std::vector<FidRange> fids;
        for (std::uint64_t i = 0; i < many; ++i)
            fids.push_back(range(first + 4 * i, first + 4 * i));
        return fids;
    }
    LongAssignment() {
        const FidRange all = range(0, UINT64_MAX);
        assignment.want({&all, 1}, {});
    }
    // The steps of each call are bounded, and so is their sum.
    std::size_t orders(FidAssignment::Outcome outcome) {
        std::size_t all = outcome.orders.size();
        const std::size_t begin = steps_;
        note();
        while (!assignment.is_settled()) {
            outcome = assignment.advance();
            all += outcome.orders.size();
            note();
        }
        EXPECT_LT(steps_ - begin, 60 * many);
        return all;
    }
    FidAssignment assignment;

  private:
    void note() {
        EXPECT_LT(assignment.steps() - steps_, 60 * slice);
        steps_ = assignment.steps();
    }
    std::size_t steps_ = 0;
};

TEST_F(LongAssignment, AChangeCostsItsLengthAndEachTurnASlice) {
    EXPECT_EQ(orders(assignment.claim(a, single_fids(0))), many);
    EXPECT_EQ(orders(assignment.claim(a, single_fids(0))), 0U) << "only the difference";
    EXPECT_EQ(orders(assignment.claim(a, single_fids(1))), 2 * many);
    EXPECT_EQ(orders(assignment.claim(b, single_fids(1))), 0U) << "they belong to the first one";
    EXPECT_EQ(orders(assignment.remove(a)), many) << "each goes to the other";
    EXPECT_EQ(orders(assignment.claim(b, {})), many);
}

TEST_F(LongAssignment, OneThatYieldsAllCostsWhatItHas) {
    orders(assignment.claim(a, single_fids(0)));
    for (std::uint64_t other = 3; other < 10; ++other)
        orders(assignment.claim(PublisherId{other}, single_fids(other % 3 + 1)));
    orders(assignment.claim(b, single_fids(0)));
    const std::size_t before = assignment.steps();
    EXPECT_THAT(assignment.yield(a, false).orders, SizeIs(2 * many));
    EXPECT_LT(assignment.steps() - before, 20 * 9 * many);
}

TEST_F(LongAssignment, ChangesTakeTurnsAndAreConsistentAfterEachSlice) {
    const std::vector<FidRange> fids = single_fids(0);
    assignment.claim(a, fids);
    ASSERT_FALSE(assignment.is_settled());
    const FidRange second = range(1, 1);
    FidAssignment::Outcome outcome = assignment.claim(b, {&second, 1});
    for (int turn = 0; turn < 2 && (outcome.orders.empty() || outcome.orders[0].publisher != b);
         ++turn)
        outcome = assignment.advance();
    EXPECT_THAT(outcome.orders, ElementsAre(ask(b, second))) << "a short claim does not wait";
    // The processed part belongs to `a`, and is released with it.
    std::size_t left = 0;
    outcome = assignment.yield(a, true);
    EXPECT_THAT(outcome.orders, IsEmpty());
    const FidAssignment::Outcome next = assignment.claim(b, fids);
    left = orders(next);
    EXPECT_EQ(left, many + 1) << "including the fid that it no longer claims";
}

// --- against a model -------------------------------------------------------------------------

// Few fids, each looked up separately, and everything at once.
class Model {
  public:
    static constexpr std::uint64_t fids = 16;
    using Set = std::set<std::uint64_t>;

    void claim(PublisherId publisher, const Set& now) {
        const Set before = std::exchange(claims_[publisher], now);
        for (std::uint64_t fid = 0; fid < fids; ++fid) {
            if (before.count(fid) > 0 && now.count(fid) == 0) release(publisher, fid);
            if (before.count(fid) == 0 && now.count(fid) > 0) owners_.try_emplace(fid, publisher);
        }
    }
    void remove(PublisherId publisher) {
        claims_.erase(publisher);
        for (std::uint64_t fid = 0; fid < fids; ++fid)
            release(publisher, fid);
    }
    void yield(PublisherId publisher, bool for_good) {
        const auto own = claims_.find(publisher);
        if (own == claims_.end()) return;
        for (std::uint64_t fid = 0; fid < fids; ++fid) {
            if (owners_.count(fid) == 0 || owners_.at(fid) != publisher) continue;
            if (for_good) owners_.erase(fid);
            for (auto next = std::next(own);; ++next) {
                if (next == claims_.end()) next = claims_.begin();
                if (next == own) break;
                if (next->second.count(fid) == 0) continue;
                owners_.insert_or_assign(fid, next->first);
                break;
            }
        }
        if (for_good) claims_.erase(own);
    }
    std::set<std::pair<PublisherId, std::uint64_t>> asked(const Set& wanted) const {
        std::set<std::pair<PublisherId, std::uint64_t>> all;
        for (const auto& [fid, owner] : owners_)
            if (wanted.count(fid) > 0) all.emplace(owner, fid);
        return all;
    }

  private:
    void release(PublisherId publisher, std::uint64_t fid) {
        const auto owned = owners_.find(fid);
        if (owned == owners_.end() || owned->second != publisher) return;
        owners_.erase(owned);
        for (const auto& [other, claimed] : claims_) {
            if (other == publisher || claimed.count(fid) == 0) continue;
            owners_.emplace(fid, other);
            return;
        }
    }
    std::map<PublisherId, Set> claims_;
    std::map<std::uint64_t, PublisherId> owners_;
};

class AgainstAModel {
  public:
    explicit AgainstAModel(std::uint64_t seed) : random_{seed}, assignment_{1 + seed % 3} {}

    void step() {
        const PublisherId publisher{1 + random_() % 4};
        const std::uint64_t kind = random_() % 10;
        if (kind < 5) {
            const Model::Set now = any_set();
            model_.claim(publisher, now);
            carry_out(assignment_.claim(publisher, ranges_of(now)));
        } else if (kind < 7) {
            const bool for_good = kind == 6;
            model_.yield(publisher, for_good);
            carry_out(assignment_.yield(publisher, for_good));
            if (for_good) leave_all(publisher); // its connection has ended
        } else if (kind == 7) {
            model_.remove(publisher);
            leave_all(publisher);
            carry_out(assignment_.remove(publisher));
        } else if (kind == 8) {
            const Model::Set now = any_set();
            wanted_.insert(now.begin(), now.end());
            carry_out(assignment_.want(ranges_of(now), {}));
        } else {
            const std::uint64_t fid = random_() % Model::fids;
            wanted_.erase(fid);
            carry_out(assignment_.unwant(range(fid, fid)));
        }
        EXPECT_EQ(asked_, model_.asked(wanted_));
    }

  private:
    void leave_all(PublisherId publisher) {
        std::erase_if(asked_, [&](const auto& each) { return each.first == publisher; });
    }
    Model::Set any_set() {
        Model::Set set;
        for (std::uint64_t fid = 0; fid < Model::fids; ++fid)
            if (random_() % 2 == 0) set.insert(fid);
        return set;
    }
    static std::vector<FidRange> ranges_of(const Model::Set& set) {
        std::vector<FidRange> ranges;
        for (const std::uint64_t fid : set)
            ranges.push_back(range(fid, fid));
        return ranges;
    }
    void carry_out(FidAssignment::Outcome outcome) {
        for (;;) {
            for (const Order& each : outcome.orders) {
                for (auto fid = to_integer(each.fids.first); fid <= to_integer(each.fids.last);
                     ++fid) {
                    if (each.subscribe) {
                        asked_.emplace(each.publisher, fid);
                    } else {
                        EXPECT_EQ(asked_.erase({each.publisher, fid}), 1U);
                    }
                }
            }
            if (assignment_.is_settled()) return;
            outcome = assignment_.advance();
        }
    }

    std::mt19937_64 random_;
    FidAssignment assignment_;
    Model model_;
    Model::Set wanted_;
    std::set<std::pair<PublisherId, std::uint64_t>> asked_;
};

TEST(AssignmentModel, AFidIsAskedOfThePublisherThatTheModelNames) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        AgainstAModel run{seed};
        for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i)
            run.step();
        if (testing::Test::HasFailure()) return;
    }
}

using Contest = FidAssignment::Contest;

constexpr PublisherId c{3};

// The calls for several ranges, with one range; and the result after all changes.
class SettlingAssignment : public FidAssignment {
  public:
    explicit SettlingAssignment(std::size_t slice = usual_slice) : FidAssignment{slice} {}
    using FidAssignment::claim;

    Outcome want(const FidRange& fids) { return FidAssignment::want({&fids, 1}, {}); }
    Outcome claim(PublisherId publisher, const FidRange& fids) {
        return FidAssignment::claim(publisher, {&fids, 1});
    }
    Outcome settle(Outcome outcome = {}) {
        while (!is_settled()) {
            const Outcome more = advance();
            outcome.orders.insert(outcome.orders.end(), more.orders.begin(), more.orders.end());
            outcome.contests.insert(outcome.contests.end(), more.contests.begin(),
                                    more.contests.end());
        }
        return outcome;
    }
};

TEST(AssignmentRules, ARemovedPublisherIsAskedForNothing) {
    SettlingAssignment tested;
    tested.add(a);
    tested.claim(b, range(0, 9));
    tested.remove(a);
    tested.remove(b);
    EXPECT_FALSE(tested.is_claimant(b));
    EXPECT_THAT(tested.want(range(0, 9)).orders, IsEmpty());
    EXPECT_THAT(tested.unwant(range(0, 9)).orders, IsEmpty());
    EXPECT_THAT(tested.advance().orders, IsEmpty()) << "no change is left";
}

TEST(AssignmentRules, AReturningPublisherHasToAuthenticateAgain) {
    SettlingAssignment tested;
    tested.want(range(0, 9));
    tested.claim(a, range(0, 9));
    tested.reach(a);
    tested.claim(b, range(0, 9));
    ASSERT_TRUE(tested.is_contested(a));
    EXPECT_THAT(tested.remove(a).orders, ElementsAre(ask(b, range(0, 9))));
    EXPECT_FALSE(tested.is_contested(a)) << "that was before it was removed";
    EXPECT_THAT(tested.claim(a, range(0, 9)).orders, IsEmpty());
}

TEST(AssignmentRules, APermanentlyRefusedPublisherIsNotContested) {
    SettlingAssignment tested;
    tested.want(range(0, 9));
    tested.claim(a, range(0, 9));
    tested.claim(b, range(0, 9));
    ASSERT_TRUE(tested.is_contested(b));
    ASSERT_TRUE(tested.is_claimant(b));
    tested.yield(b, true);
    EXPECT_FALSE(tested.is_contested(b));
    EXPECT_FALSE(tested.is_claimant(b));
}

TEST(AssignmentRules, AConnectionWithoutAClaimHasNoEffect) {
    SettlingAssignment tested;
    tested.want(range(0, 9));
    tested.claim(a, range(0, 9));
    EXPECT_THAT(tested.reach(b).orders, IsEmpty());
    EXPECT_THAT(tested.claim(b, range(0, 9)).orders, IsEmpty()) << "it must claim them again";
}

TEST(AssignmentRules, AllFidsAreCountedAsTheLargestNumber) {
    SettlingAssignment tested;
    const FidRange all = range(0, UINT64_MAX);
    tested.want(all);
    tested.claim(a, all);
    EXPECT_THAT(tested.claim(b, all).contests,
                ElementsAre(Contest{.owner = a, .other = b, .first = all, .fids = UINT64_MAX}));
}

TEST(AssignmentRules, AContestIsReportedOnlyWithTheChangeThatCausesIt) {
    SettlingAssignment tested;
    tested.want(range(0, 100));
    tested.claim(a, range(0, 9));
    EXPECT_THAT(tested.claim(b, range(0, 9)).contests, testing::SizeIs(1));
    EXPECT_THAT(tested.claim(b, std::vector{range(0, 9), range(20, 29)}).contests, IsEmpty());
}

// --- between two slices ---------------------------------------------------------------------

const std::vector<FidRange> several{range(0, 0), range(2, 2), range(4, 4), range(6, 6)};

TEST(AssignmentBetweenSlices, AClaimIsTheLatestAnnouncement) {
    SettlingAssignment tested{1};
    tested.want(range(0, 100));
    EXPECT_THAT(tested.claimed(a), IsEmpty());
    tested.claim(a, several);
    ASSERT_FALSE(tested.is_settled());
    EXPECT_EQ(tested.claimed(a), several);
    tested.settle();
    EXPECT_EQ(tested.claimed(a), several);
    tested.settle(tested.claim(a, range(9, 9)));
    EXPECT_THAT(tested.claimed(a), ElementsAre(range(9, 9)));
}

TEST(AssignmentBetweenSlices, ANewClaimRestartsAtTheLowestFid) {
    SettlingAssignment tested{1};
    tested.want(range(0, 100));
    ASSERT_THAT(tested.claim(a, several).orders, ElementsAre(ask(a, range(0, 0))));
    EXPECT_THAT(tested.settle(tested.claim(a, range(1, 1))).orders,
                UnorderedElementsAre(leave(a, range(0, 0)), ask(a, range(1, 1))));
}

TEST(AssignmentBetweenSlices, ARemovedPublisherKeepsNoPartOfItsClaim) {
    SettlingAssignment tested{1};
    tested.want(range(0, 100));
    tested.claim(a, several);
    ASSERT_FALSE(tested.is_settled());
    EXPECT_THAT(tested.settle(tested.remove(a)).orders, IsEmpty());
    EXPECT_THAT(tested.settle(tested.claim(b, several)).orders,
                ElementsAre(ask(b, range(0, 0)), ask(b, range(2, 2)), ask(b, range(4, 4)),
                            ask(b, range(6, 6))));
}

// Below the border of its change, a publisher has released the fids that it no longer claims; above
// the border its old claim is valid. The border is inside a range of the old claim, or at its end.
TEST(AssignmentBetweenSlices, TheNewClaimIsValidBelowTheBorderAndTheOldOneAbove) {
    const std::vector<std::vector<FidRange>> before{{range(0, 50)}, {range(0, 19), range(30, 50)}};
    for (const std::vector<FidRange>& old : before) {
        SettlingAssignment tested{1};
        tested.want(range(0, 100));
        tested.settle(tested.claim(b, old));
        tested.settle(tested.claim(a, range(0, 60)));
        EXPECT_THAT(tested.claim(b, std::vector{range(5, 9), range(20, 29)}).orders,
                    UnorderedElementsAre(leave(b, range(0, 4)), leave(b, range(10, 19)),
                                         ask(a, range(0, 4)), ask(a, range(10, 19))));
        ASSERT_FALSE(tested.is_settled());
        const FidRange rest = old.back();
        EXPECT_THAT(tested.ask(b).orders,
                    ElementsAre(ask(b, range(5, 9)),
                                ask(b, range(std::max<std::uint64_t>(20, to_integer(rest.first)),
                                             to_integer(rest.last)))));
        EXPECT_THAT(tested.yield(a, false).orders, IsEmpty())
            << "the other publisher claims none of these fids now";
    }
}

// `a` is being removed, and has released only the first of its fids.
class AssignmentOfOneThatLeaves : public testing::Test {
  protected:
    AssignmentOfOneThatLeaves() {
        tested.want(range(0, 100));
        tested.claim(c, range(8, 8));
        tested.reach(c);
        tested.settle(
            tested.claim(a, std::vector{range(0, 0), range(2, 2), range(4, 4), range(8, 8)}));
        tested.reach(a);
        tested.settle(tested.claim(b, std::vector{range(2, 2), range(8, 8)}));
        tested.reach(b);
        tested.remove(a);
        EXPECT_FALSE(tested.is_settled());
    }
    SettlingAssignment tested{1};
};

TEST_F(AssignmentOfOneThatLeaves, FidsReleasedByAnotherDoNotGoToIt) {
    tested.lose(b); // otherwise it would be first in any case
    EXPECT_THAT(tested.yield(c, false).orders,
                ElementsAre(leave(c, range(8, 8)), ask(b, range(8, 8))));
}

TEST_F(AssignmentOfOneThatLeaves, ItsAuthenticationDoesNotCount) {
    tested.lose(c);
    EXPECT_THAT(tested.reach(a).orders, IsEmpty());
}

TEST_F(AssignmentOfOneThatLeaves, ItsFidsAreReleasedOnceByItsChange) {
    EXPECT_THAT(tested.suspect(a).orders, IsEmpty());
    EXPECT_THAT(tested.yield(a, false).orders, IsEmpty());
    EXPECT_THAT(tested.yield(a, true).orders, IsEmpty());
    EXPECT_THAT(tested.settle().orders, ElementsAre(ask(b, range(2, 2))));
    EXPECT_FALSE(tested.is_claimant(a));
    EXPECT_THAT(
        tested.claim(c, range(4, 4)).orders,
        UnorderedElementsAre(leave(c, range(8, 8)), ask(b, range(8, 8)), ask(c, range(4, 4))))
        << "no publisher has it any more";
}

TEST_F(AssignmentOfOneThatLeaves, ItContestsNothing) {
    constexpr PublisherId d{4};
    EXPECT_THAT(tested.claim(d, range(4, 4)).contests, IsEmpty());
    EXPECT_FALSE(tested.is_contested(d));
}

TEST(AssignmentBetweenSlices, AContestWithARemovedPublisherIsNotReported) {
    using End = FidAssignment::Outcome (*)(SettlingAssignment&);
    for (const End end : {End{[](SettlingAssignment& it) { return it.remove(a); }},
                          End{[](SettlingAssignment& it) { return it.yield(a, true); }}}) {
        SettlingAssignment tested{1};
        tested.want(range(0, 100));
        tested.settle(tested.claim(a, several));
        EXPECT_THAT(tested.claim(b, several).contests, IsEmpty()) << "reported after the change";
        ASSERT_TRUE(tested.is_contested(b));
        EXPECT_THAT(tested.settle(end(tested)).contests, IsEmpty());
    }
}

} // namespace
} // namespace netio::pubsub::fid_assignment_test
