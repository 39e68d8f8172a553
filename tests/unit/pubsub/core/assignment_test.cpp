// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/assignment.hpp"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <random>
#include <set>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Order = Assignment::Order;

constexpr SourceId a{1};
constexpr SourceId b{2};

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}
Order ask(SourceId source, const FidRange& fids, Assignment::Policy policy = {}) {
    return {.source = source, .subscribe = true, .fids = fids, .policy = policy};
}
Order leave(SourceId source, const FidRange& fids) {
    return {.source = source, .subscribe = false, .fids = fids, .policy = {}};
}

class AssignmentTest : public testing::Test {
  protected:
    Assignment assignment;
    std::vector<Order> want(const FidRange& fids, Assignment::Policy policy = {}) {
        return assignment.want({&fids, 1}, policy).orders;
    }
    Assignment::Outcome claim(SourceId source, const FidRange& fids) {
        return assignment.claim(source, {&fids, 1});
    }
};

TEST_F(AssignmentTest, WhoIsKnownByAddressIsAskedForAllThatIsWanted) {
    want(range(1, 9), SlowPolicy::drop);
    EXPECT_THAT(assignment.add(a).orders, ElementsAre(ask(a, range(1, 9), SlowPolicy::drop)));
    EXPECT_THAT(want(range(20, 29)), ElementsAre(ask(a, range(20, 29))));
    EXPECT_THAT(assignment.unwant(range(5, 25)).orders,
                ElementsAre(leave(a, range(5, 9)), leave(a, range(20, 25))));
    EXPECT_THAT(assignment.remove(a).orders, IsEmpty());
}

TEST_F(AssignmentTest, WhoCannotBeReachedYieldsWhatOthersClaimToTheNextOfThem) {
    constexpr SourceId c{3};
    want(range(0, 100));
    claim(a, range(0, 9));
    EXPECT_THAT(assignment.yield(a, false).orders, IsEmpty()) << "nobody else has it";
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

TEST_F(AssignmentTest, WhoHasProvedItselfHasWhatItClaimsBeforeThoseWhoHaveNot) {
    constexpr SourceId c{3};
    want(range(0, 100));
    claim(a, range(0, 9));
    EXPECT_FALSE(assignment.is_contested(a));
    claim(b, range(5, 14));
    claim(c, range(0, 9));
    EXPECT_TRUE(assignment.is_contested(a));
    EXPECT_TRUE(assignment.is_contested(c));
    EXPECT_THAT(assignment.reach(c).orders,
                ElementsAre(leave(a, range(0, 9)), ask(c, range(0, 9))));
    EXPECT_THAT(assignment.reach(b).orders, IsEmpty()) << "they are another's that is there";
    EXPECT_THAT(claim(c, range(0, 20)).orders, ElementsAre(ask(c, range(15, 20))));
    assignment.lose(c);
    EXPECT_THAT(assignment.yield(c, false).orders,
                UnorderedElementsAre(leave(c, range(5, 9)), ask(b, range(5, 9)),
                                     leave(c, range(0, 4)), ask(a, range(0, 4))))
        << "those that are there first";
}

TEST_F(AssignmentTest, WhatOneOwnsInWhosePlaceAnotherAnswersIsTheirsWhoAreThere) {
    constexpr SourceId c{3};
    want(range(0, 100));
    claim(a, range(0, 9));
    assignment.reach(a);
    claim(b, range(0, 2));
    claim(c, range(2, 4));
    assignment.reach(c);
    EXPECT_THAT(assignment.doubt(a).orders, ElementsAre(leave(a, range(2, 4)), ask(c, range(2, 4))))
        << "the other is only a stranger's word";
    EXPECT_THAT(claim(c, range(2, 5)).orders,
                ElementsAre(leave(a, range(5, 5)), ask(c, range(5, 5))));
    EXPECT_THAT(assignment.reach(b).orders,
                ElementsAre(leave(a, range(0, 1)), ask(b, range(0, 1))));
    assignment.reach(a);
    EXPECT_THAT(claim(c, range(2, 6)).orders, IsEmpty()) << "it is there again";
    EXPECT_THAT(assignment.doubt(SourceId{9}).orders, IsEmpty());
}

TEST_F(AssignmentTest, WhoCouldNotBeAskedIsAskedForWhatItOwnsByThen) {
    claim(a, range(0, 9));
    claim(b, range(5, 14));
    want(range(3, 100), SlowPolicy::drop);
    EXPECT_THAT(assignment.ask(a).orders, ElementsAre(ask(a, range(3, 9), SlowPolicy::drop)));
    EXPECT_THAT(assignment.ask(b).orders, ElementsAre(ask(b, range(10, 14), SlowPolicy::drop)));
    EXPECT_THAT(assignment.ask(SourceId{9}).orders, IsEmpty());
    assignment.unwant(range(0, 12));
    EXPECT_THAT(assignment.ask(a).orders, IsEmpty());
    EXPECT_THAT(assignment.ask(b).orders, ElementsAre(ask(b, range(13, 14), SlowPolicy::drop)));
}

TEST_F(AssignmentTest, WhoIsRefusedForGoodOwnsNothingUntilItClaimsAgain) {
    want(range(0, 100));
    claim(a, range(0, 9));
    EXPECT_THAT(assignment.yield(a, true).orders, IsEmpty());
    EXPECT_THAT(want(range(0, 3), SlowPolicy::drop), IsEmpty());
    const Assignment::Outcome outcome = claim(b, range(0, 9));
    EXPECT_THAT(outcome.contests, IsEmpty());
    EXPECT_EQ(outcome.orders.front().source, b);
    EXPECT_THAT(assignment.remove(b).orders, IsEmpty());
    EXPECT_EQ(claim(a, range(0, 9)).orders.front().source, a);
}

TEST_F(AssignmentTest, WhoIsFoundIsAskedForWhatItHasOfWhatIsWanted) {
    want(range(5, 14));
    EXPECT_THAT(claim(a, range(0, 9)).orders, ElementsAre(ask(a, range(5, 9))));
    EXPECT_THAT(claim(b, range(10, 19)).orders, ElementsAre(ask(b, range(10, 14))));
    EXPECT_THAT(want(range(9, 15), SlowPolicy::drop),
                ElementsAre(ask(a, range(9, 9), SlowPolicy::drop),
                            ask(b, range(10, 15), SlowPolicy::drop)));
    EXPECT_THAT(claim(a, range(0, 9)).orders, IsEmpty()) << "it says the same again";
}

TEST_F(AssignmentTest, OfTwoThatClaimAFidTheFirstHasItUntilItIsGone) {
    want(range(0, 100));
    claim(a, range(0, 9));
    const Assignment::Outcome outcome = claim(b, range(5, 14));
    EXPECT_THAT(outcome.orders, ElementsAre(ask(b, range(10, 14))));
    EXPECT_THAT(outcome.contests, ElementsAre(Assignment::Contest{
                                      .owner = a, .other = b, .first = range(5, 9), .fids = 5}));
    EXPECT_THAT(assignment.remove(a).orders, ElementsAre(ask(b, range(5, 9))));
}

TEST_F(AssignmentTest, AFidThatMovesIsFollowed) {
    want(range(0, 100));
    claim(a, range(0, 9));
    claim(b, range(10, 19));
    EXPECT_THAT(claim(a, range(0, 4)).orders, ElementsAre(leave(a, range(5, 9))));
    EXPECT_THAT(claim(b, range(5, 19)).orders, ElementsAre(ask(b, range(5, 9))));
    // The other way round: it is claimed before it is given up.
    EXPECT_THAT(claim(a, range(0, 9)).orders, IsEmpty());
    EXPECT_THAT(claim(b, range(10, 19)).orders,
                UnorderedElementsAre(leave(b, range(5, 9)), ask(a, range(5, 9))));
}

TEST_F(AssignmentTest, WhatIsWantedLaterIsAskedOfThoseThatAreThere) {
    claim(a, range(0, 9));
    EXPECT_THAT(claim(b, range(0, 9)).contests, IsEmpty()) << "nobody wants it";
    EXPECT_THAT(want(range(3, 3)), ElementsAre(ask(a, range(3, 3))));
    EXPECT_TRUE(!assignment.empty());
}

TEST_F(AssignmentTest, ManyRangesOfTwoThatAreContestedAreToldOnceAndOfSoManyOwners) {
    want(range(0, 1000));
    std::vector<FidRange> single;
    for (std::uint64_t i = 0; i < 1000; i += 2)
        single.push_back(range(i, i));
    assignment.claim(a, single);
    EXPECT_THAT(assignment.claim(b, single).contests,
                ElementsAre(Assignment::Contest{
                    .owner = a, .other = b, .first = range(0, 0), .fids = 500}));
    for (std::uint64_t i = 1; i < 1000; i += 2)
        claim(SourceId{i + 2}, range(i, i));
    EXPECT_THAT(claim(SourceId{2000}, range(0, 1000)).contests, SizeIs(Assignment::contest_limit));
}

// What is left of another one's claim is not done on the way, where nobody would be told of it.
TEST(AssignmentInSlices, WhoIsRemovedOrClaimsAnewTakesNoTurnOfAnother) {
    constexpr SourceId c{3};
    const FidRange all = range(0, 100);
    const std::vector<FidRange> many{range(0, 0), range(2, 2), range(4, 4), range(6, 6)};
    using Change = Assignment::Outcome (*)(Assignment&);
    for (const Change change : {Change{[](Assignment& it) { return it.remove(c); }},
                                Change{[](Assignment& it) { return it.claim(c, {}); }}}) {
        Assignment assignment{2};
        assignment.want({&all, 1}, {});
        assignment.claim(a, {&many.front(), 1});
        const FidRange other = range(90, 90);
        assignment.claim(c, {&other, 1});
        ASSERT_THAT(assignment.claim(b, many).orders, SizeIs(1)) << "half of it";
        EXPECT_THAT(change(assignment).contests, IsEmpty());
        std::vector<Assignment::Contest> contests;
        while (!assignment.is_settled())
            std::ranges::move(assignment.advance().contests, std::back_inserter(contests));
        EXPECT_THAT(contests, ElementsAre(Assignment::Contest{
                                  .owner = a, .other = b, .first = range(0, 0), .fids = 1}));
    }
}

// --- what a stranger's announcement costs ---------------------------------------------------

class LongAssignment : public testing::Test {
  protected:
    static constexpr std::size_t many = 65536;
    static constexpr std::size_t slice = Assignment::usual_slice;
    // Every fourth fid, from `first` on.
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
    // Each call is bounded, and so is their sum.
    std::size_t orders(Assignment::Outcome outcome) {
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
    Assignment assignment;

  private:
    void note() {
        EXPECT_LT(assignment.steps() - steps_, 60 * slice);
        steps_ = assignment.steps();
    }
    std::size_t steps_ = 0;
};

TEST_F(LongAssignment, AChangeCostsWhatItIsLongAndEachTurnASlice) {
    EXPECT_EQ(orders(assignment.claim(a, single_fids(0))), many);
    EXPECT_EQ(orders(assignment.claim(a, single_fids(0))), 0U) << "only what differs";
    EXPECT_EQ(orders(assignment.claim(a, single_fids(1))), 2 * many);
    EXPECT_EQ(orders(assignment.claim(b, single_fids(1))), 0U) << "they are the first one's";
    EXPECT_EQ(orders(assignment.remove(a)), many) << "each goes to the other";
    EXPECT_EQ(orders(assignment.claim(b, {})), many);
}

TEST_F(LongAssignment, OneThatYieldsAllCostsWhatItHas) {
    orders(assignment.claim(a, single_fids(0)));
    for (std::uint64_t other = 3; other < 10; ++other)
        orders(assignment.claim(SourceId{other}, single_fids(other % 3 + 1)));
    orders(assignment.claim(b, single_fids(0)));
    const std::size_t before = assignment.steps();
    EXPECT_THAT(assignment.yield(a, false).orders, SizeIs(2 * many));
    EXPECT_LT(assignment.steps() - before, 20 * 9 * many);
}

TEST_F(LongAssignment, ChangesTakeTurnsAndAreTrueBehindEachSlice) {
    const std::vector<FidRange> fids = single_fids(0);
    assignment.claim(a, fids);
    ASSERT_FALSE(assignment.is_settled());
    const FidRange second = range(1, 1);
    Assignment::Outcome outcome = assignment.claim(b, {&second, 1});
    for (int turn = 0; turn < 2 && (outcome.orders.empty() || outcome.orders[0].source != b);
         ++turn)
        outcome = assignment.advance();
    EXPECT_THAT(outcome.orders, ElementsAre(ask(b, second))) << "a short one does not wait";
    // What has been done is its own, and goes when it does.
    std::size_t left = 0;
    outcome = assignment.yield(a, true);
    EXPECT_THAT(outcome.orders, IsEmpty());
    const Assignment::Outcome next = assignment.claim(b, fids);
    left = orders(next);
    EXPECT_EQ(left, many + 1) << "with the one that it does not claim any more";
}

// --- against a model -------------------------------------------------------------------------

// Few fids, each looked at alone, and everything at once.
class Model {
  public:
    static constexpr std::uint64_t fids = 16;
    using Set = std::set<std::uint64_t>;

    void claim(SourceId source, const Set& now) {
        const Set before = std::exchange(claims_[source], now);
        for (std::uint64_t fid = 0; fid < fids; ++fid) {
            if (before.count(fid) > 0 && now.count(fid) == 0) release(source, fid);
            if (before.count(fid) == 0 && now.count(fid) > 0) owners_.try_emplace(fid, source);
        }
    }
    void remove(SourceId source) {
        claims_.erase(source);
        for (std::uint64_t fid = 0; fid < fids; ++fid)
            release(source, fid);
    }
    void yield(SourceId source, bool for_good) {
        const auto own = claims_.find(source);
        if (own == claims_.end()) return;
        for (std::uint64_t fid = 0; fid < fids; ++fid) {
            if (owners_.count(fid) == 0 || owners_.at(fid) != source) continue;
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
    std::set<std::pair<SourceId, std::uint64_t>> asked(const Set& wanted) const {
        std::set<std::pair<SourceId, std::uint64_t>> all;
        for (const auto& [fid, owner] : owners_)
            if (wanted.count(fid) > 0) all.emplace(owner, fid);
        return all;
    }

  private:
    void release(SourceId source, std::uint64_t fid) {
        const auto owned = owners_.find(fid);
        if (owned == owners_.end() || owned->second != source) return;
        owners_.erase(owned);
        for (const auto& [other, claimed] : claims_) {
            if (other == source || claimed.count(fid) == 0) continue;
            owners_.emplace(fid, other);
            return;
        }
    }
    std::map<SourceId, Set> claims_;
    std::map<std::uint64_t, SourceId> owners_;
};

class AgainstAModel {
  public:
    explicit AgainstAModel(std::uint64_t seed) : random_{seed}, assignment_{1 + seed % 3} {}

    void step() {
        const SourceId source{1 + random_() % 4};
        const std::uint64_t kind = random_() % 10;
        if (kind < 5) {
            const Model::Set now = any_set();
            model_.claim(source, now);
            carry_out(assignment_.claim(source, ranges_of(now)));
        } else if (kind < 7) {
            const bool for_good = kind == 6;
            model_.yield(source, for_good);
            carry_out(assignment_.yield(source, for_good));
            if (for_good) leave_all(source); // its connection has ended
        } else if (kind == 7) {
            model_.remove(source);
            leave_all(source);
            carry_out(assignment_.remove(source));
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
    void leave_all(SourceId source) {
        std::erase_if(asked_, [&](const auto& each) { return each.first == source; });
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
    void carry_out(Assignment::Outcome outcome) {
        for (;;) {
            for (const Order& each : outcome.orders) {
                for (auto fid = to_integer(each.fids.first); fid <= to_integer(each.fids.last);
                     ++fid) {
                    if (each.subscribe) {
                        asked_.emplace(each.source, fid);
                    } else {
                        EXPECT_EQ(asked_.erase({each.source, fid}), 1U);
                    }
                }
            }
            if (assignment_.is_settled()) return;
            outcome = assignment_.advance();
        }
    }

    std::mt19937_64 random_;
    Assignment assignment_;
    Model model_;
    Model::Set wanted_;
    std::set<std::pair<SourceId, std::uint64_t>> asked_;
};

TEST(AssignmentModel, AFidIsAskedOfWhomTheRuleSaysWhateverHappens) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        AgainstAModel run{seed};
        for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i)
            run.step();
        if (testing::Test::HasFailure()) return;
    }
}

} // namespace
} // namespace netio::pubsub
