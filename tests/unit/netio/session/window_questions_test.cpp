// SPDX-License-Identifier: Apache-2.0

// Which waits a window's pace takes for an answer: those for a credit that was granted, in the
// window that there is now.

#include "netio/session/window_pace.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace netio {
namespace {

using namespace std::chrono_literals;

// A window of eight that may grow to 64, and a peer that has sent all that it may but the last.
class WindowQuestions : public testing::Test {
  protected:
    WindowQuestions() { arrive_before(8); }

    void arrive(bool waited) { pace->on_arrived(waited, rested, TimePoint{} + rested), ++arrived; }
    // All but the last of so many.
    void arrive_before(std::uint64_t granted) {
        while (arrived + 1 < granted)
            arrive(false);
    }
    void grant(std::uint64_t in_all) { pace->on_granted(in_all, rested); }
    // The next one comes a long way later, for want of a credit.
    void come_late() {
        rested += 20ms;
        arrive(true);
    }

    std::unique_ptr<WindowPace> pace = std::make_unique<WindowPace>(8, 64);
    std::uint64_t arrived = 0;
    Duration rested{};
};

TEST_F(WindowQuestions, TwoGrantsThatAreAnsweredLateMakeItGrow) {
    grant(12);
    come_late();
    arrive_before(12);
    EXPECT_EQ(pace->wanted(), 8U);
    grant(16);
    come_late();
    EXPECT_EQ(pace->wanted(), 16U);
}

TEST_F(WindowQuestions, ANumberThatWasGrantedBeforeIsNoGrant) {
    grant(8); // as it began with
    come_late();
    grant(12);
    come_late();
    EXPECT_EQ(pace->wanted(), 8U);
}

TEST_F(WindowQuestions, AWindowThatHasChangedBeginsToCountAnew) {
    grant(12);
    come_late();
    pace->on_changed(8);
    arrive_before(12);
    grant(16);
    come_late();
    EXPECT_EQ(pace->wanted(), 8U) << "the wait before was of another window";
    arrive_before(16);
    grant(20);
    come_late();
    EXPECT_EQ(pace->wanted(), 16U);
}

TEST_F(WindowQuestions, AGrantBeforeAChangeIsNotAnsweredBehindIt) {
    grant(12);
    pace->on_changed(8);
    come_late();
    arrive_before(12);
    grant(16);
    come_late();
    EXPECT_EQ(pace->wanted(), 8U);
}

// Hardly used for more than a period.
TEST_F(WindowQuestions, AnOddWindowShrinksToTheLargerHalf) {
    pace->on_changed(17);
    arrive(false);
    for (int each = 0; each < 2; ++each) {
        rested += WindowPace::period;
        arrive(false);
    }
    EXPECT_EQ(pace->wanted(), 9U);
}

} // namespace
} // namespace netio
