// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/prescale.hpp"

#include <gtest/gtest.h>

namespace apps::subscribe {
namespace {

using netio::pubsub::Fid;

TEST(Prescale, TakesTheFirstOfEachFidAndThenEveryNth) {
    Prescale prescale{3};
    for (int n = 0; n < 9; ++n) {
        EXPECT_EQ(prescale.takes(Fid{1}), n % 3 == 0) << n;
        if (n < 4) {
            EXPECT_EQ(prescale.takes(Fid{2}), n % 3 == 0) << n;
        }
    }
    EXPECT_EQ(prescale.passed_over(), 6U + 2U);
}

TEST(Prescale, OfOneTakesAll) {
    Prescale all{1};
    EXPECT_TRUE(all.takes(Fid{1}));
    EXPECT_TRUE(all.takes(Fid{1}));
    EXPECT_EQ(all.passed_over(), 0U);
}

} // namespace
} // namespace apps::subscribe
