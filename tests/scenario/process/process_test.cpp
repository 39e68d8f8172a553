// SPDX-License-Identifier: Apache-2.0

// What happens to sockets, and to the parent's connections, when a program ends, forks, or makes
// calls from a wrong thread.

#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace netio::process_test {
namespace {

using testing::Eq;
using testing::HasSubstr;

struct Ended {
    int status = -1;
    std::string output; // and errors
};

// A program that hangs is ended by `timeout`, with status 124.
Ended run(const std::string& arguments, const std::string& environment = {}) {
    const test::TemporaryFolder folder; // for files of an object that is never destroyed
    const std::string path = folder.path().string();
    const std::string command = "TMPDIR=" + path + " TEST_TMPDIR=" + path + " " + environment +
                                " timeout 60 " PROCESS_SUBJECT " " + arguments + " 2>&1";
    Ended ended;
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::array<char, 512> text{};
    while (std::fgets(text.data(), static_cast<int>(text.size()), pipe) != nullptr)
        ended.output += text.data();
    ended.status = WEXITSTATUS(::pclose(pipe));
    return ended;
}

constexpr std::array kinds{"watches",
                           "messages",
                           "messages_with_keys",
                           "buffered",
                           "buffered_with_keys",
                           "unbuffered",
                           "unbuffered_with_keys",
                           "query",
                           "streams",
                           "streams_with_keys",
                           "subscriptions",
                           "subscriptions_with_keys",
                           "subscriptions_on_bus",
                           "announced",
                           "blocking",
                           "blocking_with_keys",
                           "subscriber_with_key",
                           "front_door",
                           "front_door_on_bus",
                           "sender",
                           "two_way",
                           "two_way_with_keys",
                           "starved",
                           "requests",
                           "queue",
                           "kept_messages",
                           "recording"};

class GlobalObject : public testing::TestWithParam<const char*> {};

TEST_P(GlobalObject, IsDestroyedInOrderAfterMainReturns) {
    const std::string kind = GetParam();
    for (const char* const place : {"first", "late"}) {
        const Ended ended = run("exit " + kind + " " + place);
        EXPECT_EQ(ended.status, 0) << place;
        EXPECT_THAT(ended.output, Eq("main returns\n")) << place;
    }
    const Ended ended = run("exit none early", "MADE_EARLY=" + kind);
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.output, Eq("main returns\n"));
}

// The library's own static data must stay valid while another thread still uses it.
TEST_P(GlobalObject, SurvivesExitInAnotherThreadWhileInUse) {
    const Ended ended = run(std::string{"exit_elsewhere "} + GetParam());
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.output, Eq(""));
}

// It is destroyed by a thread that has never used it.
TEST_P(GlobalObject, IsDestroyedByExitInAnotherThread) {
    const Ended ended = run(std::string{"exit_while_waiting "} + GetParam());
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.output, Eq(""));
}

// Its destructor ends the call.
TEST(GlobalObject, IsDestroyedByExitWhileAnotherThreadWaitsInIt) {
    for (const char* const kind : {"front_door", "requests", "requesting", "empty_queue"}) {
        const Ended ended = run(std::string{"exit_in_call "} + kind);
        EXPECT_EQ(ended.status, 0) << kind;
        EXPECT_THAT(ended.output, Eq("")) << kind;
    }
}

TEST_P(GlobalObject, IsNotDestroyedByAChildThatEnds) {
    const Ended ended = run(std::string{"fork_with "} + GetParam());
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.output, Eq("main returns\n"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, GlobalObject, testing::ValuesIn(kinds),
                         [](const auto& each) { return std::string{each.param}; });

TEST(GlobalObject, IsRefusedWithOneLineWhileItsLoopStillRuns) {
    for (const char* const kind : {"buffered", "watches"}) {
        const Ended ended = run(std::string{"running "} + kind);
        EXPECT_NE(ended.status, 0);
        EXPECT_THAT(ended.output, HasSubstr("is destroyed while another thread runs its loop"));
    }
}

constexpr const char* nothing_happened = "children failed: 0, parent disturbed: 0\nmain returns\n";

TEST(ForkedChild, UsesSocketsOfItsOwn) {
    const Ended ended = run("fork fresh");
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.output, Eq(nothing_happened));
}

TEST(ForkedChild, LeavesInheritedSocketsAloneWhenItEnds) {
    for (const char* const how : {"exit", "destroy"}) {
        const Ended ended = run(std::string{"fork "} + how);
        EXPECT_EQ(ended.status, 0) << how;
        EXPECT_THAT(ended.output, Eq(nothing_happened)) << how;
    }
}

TEST(ForkedChild, IsRefusedWithOneLineWhenItUsesInheritedSockets) {
    for (const char* const how : {"use", "publish"}) {
        const Ended ended = run(std::string{"fork "} + how);
        EXPECT_EQ(ended.status, 0) << how;
        EXPECT_THAT(ended.output, HasSubstr("in a child process that has inherited it")) << how;
        EXPECT_THAT(ended.output, HasSubstr("children failed: 3, parent disturbed: 0")) << how;
    }
}

TEST(WrongThread, IsNoticedWhenItsMessageBeginsAPage) {
    const Ended ended = run("wrong_thread");
    EXPECT_NE(ended.status, 0);
    EXPECT_THAT(ended.output, HasSubstr("is called from another thread while its loop runs"));
}

} // namespace
} // namespace netio::process_test
