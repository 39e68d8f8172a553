// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/frame_receiver.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::subscription_state_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Result = SubscriptionResult;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

class SubscriptionStateTest : public testing::Test {
  protected:
    void subscribe(const FidRange& fids, SubscriptionState::Policy policy = {}) {
        state.subscribe({&fids, 1}, policy);
    }
    // Sends all requests; returns them in order.
    std::vector<SubscriptionState::Request> send() {
        std::vector<SubscriptionState::Request> requests;
        while (state.next() != nullptr) {
            requests.push_back(*state.next());
            state.sent();
        }
        return requests;
    }
    void answer(const SubscriptionState::Request& request, Result result) {
        ASSERT_TRUE(state.answered({.request = request.number, .result = result}));
    }
    // All requests are accepted.
    void connect() {
        state.begin(100);
        for (const auto& request : send())
            answer(request, Result::accepted);
    }

    SubscriptionState state;
};

TEST_F(SubscriptionStateTest, NothingIsAskedForBeforeThereIsAConnection) {
    subscribe(range(5, 9));
    subscribe(range(0, 4));
    EXPECT_EQ(state.next(), nullptr);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 9)));
    state.begin(100);
    const auto requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_THAT(requests[0].ranges, ElementsAre(range(0, 9)));
    EXPECT_FALSE(state.grants(Fid{5}));
    answer(requests[0], Result::accepted);
    EXPECT_TRUE(state.grants(Fid{5}));
    EXPECT_FALSE(state.grants(Fid{10}));
}

TEST_F(SubscriptionStateTest, HistoryThatWasSuppliedIsASeparateRequest) {
    SubscriptionState::Fids supplied;
    supplied.assign(range(3, 5), {});
    state.ask_for_history(supplied);
    subscribe(range(0, 9));
    state.begin(100);
    auto requests = send();
    ASSERT_EQ(requests.size(), 2U);
    EXPECT_FALSE(requests[0].supplied);
    EXPECT_THAT(requests[0].ranges, ElementsAre(range(0, 2), range(6, 9)));
    EXPECT_TRUE(requests[1].supplied);
    EXPECT_THAT(requests[1].ranges, ElementsAre(range(3, 5)));
    for (const auto& request : requests)
        answer(request, Result::accepted);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 9)));
    EXPECT_THAT(state.wanted_in(range(8, 20)), ElementsAre(range(8, 9)));
    supplied.clear();
    subscribe(range(4, 4));
    requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_FALSE(requests[0].supplied);
}

TEST_F(SubscriptionStateTest, AnUnsubscriptionIsPendingUntilTheAnswerOrTheEnd) {
    subscribe(range(0, 9));
    connect();
    state.unsubscribe(range(2, 3));
    const auto requests = send();
    state.unsubscribe(range(4, 5));
    EXPECT_THAT(state.leaving(), ElementsAre(range(2, 5)));
    answer(requests.at(0), Result::accepted);
    EXPECT_THAT(state.leaving(), ElementsAre(range(4, 5)));
    state.end();
    EXPECT_THAT(state.leaving(), IsEmpty());
}

TEST_F(SubscriptionStateTest, AConnectionRequestsAllByPolicyInPartsThatFit) {
    for (std::uint64_t i = 0; i < 10; ++i)
        subscribe(range(10 * i, 10 * i), i % 2 == 0 ? SubscriptionState::Policy{SlowPolicy::drop}
                                                    : SubscriptionState::Policy{});
    state.begin(3);
    const auto requests = send();
    ASSERT_EQ(requests.size(), 4U);
    std::size_t dropping = 0;
    for (const auto& request : requests) {
        EXPECT_LE(request.ranges.size(), 3U);
        if (request.policy == SlowPolicy::drop) dropping += request.ranges.size();
    }
    EXPECT_EQ(dropping, 5U);
}

TEST_F(SubscriptionStateTest, WhatIsRefusedIsNotWantedAndNotAskedForAgain) {
    connect();
    subscribe(range(0, 9));
    answer(send()[0], Result::table_full);
    EXPECT_THAT(state.wanted(), IsEmpty());
    state.begin(100);
    EXPECT_EQ(state.next(), nullptr);
}

TEST_F(SubscriptionStateTest, WhatWasGrantedBeforeARefusalStaysWantedAsItWas) {
    subscribe(range(0, 9), SlowPolicy::drop);
    connect();
    subscribe(range(5, 14), SlowPolicy::block);
    answer(send()[0], Result::policy_refused);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 9)));
    state.begin(100);
    const auto requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].policy, SlowPolicy::drop);
}

TEST_F(SubscriptionStateTest, ARefusedUnsubscriptionIsRolledBack) {
    subscribe(range(0, 9), SlowPolicy::drop);
    connect();
    state.unsubscribe(range(3, 5));
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 2), range(6, 9)));
    EXPECT_TRUE(state.grants(Fid{4})) << "the publisher has not answered yet";
    answer(send()[0], Result::table_full);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 9)));
    EXPECT_TRUE(state.grants(Fid{4}));
}

TEST_F(SubscriptionStateTest, TheLastRequestCountsWhateverHappensToEarlierOnes) {
    subscribe(range(0, 9));
    connect();
    state.unsubscribe(range(0, 9));
    state.unsubscribe(range(0, 9));
    auto requests = send();
    answer(requests[0], Result::table_full);
    answer(requests[1], Result::accepted);
    EXPECT_THAT(state.wanted(), IsEmpty());
    EXPECT_FALSE(state.grants(Fid{0}));

    subscribe(range(0, 4));
    state.unsubscribe(range(0, 4));
    subscribe(range(0, 1));
    requests = send();
    answer(requests[0], Result::table_full);
    answer(requests[1], Result::accepted);
    answer(requests[2], Result::accepted);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 1)));
}

TEST_F(SubscriptionStateTest, AnAnswerToWhatWasNotAskedIsRefused) {
    connect();
    EXPECT_FALSE(state.answered({.request = 77, .result = Result::accepted}));
    subscribe(range(1, 1));
    const std::uint32_t number = state.next()->number;
    EXPECT_FALSE(state.answered({.request = number, .result = Result::accepted})) << "not sent yet";
}

TEST_F(SubscriptionStateTest, NothingIsGrantedOnceTheConnectionHasEnded) {
    subscribe(range(0, 9));
    connect();
    state.end();
    EXPECT_FALSE(state.grants(Fid{0}));
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 9)));
}

TEST_F(SubscriptionStateTest, WhatIsUnsubscribedFromWithoutAConnectionIsNotAskedFor) {
    subscribe(range(0, 9));
    state.unsubscribe(range(3, 5));
    EXPECT_EQ(state.next(), nullptr);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 2), range(6, 9)));
    state.begin(100);
    EXPECT_THAT(send().at(0).ranges, ElementsAre(range(0, 2), range(6, 9)));
}

TEST_F(SubscriptionStateTest, ANewConnectionKnowsNothingOfWhatTheLastOneAskedAndGranted) {
    subscribe(range(0, 9));
    connect();
    subscribe(range(20, 29));
    const auto former = send();
    subscribe(range(40, 49)); // not sent any more
    state.begin(100);
    EXPECT_FALSE(state.grants(Fid{5}));
    EXPECT_FALSE(state.answered({.request = former.at(0).number, .result = Result::accepted}));
    const auto requests = send();
    ASSERT_EQ(requests.size(), 1U) << "everything in one request";
    EXPECT_THAT(requests[0].ranges, ElementsAre(range(0, 9), range(20, 29), range(40, 49)));
}

TEST_F(SubscriptionStateTest, APendingSubscriptionIsNotLeaving) {
    subscribe(range(0, 9));
    connect();
    subscribe(range(20, 29));
    const auto request = send().at(0);
    subscribe(range(40, 49));
    EXPECT_THAT(state.leaving(), IsEmpty());
    EXPECT_NE(state.awaited(request.number), nullptr);
    state.unsubscribe(range(0, 9));
    const auto rest = send();
    EXPECT_EQ(state.awaited(rest.at(1).number), nullptr) << "not a subscription";
    EXPECT_EQ(state.awaited(rest.at(1).number + 1), nullptr);
}

// --- not permitted --------------------------------------------------------------------------

TEST_F(SubscriptionStateTest, RangesThatAreNotPermittedTogetherAreAskedForOneByOne) {
    connect();
    state.subscribe(std::vector{range(0, 4), range(10, 14), range(20, 24)}, SlowPolicy::drop);
    const auto together = send().at(0);
    auto told = state.answered({.request = together.number, .result = Result::not_permitted});
    ASSERT_TRUE(told);
    EXPECT_THAT(told->ranges, IsEmpty()) << "no range is refused yet";
    const auto requests = send();
    ASSERT_EQ(requests.size(), 3U);
    for (const auto& each : requests) {
        EXPECT_EQ(each.ranges.size(), 1U);
        EXPECT_EQ(each.policy, SlowPolicy::drop);
    }
    answer(requests[0], Result::accepted);
    told = state.answered({.request = requests[1].number, .result = Result::not_permitted});
    ASSERT_TRUE(told);
    EXPECT_THAT(told->ranges, ElementsAre(range(10, 14)));
    EXPECT_EQ(state.next(), nullptr) << "that was its answer";
    answer(requests[2], Result::accepted);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 4), range(20, 24)));
    EXPECT_TRUE(state.grants(Fid{4}));
    EXPECT_FALSE(state.grants(Fid{10}));
    EXPECT_TRUE(state.grants(Fid{20}));
}

TEST_F(SubscriptionStateTest, OnlyWhatIsNotPermittedIsAskedForAgain) {
    connect();
    for (const Result result : {Result::table_full, Result::policy_refused}) {
        state.subscribe(std::vector{range(0, 4), range(10, 14)}, {});
        const auto told = state.answered({.request = send().at(0).number, .result = result});
        ASSERT_TRUE(told);
        EXPECT_THAT(told->ranges, ElementsAre(range(0, 4), range(10, 14)));
        EXPECT_EQ(state.next(), nullptr);
        EXPECT_THAT(state.wanted(), IsEmpty());
    }
}

TEST_F(SubscriptionStateTest, RangesOfALaterRequestAreNotRetriedSeparately) {
    connect();
    state.subscribe(std::vector{range(0, 4), range(10, 14)}, {});
    state.unsubscribe(range(10, 14));
    auto requests = send();
    answer(requests.at(0), Result::not_permitted);
    answer(requests.at(1), Result::accepted);
    requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_THAT(requests[0].ranges, ElementsAre(range(0, 4)));
    answer(requests[0], Result::accepted);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 4)));
}

TEST_F(SubscriptionStateTest, ARangeRefusedAloneKeepsItsEarlierSubscription) {
    subscribe(range(0, 9), SlowPolicy::drop);
    connect();
    state.subscribe(std::vector{range(0, 4), range(20, 24)}, SlowPolicy::block);
    for (int round = 0; round < 2; ++round)
        for (const auto& request : send())
            answer(request, Result::not_permitted);
    EXPECT_EQ(state.next(), nullptr);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 9)));
    state.begin(100);
    const auto requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].policy, SlowPolicy::drop);
}

// With a quadratic number of steps this would take minutes.
TEST_F(SubscriptionStateTest, NeighboursOfOnePolicyAreOneRangeOnceTheyAreGranted) {
    connect();
    for (std::uint64_t fid = 0; fid < 10'000; ++fid) {
        subscribe(range(fid, fid), fid < 5'000 ? SubscriptionState::Policy{}
                                               : SubscriptionState::Policy{SlowPolicy::drop});
        answer(send()[0], Result::accepted);
        ASSERT_LE(state.wanted_count(), 2U);
    }
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 9'999)));
    state.begin(100);
    EXPECT_EQ(send().size(), 2U) << "each with a range and a policy";
}

TEST_F(SubscriptionStateTest, AWishKeepsItsNumberWhileAnEarlierRequestWaits) {
    connect();
    subscribe(range(0, 9));
    answer(send()[0], Result::accepted);
    state.unsubscribe(range(0, 9));
    subscribe(range(0, 9));
    const auto requests = send();
    answer(requests[1], Result::accepted); // before the other, unlike a correct publisher
    answer(requests[0], Result::accepted);
    EXPECT_THAT(state.wanted(), ElementsAre(range(0, 9)));
}

constexpr std::uint64_t many = 16'384; // the maximum of a publisher
SubscriptionState::Policy policy_of(std::uint64_t i) {
    return i % 3 == 0 ? SubscriptionState::Policy{SlowPolicy::drop} : SubscriptionState::Policy{};
}

TEST_F(SubscriptionStateTest, TensOfThousandsOfSingleFidsTakeLinearTime) {
    for (std::uint64_t i = 0; i < many; ++i)
        subscribe(range(2 * i, 2 * i), policy_of(i));
    connect();
    for (std::uint64_t i = 0; i < many; ++i)
        state.unsubscribe(range(2 * i, 2 * i));
    for (const auto& request : send())
        answer(request, Result::accepted);
    EXPECT_THAT(state.wanted(), IsEmpty());
    EXPECT_LT(state.steps(), 12 * many) << "for connecting and unsubscribing";
}

TEST_F(SubscriptionStateTest, WhatIsLookedAtIsCounted) {
    for (std::uint64_t i = 0; i < 100; ++i)
        subscribe(range(2 * i, 2 * i));
    connect();
    const std::size_t before = state.steps();
    state.unsubscribe(range(0, 1000));
    EXPECT_GE(state.steps() - before, 100U) << "otherwise the bounds above would prove nothing";
}

TEST_F(SubscriptionStateTest, TensOfThousandsOfRequestsTakeLinearTime) {
    state.begin(100);
    for (std::uint64_t i = 0; i < many; ++i) {
        subscribe(range(2 * i, 2 * i), policy_of(i));
        if (i % 5 != 0) continue; // several requests are in flight at once, and each is answered
        for (const auto& request : send())
            answer(request, i % 2 == 0 ? Result::accepted : Result::table_full);
    }
    EXPECT_GT(state.wanted_count(), many / 3);
    EXPECT_LT(state.steps(), 12 * many);
}

} // namespace
} // namespace netio::pubsub::subscription_state_test
