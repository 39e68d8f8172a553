// SPDX-License-Identifier: Apache-2.0
#include "stream/core/fifo.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace netio::stream::fifo_test {
namespace {

TEST(Fifo, BehavesAsADequeUnderAnyMixOfPushAndPop) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 random{seed};
        Fifo<unsigned> fifo;
        std::deque<unsigned> reference;
        for (unsigned step = 0; step < 2'000; ++step) {
            if (reference.empty() || random() % 100 < 30 + seed * 2) {
                fifo.push_back(step);
                reference.push_back(step);
            } else {
                ASSERT_EQ(fifo.pop_front(), reference.front()) << "seed " << seed;
                reference.pop_front();
            }
            ASSERT_EQ(fifo.size(), reference.size()) << "seed " << seed;
            ASSERT_EQ(fifo.empty(), reference.empty()) << "seed " << seed;
            for (std::size_t i = 0; i < reference.size(); ++i) {
                ASSERT_EQ(fifo[i], reference[i]) << "seed " << seed;
            }
        }
    }
}

TEST(FifoDeathTest, AbortsOnAnElementThatIsNotThere) {
    Fifo<int> fifo;
    fifo.push_back(1);
    fifo.pop_front();
    EXPECT_DEATH(fifo.front(), "check failed");
}

} // namespace
} // namespace netio::stream::fifo_test
