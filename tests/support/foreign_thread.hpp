// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls from a thread other than the loop's thread.

#include "netio/loop/check_caller.hpp"
#include "netio/loop/event_loop.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace netio::test {

struct ForeignCall {
    std::string name; // as the check prints it
    std::function<void()> call;
};

// Makes the call while the loop runs.
inline void call_elsewhere(EventLoop& loop, const std::function<void()>& call) {
    const bool posted = loop.post([&call] {
        std::thread other{call};
        other.join();
    });
    ASSERT_TRUE(posted);
    loop.run_once();
}

// In a debug build, each call ends the program with a message: its name and the remedy. Each death
// test starts the test program again, because a forked child must not use the loop.
inline void expect_refused(EventLoop& loop, const std::vector<ForeignCall>& calls) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const ForeignCall& each : calls) {
        const std::size_t destructor = each.name.find("::~");
        const std::string refusal =
            destructor == std::string::npos
                ? each.name + " is called from another thread"
                : each.name.substr(0, destructor) + " is destroyed while another thread";
        EXPECT_DEATH(call_elsewhere(loop, each.call), refusal + ".*EventLoop::post");
        if (testing::Test::HasFailure()) return;
    }
}

} // namespace netio::test
