// SPDX-License-Identifier: Apache-2.0

// Route lookups on other threads, over the real fabric.

#include "netio/base/check.hpp"
#include "netio/fabric/fabric_transport.hpp"
#include "tests/scenario/fabric/ends.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <optional>
#include <pthread.h>
#include <system_error>
#include <unistd.h>

namespace netio::test::routes_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Search {
    explicit Search(Fabric& fabric, const Address& remote)
        : search{fabric.transport->find_routes(
              remote, {}, [this](FoundRoutes found) { answer = std::move(found); })} {}
    std::optional<FoundRoutes> answer;
    std::unique_ptr<RouteSearch> search;
};

TEST(Routes, AreFoundAndUsed) {
    Fabric fabric;
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    Search search{fabric, door.listener->address()};
    EXPECT_FALSE(search.answer) << "no callback within a call";
    ASSERT_TRUE(fabric.run_until([&] { return search.answer.has_value(); }));
    ASSERT_EQ(search.answer->routes.size(), 1U);
    EXPECT_EQ(search.answer->routes.front().provider, "tcp");
    const End end{*fabric.transport, search.answer->routes.front()};
    EXPECT_TRUE(fabric.run_until([&] { return end.connected; }));
}

TEST(Routes, AnUnresolvedNameIsInTheError) {
    Fabric fabric;
    Search search{fabric, {.host = "no.such.host.invalid", .port = 1}};
    ASSERT_TRUE(fabric.run_until([&] { return search.answer.has_value(); }));
    EXPECT_THAT(search.answer->routes, IsEmpty());
    EXPECT_THAT(search.answer->problem, HasSubstr("no.such.host.invalid"));
}

TEST(Routes, ACanceledLookupMakesNoCallback) {
    Fabric fabric;
    Search unwanted{fabric, {.host = "127.0.0.1", .port = 1}};
    unwanted.search.reset();
    Search wanted{fabric, {.host = "127.0.0.1", .port = 1}};
    ASSERT_TRUE(fabric.run_until([&] { return wanted.answer.has_value(); }));
    fabric.run_for(10ms);
    EXPECT_FALSE(unwanted.answer);
}

TEST(Routes, TheLoopTurnsAndMayEndWhileASearchIsStuck) {
    std::promise<void> release;
    const std::shared_future<void> released = release.get_future().share();
    std::promise<void> begun;
    std::promise<void> ended;
    bool told = false;
    int ticks = 0;
    {
        EventLoop loop;
        fabric::RouteFinder finder{loop, [&, released](const Address&, const std::string&) {
                                       begun.set_value();
                                       released.wait();
                                       ended.set_value();
                                       return FoundRoutes{};
                                   }};
        const auto search = finder.find({.host = "slow.example", .port = 1}, {},
                                        [&](const FoundRoutes&) { told = true; });
        begun.get_future().wait(); // otherwise it might never begin
        Timer tick{loop, [&] { ++ticks < 3 ? tick.start(1ms) : loop.stop(); }};
        tick.start(1ms);
        loop.run();
    }
    EXPECT_EQ(ticks, 3);
    release.set_value();
    ended.get_future().wait();
    EXPECT_FALSE(told);
}

TEST(Routes, SlowNamesDoNotKeepOthersWaiting) {
    std::promise<void> release;
    const std::shared_future<void> released = release.get_future().share();
    EventLoop loop;
    fabric::RouteFinder finder{loop, [released](const Address& remote, const std::string&) {
                                   if (remote.host == "slow.example") released.wait();
                                   return FoundRoutes{.routes = {}, .problem = remote.host};
                               }};
    std::vector<std::string> answers;
    const auto note = [&](const FoundRoutes& found) {
        answers.push_back(found.problem);
        loop.stop();
    };
    const auto slow = finder.find({.host = "slow.example", .port = 1}, {}, note);
    const auto fast = finder.find({.host = "fast.example", .port = 1}, {}, note);
    loop.run();
    EXPECT_THAT(answers, testing::ElementsAre("fast.example"));
    release.set_value();
    loop.run();
    EXPECT_THAT(answers, testing::ElementsAre("fast.example", "slow.example"));
}

// While this object exists, the process cannot start another thread.
class NoFurtherThread {
  public:
    NoFurtherThread() {
        NETIO_CHECK(::pthread_getattr_default_np(&before_) == 0);
        pthread_attr_t huge = before_;
        NETIO_CHECK(::pthread_attr_setstacksize(&huge, std::size_t{1} << 47) == 0);
        NETIO_CHECK(::pthread_setattr_default_np(&huge) == 0);
    }
    ~NoFurtherThread() { NETIO_CHECK(::pthread_setattr_default_np(&before_) == 0); }
    NoFurtherThread(const NoFurtherThread&) = delete;
    NoFurtherThread& operator=(const NoFurtherThread&) = delete;

  private:
    pthread_attr_t before_{};
};

TEST(Routes, WithoutAnotherThreadLookupsAreQueuedOnABusyOne) {
    std::promise<void> begun;
    std::promise<void> release;
    const std::shared_future<void> released = release.get_future().share();
    EventLoop loop;
    fabric::RouteFinder finder{loop, [&begun, released](const Address& remote, const std::string&) {
                                   if (remote.host == "first") begun.set_value();
                                   released.wait();
                                   return FoundRoutes{.routes = {}, .problem = remote.host};
                               }};
    std::vector<std::string> answers;
    const auto find = [&](const std::string& host) {
        return finder.find({.host = host, .port = 1}, {}, [&](const FoundRoutes& found) {
            answers.push_back(found.problem);
            if (answers.size() == 2) loop.stop();
        });
    };
    {
        const NoFurtherThread limit;
        ASSERT_THROW(static_cast<void>(find("nobody")), std::system_error);
    }
    const auto first = find("first");
    begun.get_future().wait();
    const NoFurtherThread limit;
    const auto second = find("second");
    release.set_value();
    loop.run();
    EXPECT_THAT(answers, testing::ElementsAre("first", "second"));
}

// Functions registered with atexit() run in reverse order.
[[noreturn]] void exit_while_searching() {
    static std::promise<void> started;
    static std::promise<void> release;
    static std::atomic<bool> finished{false};
    if (std::atexit([] { ::_exit(finished ? 0 : 1); }) != 0) ::_exit(2);
    EventLoop loop;
    fabric::RouteFinder finder{loop, [](const Address&, const std::string&) {
                                   started.set_value();
                                   release.get_future().wait();
                                   finished = true;
                                   return FoundRoutes{};
                               }};
    const auto search = finder.find({.host = "anybody", .port = 1}, {}, [](const FoundRoutes&) {});
    started.get_future().wait();
    if (std::atexit([] { release.set_value(); }) != 0) ::_exit(2);
    std::exit(2);
}

TEST(RoutesDeathTest, TheProcessDoesNotEndUnderASearch) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(exit_while_searching(), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace netio::test::routes_test
