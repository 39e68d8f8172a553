// SPDX-License-Identifier: Apache-2.0
#include "netio/coalesced_task.hpp"
#include "netio/context.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/test_bed.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace netio::context_test {
namespace {

// On a loop of the test, which runs the tasks.
class ContextOfALoop : public testing::Test {
  protected:
    bool turn() { return bed.loop().run_once(); }

    test::TestBed bed{test::Bed::sim_tcp};
    Context context{bed.transport()};
    int runs = 0;
    std::function<void()> at_run;
    std::optional<CoalescedTask> coalesced{std::in_place, context, [this] {
                                               ++runs;
                                               if (at_run) at_run();
                                           }};
};

TEST_F(ContextOfALoop, BelongsToTheThreadThatHasMadeIt) {
    EXPECT_TRUE(context.is_own_thread());
    EXPECT_EQ(&context.loop(), &bed.loop());
    context.run([this] { ++runs; });
    EXPECT_EQ(runs, 1) << "at once";
    EXPECT_TRUE(context.post([this] { ++runs; }));
    EXPECT_EQ(runs, 1);
    turn();
    EXPECT_EQ(runs, 2);
    std::thread{[&] { EXPECT_FALSE(context.is_own_thread()); }}.join();
}

TEST_F(ContextOfALoop, ACoalescedTaskRunsOnceHoweverOftenItIsAskedFor) {
    for (int i = 0; i < 3; ++i)
        coalesced->request();
    turn();
    EXPECT_EQ(runs, 1);
    turn();
    EXPECT_EQ(runs, 1);
    coalesced->request();
    turn();
    EXPECT_EQ(runs, 2) << "a new task";
}

// The running task may not see later work.
TEST_F(ContextOfALoop, ACoalescedTaskThatIsAskedForWhileItRunsRunsOnceMore) {
    at_run = [this] {
        if (runs > 1) return;
        coalesced->request();
        coalesced->request();
    };
    coalesced->request();
    for (int i = 0; i < 3; ++i)
        turn();
    EXPECT_EQ(runs, 2);
}

TEST_F(ContextOfALoop, ACoalescedTaskDoesNotRunAfterItsEnd) {
    coalesced->request();
    coalesced.reset();
    turn();
    EXPECT_EQ(runs, 0);
}

TEST(Log, ShowsNoCharacterThatActsOnATerminal) {
    const test::LogLines lines;
    write_log("a\x1b[31m\nforged\x9b\xe2\x80\xae h\xc3\xa4");
    EXPECT_EQ(lines.all(), std::vector<std::string>{"a\\u001b[31m\\nforged\\x9b\\u202e h\xc3\xa4"});
}

} // namespace
} // namespace netio::context_test
