// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/page_terms.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace netio::pubsub {
namespace {

using Turn = PageTerms::Turn;

PageTerms::Options small() {
    return {.page_bytes = 1024, .page_count = 8, .largest_message_bytes = 1 << 20};
}

TEST(PageTerms, RefuseWhatCannotKeepThePromisesOfThePolicies) {
    const auto with = [](auto change) {
        PageTerms::Options options = small();
        change(options);
        return options;
    };
    EXPECT_NO_THROW(PageTerms{with([](auto& it) { it.share_bytes = 4096; })});
    EXPECT_THROW(PageTerms{with([](auto& it) { it.share_bytes = 4097; })}, std::invalid_argument);
    EXPECT_THROW(PageTerms{with([](auto& it) { it.page_bytes = 255; })}, std::invalid_argument);
    EXPECT_THROW(PageTerms{with([](auto& it) { it.page_count = 1; })}, std::invalid_argument);
    EXPECT_NO_THROW(PageTerms{with([](auto& it) { it.watermark_bytes = 1024; })});
    EXPECT_THROW(PageTerms{with([](auto& it) { it.watermark_bytes = 1025; })},
                 std::invalid_argument);
}

TEST(PageTerms, AMessageMayTakeAllPagesButOne) {
    EXPECT_EQ(PageTerms{small()}.message_limit(), 7U * 1024);
    PageTerms::Options options = small();
    options.largest_message_bytes = 2000;
    EXPECT_EQ(PageTerms{options}.message_limit(), 2000U);
}

TEST(PageTerms, WithoutAWatermarkAPageLeavesWhenItIsFull) {
    EXPECT_EQ(PageTerms{small()}.watermark_bytes(), 1024U);
    EXPECT_EQ(PageTerms{small()}.set_aside(), 2048U);
}

TEST(PageTerms, AWatermarkIsTheOptions) {
    PageTerms::Options options = small();
    options.watermark_bytes = 512;
    EXPECT_EQ(PageTerms{options}.watermark_bytes(), 512U);
}

TEST(PageTerms, WhoMayMissMessagesHoldsMoreThanWhoIsWaitedFor) {
    PageTerms::Options options = small();
    options.page_count = 65536; // 64 MiB
    const PageTerms terms{options};
    EXPECT_EQ(terms.share_of(SlowPolicy::block), std::size_t{1} << 20);
    EXPECT_EQ(terms.share_of(SlowPolicy::disconnect), std::size_t{1} << 20);
    EXPECT_EQ(terms.share_of(SlowPolicy::drop), std::size_t{4} << 20);
    EXPECT_EQ(terms.share_of(SlowPolicy::newest), std::size_t{1} << 20) << "more would only be old";
    EXPECT_EQ(PageTerms{small()}.share_of(SlowPolicy::drop), 4096U); // half of all
    options.share_bytes = 5000;
    EXPECT_EQ(PageTerms{options}.share_of(SlowPolicy::drop), 5000U);
}

TEST(PageTerms, WhoHasItsShareMissesOrIsWaitedForByItsPolicy) {
    const PageTerms terms{small()};
    const Shares shares{terms.pool()};
    const auto turn = [&](std::size_t held, SlowPolicy policy) {
        return terms.turn_of({.waiting = held / 2, .posted = held - held / 2}, policy, shares, {});
    };
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::disconnect})
        EXPECT_EQ(turn(4095, policy), Turn::takes);
    EXPECT_EQ(turn(4096, SlowPolicy::block), Turn::waits);
    EXPECT_EQ(turn(4096, SlowPolicy::disconnect), Turn::waits);
    EXPECT_EQ(turn(4096, SlowPolicy::drop), Turn::misses);
    EXPECT_EQ(turn(4096, SlowPolicy::newest), Turn::misses);
}

TEST(PageTerms, AMessageOfSeveralPagesDoesNotBringAnybodyBeyondHalfOfThePool) {
    const PageTerms terms{small()};
    const Shares shares{terms.pool()};
    const auto turn = [&](std::size_t held, std::size_t message_bytes, SlowPolicy policy) {
        return terms.turn_of({.waiting = held}, policy, shares,
                             {.bytes = message_bytes, .is_large = true});
    };
    EXPECT_EQ(turn(1000, 3096, SlowPolicy::block), Turn::takes);
    EXPECT_EQ(turn(1000, 3097, SlowPolicy::block), Turn::waits);
    EXPECT_EQ(turn(1000, 3097, SlowPolicy::drop), Turn::misses);
    EXPECT_EQ(turn(0, 7 * 1024, SlowPolicy::block), Turn::takes) << "it could never be published";
}

TEST(PageTerms, OneMorePageMayBringItBeyondHalfOfThePool) {
    const PageTerms terms{small()};
    const Shares shares{terms.pool()};
    EXPECT_EQ(terms.turn_of({.waiting = 4000}, SlowPolicy::block, shares, {.bytes = 1024}),
              Turn::takes);
}

TEST(PageTerms, WhereThereIsNotPlentyOnlyALittleWaitsForWhoIsWaitedFor) {
    const PageTerms terms{small()};
    Shares shares{terms.pool(), terms.largest()};
    shares.set_subscribers(4);
    const std::size_t free = terms.pool();
    const std::size_t limit = shares.waiting_limit(free);
    ASSERT_GT(limit, 100U);
    const auto turn = [&](std::size_t bytes, SlowPolicy policy, bool is_confined) {
        return terms.turn_of({.waiting = 100}, policy, shares,
                             {.bytes = bytes, .is_confined = is_confined, .free = free});
    };
    EXPECT_EQ(turn(limit - 100, SlowPolicy::block, true), Turn::takes);
    EXPECT_EQ(turn(limit - 99, SlowPolicy::block, true), Turn::waits);
    EXPECT_EQ(turn(limit - 99, SlowPolicy::disconnect, true), Turn::waits);
    EXPECT_EQ(turn(limit - 99, SlowPolicy::block, false), Turn::takes);
    EXPECT_EQ(turn(limit - 99, SlowPolicy::drop, true), Turn::takes) << "it can be taken back";
}

TEST(PageTerms, WhoHoldsNothingTakesEvenWhereNothingIsFree) {
    const PageTerms terms{small()};
    Shares shares{terms.pool()};
    shares.use(terms.pool());
    EXPECT_EQ(terms.turn_of({}, SlowPolicy::drop, shares, {}), Turn::takes);
    EXPECT_EQ(terms.turn_of({.waiting = 1}, SlowPolicy::drop, shares, {}), Turn::misses);
}

} // namespace
} // namespace netio::pubsub
