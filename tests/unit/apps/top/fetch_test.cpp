// SPDX-License-Identifier: Apache-2.0
#include "apps/top/fetch.hpp"

#include "apps/metrics/http_door.hpp"
#include "tests/support/liar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace apps::top {
namespace {

using netio::test::Liar;
using std::chrono::milliseconds;
using testing::HasSubstr;

std::string problem_with(const netio::Address& address, const FetchLimits& limits = {}) {
    try {
        fetch_figures(address, limits, [](std::string_view) {});
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "none";
}

TEST(Fetch, TakesWhatAProgramShows) {
    HttpDoor door{{.address = {.host = "127.0.0.1", .port = 0}}};
    std::thread thread{[&] {
        door.run([](std::span<const std::string> paths) {
            return std::vector<HttpAnswer>(
                paths.size(), {.text = std::make_shared<const std::string>("a 1\nb 2\n")});
        });
    }};
    std::string shown;
    fetch_figures({.host = "127.0.0.1", .port = door.port()}, {},
                  [&](std::string_view text) { shown = text; });
    EXPECT_EQ(shown, "a 1\nb 2\n");
    door.stop();
    thread.join();
}

TEST(Fetch, ReadsNoMoreThanItsLimitOfWhateverIsEndless) {
    for (const char* const endless :
         {"HTTP/1.1 200 OK\r\n\r\nxxxxxxxxxx", "HTTP/1.1 200 OK\r\nX: y\r\n", "x"}) {
        const Liar liar{endless, true};
        EXPECT_THAT(
            problem_with(liar.address(), {.until = netio::Clock::now() + milliseconds{60'000},
                                          .answer_bytes = 1 << 14}),
            HasSubstr("too long"));
    }
}

TEST(Fetch, ReadsNoMoreThanThereIsRoomForBesideOthersAndGivesItBack) {
    AnswerRoom room{1 << 14};
    for (int i = 0; i < 3; ++i) {
        const Liar liar{"x", true};
        EXPECT_THAT(
            problem_with(liar.address(),
                         {.until = netio::Clock::now() + milliseconds{60'000}, .room = &room}),
            HasSubstr("too long"));
    }
    EXPECT_TRUE(room.take(1 << 14));
    EXPECT_FALSE(room.take(1));
}

TEST(Fetch, WaitsNoLongerThanItsPatienceForWhoSaysNothingMore) {
    const Liar liar{"HTTP/1.1 200 OK\r\n\r\nx", false};
    EXPECT_THAT(problem_with(liar.address(), {.until = netio::Clock::now() + milliseconds{20}}),
                HasSubstr("in time"));
}

TEST(Fetch, SaysWhyThereAreNoFigures) {
    std::uint16_t port = 0;
    {
        const HttpDoor gone{{.address = {.host = "127.0.0.1", .port = 0}}};
        port = gone.port();
    }
    EXPECT_THAT(problem_with({.host = "127.0.0.1", .port = port}), HasSubstr("refused"));
    EXPECT_THAT(problem_with({.host = "nowhere.invalid", .port = 1}), HasSubstr("no answer: "));
}

} // namespace
} // namespace apps::top
