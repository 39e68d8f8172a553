// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/subscription_book.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Result = SubscriptionResult;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

class SubscriptionBookTest : public testing::Test {
  protected:
    void subscribe(const FidRange& fids, SubscriptionBook::Policy policy = {}) {
        book.subscribe({&fids, 1}, policy);
    }
    // Sends all there is; the requests, in order.
    std::vector<SubscriptionBook::Request> send() {
        std::vector<SubscriptionBook::Request> requests;
        while (book.next() != nullptr) {
            requests.push_back(*book.next());
            book.sent();
        }
        return requests;
    }
    void answer(const SubscriptionBook::Request& request, Result result) {
        ASSERT_TRUE(book.answered({.request = request.number, .result = result}));
    }
    // Everything that has been asked for is granted.
    void connect() {
        book.begin(100);
        for (const auto& request : send())
            answer(request, Result::accepted);
    }

    SubscriptionBook book;
};

TEST_F(SubscriptionBookTest, NothingIsAskedForBeforeThereIsAConnection) {
    subscribe(range(5, 9));
    subscribe(range(0, 4));
    EXPECT_EQ(book.next(), nullptr);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 9)));
    book.begin(100);
    const auto requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_THAT(requests[0].ranges, ElementsAre(range(0, 9)));
    EXPECT_FALSE(book.grants(Fid{5}));
    answer(requests[0], Result::accepted);
    EXPECT_TRUE(book.grants(Fid{5}));
    EXPECT_FALSE(book.grants(Fid{10}));
}

TEST_F(SubscriptionBookTest, WhoUnsubscribesIsLeavingUntilTheAnswerOrTheEnd) {
    subscribe(range(0, 9));
    connect();
    book.unsubscribe(range(2, 3));
    const auto requests = send();
    book.unsubscribe(range(4, 5));
    EXPECT_THAT(book.leaving(), ElementsAre(range(2, 5)));
    answer(requests.at(0), Result::accepted);
    EXPECT_THAT(book.leaving(), ElementsAre(range(4, 5)));
    book.end();
    EXPECT_THAT(book.leaving(), IsEmpty());
}

TEST_F(SubscriptionBookTest, AConnectionAsksForEverythingByPolicyInPartsThatFit) {
    for (std::uint64_t i = 0; i < 10; ++i)
        subscribe(range(10 * i, 10 * i), i % 2 == 0 ? SubscriptionBook::Policy{SlowPolicy::drop}
                                                    : SubscriptionBook::Policy{});
    book.begin(3);
    const auto requests = send();
    ASSERT_EQ(requests.size(), 4U);
    std::size_t dropping = 0;
    for (const auto& request : requests) {
        EXPECT_LE(request.ranges.size(), 3U);
        if (request.policy == SlowPolicy::drop) dropping += request.ranges.size();
    }
    EXPECT_EQ(dropping, 5U);
}

TEST_F(SubscriptionBookTest, WhatIsRefusedIsNotWantedAndNotAskedForAgain) {
    connect();
    subscribe(range(0, 9));
    answer(send()[0], Result::table_full);
    EXPECT_THAT(book.wanted(), IsEmpty());
    book.begin(100);
    EXPECT_EQ(book.next(), nullptr);
}

TEST_F(SubscriptionBookTest, WhatWasGrantedBeforeARefusalStaysWantedAsItWas) {
    subscribe(range(0, 9), SlowPolicy::drop);
    connect();
    subscribe(range(5, 14), SlowPolicy::block);
    answer(send()[0], Result::policy_refused);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 9)));
    book.begin(100);
    const auto requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].policy, SlowPolicy::drop);
}

TEST_F(SubscriptionBookTest, ARefusedUnsubscriptionIsRolledBack) {
    subscribe(range(0, 9), SlowPolicy::drop);
    connect();
    book.unsubscribe(range(3, 5));
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 2), range(6, 9)));
    EXPECT_TRUE(book.grants(Fid{4})) << "the publisher has not answered yet";
    answer(send()[0], Result::table_full);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 9)));
    EXPECT_TRUE(book.grants(Fid{4}));
}

TEST_F(SubscriptionBookTest, TheLastWordStandsWhateverBecomesOfThoseBeforeIt) {
    subscribe(range(0, 9));
    connect();
    book.unsubscribe(range(0, 9));
    book.unsubscribe(range(0, 9));
    auto requests = send();
    answer(requests[0], Result::table_full);
    answer(requests[1], Result::accepted);
    EXPECT_THAT(book.wanted(), IsEmpty());
    EXPECT_FALSE(book.grants(Fid{0}));

    subscribe(range(0, 4));
    book.unsubscribe(range(0, 4));
    subscribe(range(0, 1));
    requests = send();
    answer(requests[0], Result::table_full);
    answer(requests[1], Result::accepted);
    answer(requests[2], Result::accepted);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 1)));
}

TEST_F(SubscriptionBookTest, AnAnswerToWhatWasNotAskedIsRefused) {
    connect();
    EXPECT_FALSE(book.answered({.request = 77, .result = Result::accepted}));
    subscribe(range(1, 1));
    const std::uint32_t number = book.next()->number;
    EXPECT_FALSE(book.answered({.request = number, .result = Result::accepted})) << "not sent yet";
}

TEST_F(SubscriptionBookTest, NothingIsGrantedOnceTheConnectionHasEnded) {
    subscribe(range(0, 9));
    connect();
    book.end();
    EXPECT_FALSE(book.grants(Fid{0}));
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 9)));
}

TEST_F(SubscriptionBookTest, WhatIsUnsubscribedFromWithoutAConnectionIsNotAskedFor) {
    subscribe(range(0, 9));
    book.unsubscribe(range(3, 5));
    EXPECT_EQ(book.next(), nullptr);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 2), range(6, 9)));
    book.begin(100);
    EXPECT_THAT(send().at(0).ranges, ElementsAre(range(0, 2), range(6, 9)));
}

TEST_F(SubscriptionBookTest, ANewConnectionKnowsNothingOfWhatTheLastOneAskedAndGranted) {
    subscribe(range(0, 9));
    connect();
    subscribe(range(20, 29));
    const auto former = send();
    subscribe(range(40, 49)); // not sent any more
    book.begin(100);
    EXPECT_FALSE(book.grants(Fid{5}));
    EXPECT_FALSE(book.answered({.request = former.at(0).number, .result = Result::accepted}));
    const auto requests = send();
    ASSERT_EQ(requests.size(), 1U) << "everything, and once";
    EXPECT_THAT(requests[0].ranges, ElementsAre(range(0, 9), range(20, 29), range(40, 49)));
}

TEST_F(SubscriptionBookTest, WhoAsksIsNotLeaving) {
    subscribe(range(0, 9));
    connect();
    subscribe(range(20, 29));
    const auto request = send().at(0);
    subscribe(range(40, 49));
    EXPECT_THAT(book.leaving(), IsEmpty());
    EXPECT_NE(book.awaited(request.number), nullptr);
    book.unsubscribe(range(0, 9));
    const auto rest = send();
    EXPECT_EQ(book.awaited(rest.at(1).number), nullptr) << "that is no subscription";
    EXPECT_EQ(book.awaited(rest.at(1).number + 1), nullptr);
}

// --- what is not permitted ------------------------------------------------------------------

TEST_F(SubscriptionBookTest, RangesThatAreNotPermittedTogetherAreAskedForOneByOne) {
    connect();
    book.subscribe(std::vector{range(0, 4), range(10, 14), range(20, 24)}, SlowPolicy::drop);
    const auto together = send().at(0);
    auto told = book.answered({.request = together.number, .result = Result::not_permitted});
    ASSERT_TRUE(told);
    EXPECT_THAT(told->ranges, IsEmpty()) << "nothing is refused yet";
    const auto requests = send();
    ASSERT_EQ(requests.size(), 3U);
    for (const auto& each : requests) {
        EXPECT_EQ(each.ranges.size(), 1U);
        EXPECT_EQ(each.policy, SlowPolicy::drop);
    }
    answer(requests[0], Result::accepted);
    told = book.answered({.request = requests[1].number, .result = Result::not_permitted});
    ASSERT_TRUE(told);
    EXPECT_THAT(told->ranges, ElementsAre(range(10, 14)));
    EXPECT_EQ(book.next(), nullptr) << "that was its answer";
    answer(requests[2], Result::accepted);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 4), range(20, 24)));
    EXPECT_TRUE(book.grants(Fid{4}));
    EXPECT_FALSE(book.grants(Fid{10}));
    EXPECT_TRUE(book.grants(Fid{20}));
}

TEST_F(SubscriptionBookTest, OnlyWhatIsNotPermittedIsAskedForAgain) {
    connect();
    for (const Result result : {Result::table_full, Result::policy_refused}) {
        book.subscribe(std::vector{range(0, 4), range(10, 14)}, {});
        const auto told = book.answered({.request = send().at(0).number, .result = result});
        ASSERT_TRUE(told);
        EXPECT_THAT(told->ranges, ElementsAre(range(0, 4), range(10, 14)));
        EXPECT_EQ(book.next(), nullptr);
        EXPECT_THAT(book.wanted(), IsEmpty());
    }
}

TEST_F(SubscriptionBookTest, WhatALaterRequestIsAboutIsNotAskedForOneByOne) {
    connect();
    book.subscribe(std::vector{range(0, 4), range(10, 14)}, {});
    book.unsubscribe(range(10, 14));
    auto requests = send();
    answer(requests.at(0), Result::not_permitted);
    answer(requests.at(1), Result::accepted);
    requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_THAT(requests[0].ranges, ElementsAre(range(0, 4)));
    answer(requests[0], Result::accepted);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 4)));
}

TEST_F(SubscriptionBookTest, WhatIsNotPermittedAloneEitherIsWantedAsItWasBeforeBoth) {
    subscribe(range(0, 9), SlowPolicy::drop);
    connect();
    book.subscribe(std::vector{range(0, 4), range(20, 24)}, SlowPolicy::block);
    for (int round = 0; round < 2; ++round)
        for (const auto& request : send())
            answer(request, Result::not_permitted);
    EXPECT_EQ(book.next(), nullptr);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 9)));
    book.begin(100);
    const auto requests = send();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].policy, SlowPolicy::drop);
}

// With a square of them this would take minutes.
TEST_F(SubscriptionBookTest, NeighboursOfOnePolicyAreOneRangeOnceTheyAreGranted) {
    connect();
    for (std::uint64_t fid = 0; fid < 10'000; ++fid) {
        subscribe(range(fid, fid), fid < 5'000 ? SubscriptionBook::Policy{}
                                               : SubscriptionBook::Policy{SlowPolicy::drop});
        answer(send()[0], Result::accepted);
        ASSERT_LE(book.wanted_count(), 2U);
    }
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 9'999)));
    book.begin(100);
    EXPECT_EQ(send().size(), 2U) << "each with a range and a policy";
}

TEST_F(SubscriptionBookTest, AWishKeepsItsNumberWhileAnEarlierRequestWaits) {
    connect();
    subscribe(range(0, 9));
    answer(send()[0], Result::accepted);
    book.unsubscribe(range(0, 9));
    subscribe(range(0, 9));
    const auto requests = send();
    answer(requests[1], Result::accepted); // before the other: no honest publisher does
    answer(requests[0], Result::accepted);
    EXPECT_THAT(book.wanted(), ElementsAre(range(0, 9)));
}

constexpr std::uint64_t many = 16'384; // as many as a publisher takes
SubscriptionBook::Policy policy_of(std::uint64_t i) {
    return i % 3 == 0 ? SubscriptionBook::Policy{SlowPolicy::drop} : SubscriptionBook::Policy{};
}

TEST_F(SubscriptionBookTest, TensOfThousandsOfSingleFidsAreNoEffort) {
    for (std::uint64_t i = 0; i < many; ++i)
        subscribe(range(2 * i, 2 * i), policy_of(i));
    connect();
    for (std::uint64_t i = 0; i < many; ++i)
        book.unsubscribe(range(2 * i, 2 * i));
    for (const auto& request : send())
        answer(request, Result::accepted);
    EXPECT_THAT(book.wanted(), IsEmpty());
    EXPECT_LT(book.steps(), 12 * many) << "of the connection, and of leaving";
}

TEST_F(SubscriptionBookTest, WhatIsLookedAtIsCounted) {
    for (std::uint64_t i = 0; i < 100; ++i)
        subscribe(range(2 * i, 2 * i));
    connect();
    const std::size_t before = book.steps();
    book.unsubscribe(range(0, 1000));
    EXPECT_GE(book.steps() - before, 100U) << "a bound on nothing would hold for ever";
}

TEST_F(SubscriptionBookTest, TensOfThousandsThatAreAskedForOneByOneAreNoEffort) {
    book.begin(100);
    for (std::uint64_t i = 0; i < many; ++i) {
        subscribe(range(2 * i, 2 * i), policy_of(i));
        if (i % 5 != 0) continue; // several at once are under way, and each is answered
        for (const auto& request : send())
            answer(request, i % 2 == 0 ? Result::accepted : Result::table_full);
    }
    EXPECT_GT(book.wanted_count(), many / 3);
    EXPECT_LT(book.steps(), 12 * many);
}

} // namespace
} // namespace netio::pubsub
