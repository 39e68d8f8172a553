// SPDX-License-Identifier: Apache-2.0
#include "apps/top/name_search.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <stdexcept>

namespace apps::top {
namespace {

using testing::HasSubstr;

// Answers for names that begin with 'slow' when it is told to, and knows none that begin with 'no'.
struct NameServer {
    NameSearch::Resolve resolve() const {
        return [this, ended = end.get_future().share()](const std::string& host) {
            ++asked;
            if (host.starts_with("slow")) ended.wait();
            ++answered;
            if (host.starts_with("no")) throw std::runtime_error{"it is unknown"};
            return addresses_of({.host = "127.0.0.7", .port = 0});
        };
    }

    mutable std::promise<void> end;
    mutable std::atomic<int> asked = 0;
    mutable std::atomic<int> answered = 0;
};

netio::TimePoint soon() {
    return netio::Clock::now() + std::chrono::milliseconds{5};
}
netio::TimePoint far() {
    return netio::Clock::now() + std::chrono::minutes{1};
}

std::string problem_with(NameSearch& names, const std::string& host, netio::TimePoint until) {
    try {
        EXPECT_EQ(names.find({.host = host, .port = 9}, until).front().port(), 9);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "none";
}

TEST(NameSearch, FindsTheAddressesOfANameAndSaysWhyNot) {
    NameServer server;
    NameSearch names{server.resolve()};
    EXPECT_EQ(problem_with(names, "somewhere", far()), "none");
    EXPECT_EQ(problem_with(names, "nowhere", far()), "no answer: it is unknown");
    EXPECT_EQ(server.asked, 2);
    server.end.set_value();
}

TEST(NameSearch, AsksForANameOnceAsLongAsItIsNotAnswered) {
    NameServer server;
    NameSearch names{server.resolve()};
    for (int i = 0; i < 3; ++i)
        EXPECT_THAT(problem_with(names, "slow", soon()), HasSubstr("not resolved in time"));
    EXPECT_LE(server.asked, 1);
    server.end.set_value();
    EXPECT_EQ(problem_with(names, "slow", far()), "none");
    EXPECT_EQ(server.asked, 1) << "an answer that comes late is for who asks next";
    EXPECT_EQ(problem_with(names, "slow", far()), "none");
    EXPECT_EQ(server.asked, 2) << "and for nobody after";
}

TEST(NameSearch, AsksForSoManyNamesAtOnceOnlyAndForNoAddress) {
    NameServer server;
    NameSearch names{server.resolve(), 2};
    for (const char* const host : {"slow1", "slow2"})
        EXPECT_THAT(problem_with(names, host, soon()), HasSubstr("not resolved in time"));
    EXPECT_THAT(problem_with(names, "somewhere", soon()), HasSubstr("too many names"));
    for (const char* const host : {"127.0.0.1", "::1"})
        EXPECT_EQ(problem_with(names, host, soon()), "none");
    server.end.set_value();
    // Whoever waits gets a place as soon as there is one.
    EXPECT_EQ(problem_with(names, "somewhere", far()), "none");
    EXPECT_EQ(server.asked, 3);
}

TEST(NameSearch, WhatAThreadStillLooksForMayOutliveIt) {
    NameServer server;
    {
        NameSearch names{server.resolve()};
        EXPECT_THAT(problem_with(names, "slow", soon()), HasSubstr("not resolved in time"));
    }
    server.end.set_value();
    while (server.answered == 0)
        std::this_thread::yield();
}

} // namespace
} // namespace apps::top
