// SPDX-License-Identifier: Apache-2.0
#include "netio/base/back_off.hpp"

#include <gtest/gtest.h>

namespace netio::back_off_test {
namespace {

using namespace std::chrono_literals;

TEST(BackOff, EachWaitIsAboutTwiceAsLongUpToTheLimit) {
    BackOff back_off{{.first = 100ms, .limit = 1s, .seed = 3}};
    for (const Duration expected : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
        const Duration wait = back_off.next();
        EXPECT_GE(wait, expected);
        EXPECT_LT(wait, expected * 3 / 2);
    }
    back_off.reset();
    EXPECT_LT(back_off.next(), 150ms);
}

TEST(BackOff, TheSameSeedWaitsAlikeAndOthersDoNot) {
    BackOff one{{.first = 1s, .limit = 8s, .seed = 1}};
    BackOff same{{.first = 1s, .limit = 8s, .seed = 1}};
    BackOff other{{.first = 1s, .limit = 8s, .seed = 2}};
    const Duration wait = one.next();
    EXPECT_EQ(wait, same.next());
    EXPECT_NE(wait, other.next());
}

TEST(BackOff, ALimitBelowTheFirstWaitIsNone) {
    BackOff back_off{{.first = 1h, .limit = 1s, .seed = 1}};
    EXPECT_GE(back_off.next(), 1h);
    EXPECT_GE(back_off.next(), 1h);
}

TEST(BackOff, OnlyTheFirstTimeAfterASuccessIsAtOnce) {
    BackOff back_off{{.first = 1s, .limit = 8s, .seed = 1}};
    EXPECT_GE(back_off.at_once(), 1s) << "without a success";
    back_off.reset();
    EXPECT_EQ(back_off.at_once(), Duration::zero());
    EXPECT_GE(back_off.at_once(), 1s);
    back_off.reset();
    static_cast<void>(back_off.next());
    EXPECT_GE(back_off.at_once(), 1s);
}

} // namespace
} // namespace netio::back_off_test
