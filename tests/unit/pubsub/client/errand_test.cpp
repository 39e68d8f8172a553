// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/errand.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace netio::pubsub {
namespace {

class Errands : public testing::Test {
  protected:
    bool post(std::function<void()> task) {
        if (!takes) return false;
        waiting.push_back(std::move(task));
        return true;
    }
    void run_first() {
        const std::function<void()> first = std::move(waiting.front());
        waiting.pop_front();
        first();
    }

    bool takes = true; // what is posted
    std::deque<std::function<void()>> waiting;
    int runs = 0;
    std::function<void()> at_run;
    Errand errand{[this](std::function<void()> task) { return post(std::move(task)); },
                  [this] {
                      ++runs;
                      if (at_run) at_run();
                  }};
};

TEST_F(Errands, WaitOnceHoweverOftenTheyAreAskedFor) {
    for (int i = 0; i < 3; ++i)
        errand.ask();
    EXPECT_EQ(waiting.size(), 1U);
    run_first();
    EXPECT_EQ(runs, 1);
    errand.ask();
    EXPECT_EQ(waiting.size(), 1U) << "that is another one";
}

// There may be more to do by then than it has seen.
TEST_F(Errands, AskedForWhileTheyRunAreRunOnceMore) {
    at_run = [this] {
        errand.ask();
        errand.ask();
    };
    errand.ask();
    run_first();
    EXPECT_EQ(waiting.size(), 1U);
    at_run = {};
    run_first();
    EXPECT_EQ(runs, 2);
    EXPECT_TRUE(waiting.empty());
}

TEST_F(Errands, ThatCouldNotBePostedMayBeAskedForAgain) {
    takes = false;
    errand.ask();
    takes = true;
    errand.ask();
    EXPECT_EQ(waiting.size(), 1U);
}

TEST_F(Errands, KeepWhatTheyAreForUntilTheyHaveRun) {
    auto needed = std::make_shared<int>(0);
    const std::weak_ptr<int> there = needed;
    bool was_there = false;
    at_run = [&] { was_there = !there.expired(); };
    errand.ask(std::move(needed));
    EXPECT_FALSE(there.expired());
    run_first();
    EXPECT_TRUE(was_there);
    EXPECT_TRUE(there.expired());
}

} // namespace
} // namespace netio::pubsub
