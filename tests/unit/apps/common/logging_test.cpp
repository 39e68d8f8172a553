// SPDX-License-Identifier: Apache-2.0
#include "apps/common/logging.hpp"
#include "tests/support/sim_world.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <vector>

namespace apps::logging_test {
namespace {

class LimitedLogTest : public testing::Test {
  protected:
    LimitedLogTest() {
        log.emplace(loop, [this](const std::string& line) { lines.push_back(line); });
    }
    void wait(netio::Duration duration) {
        bool over = false;
        netio::Timer timer{loop, [&] { over = true; }};
        timer.start(duration);
        while (!over)
            loop.run_once(netio::TimePoint::max());
    }

    netio::test::SimWorld world;
    netio::EventLoop loop{netio::EventLoop::Options{}, world};
    std::vector<std::string> lines;
    std::optional<LimitedLog> log;
};

TEST_F(LimitedLogTest, AFloodIsCountedAndNotWritten) {
    for (std::uint64_t i = 0; i < LimitedLog::lines_per_interval + 7; ++i)
        log->note("come");
    EXPECT_EQ(lines.size(), LimitedLog::lines_per_interval);
    wait(LimitedLog::interval);
    EXPECT_EQ(lines.back(), "come (and 6 before it)");
    log->note("next");
    EXPECT_EQ(lines.back(), "next");
}

TEST_F(LimitedLogTest, TheRestIsCountedAtTheEnd) {
    for (std::uint64_t i = 0; i < LimitedLog::lines_per_interval + 1; ++i)
        log->note("come " + std::to_string(i));
    log.reset();
    EXPECT_EQ(lines.back(), "come 100");
}

TEST_F(LimitedLogTest, ALongFloodIsOneLinePerIntervalWithTheTotal) {
    log.emplace(
        loop, [this](const std::string& line) { lines.push_back(line); }, 1);
    for (int i = 0; i < 25; ++i) {
        log->note("come");
        wait(std::chrono::seconds{1});
    }
    EXPECT_EQ(lines, (std::vector<std::string>{"come", "come (and 8 before it)",
                                               "come (and 9 before it)"}));
}

TEST_F(LimitedLogTest, TheOrdinaryIsWrittenAtOnce) {
    log->note("one");
    log->note("two");
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
    wait(2 * LimitedLog::interval);
    EXPECT_EQ(lines.size(), 2U);
}

TEST(PeerLog, AFloodOfOneKindIsCountedAndHidesNoOtherKind) {
    netio::test::SimWorld world;
    netio::EventLoop loop{netio::EventLoop::Options{}, world};
    std::vector<std::string> lines;
    const auto write = [&](const std::string& line) { lines.push_back(line); };
    std::optional<PeerLog> log{std::in_place, loop, write, write, write};
    constexpr auto limit = LimitedLog::lines_per_interval;
    for (std::uint64_t i = 0; i < 50 * limit; ++i)
        log->info("somebody has come");
    EXPECT_EQ(lines.size(), limit);
    log->warn("somebody was refused");
    log->error("a disk is full");
    EXPECT_EQ(lines.size(), limit + 2);
    log.reset();
    EXPECT_THAT(lines.back(), testing::HasSubstr("has come (and 4899 before it)"));
}

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LogObserverTest : public testing::Test {
  protected:
    LogObserverTest() {
        const auto level = [this](const std::string& name) -> LimitedLog::Write {
            return [this, name](const std::string& line) { lines.push_back(name + line); };
        };
        log.emplace(loop, LogObserver::Levels{.debug = level("debug: "),
                                              .info = level("info: "),
                                              .warning = level("warning: "),
                                              .error = level("error: ")});
    }
    netio::Observer& observer() { return *loop.observer; }
    void note(const std::string& peer) {
        observer().on_accept_failed(
            {.peer = peer, .why = {{ENOMEM, std::system_category()}, "no pages; buy some"}});
    }
    // Virtual time passes while the loop runs.
    void wait(netio::Duration duration) {
        bool over = false;
        netio::Timer timer{loop, [&] { over = true; }};
        timer.start(duration);
        while (!over)
            loop.run_once(netio::TimePoint::max());
    }

    netio::test::SimWorld world;
    netio::EventLoop loop{netio::EventLoop::Options{}, world};
    std::vector<std::string> lines;
    std::optional<LogObserver> log;
};

TEST_F(LogObserverTest, TheFirstIsLoggedAtOnceWithPeerReasonAndRemedy) {
    note("10.0.0.7:4000");
    EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("10.0.0.7:4000 is rejected: "),
                                         HasSubstr("no pages; buy some"),
                                         HasSubstr("Cannot allocate memory"))));
}

TEST_F(LogObserverTest, ManyRejectionsDoNotHideAShortage) {
    for (int i = 0; i < 1000; ++i)
        observer().on_peer_rejected(
            {.peer = "10.0.0.8:1", .why = "it speaks another protocol or version"});
    EXPECT_THAT(lines, ElementsAre(HasSubstr("10.0.0.8:1 is rejected: it speaks another")));
    note("10.0.0.7:4000");
    EXPECT_EQ(lines.size(), 2U);
}

TEST_F(LogObserverTest, ARefusedRequestIsAWarningOfItsOwnKind) {
    observer().on_request_refused({.peer = "10.0.0.9:1", .why = "its key does not permit it"});
    observer().on_not_admitted({.peer = "10.0.0.8:1", .why = "no key", .key = 0});
    EXPECT_THAT(
        lines,
        ElementsAre("warning: the request of 10.0.0.9:1 is refused: its key does not permit it",
                    HasSubstr("10.0.0.8:1")));
}

TEST_F(LogObserverTest, APublisherWithoutHistoryIsNamedWithTheRemedy) {
    observer().on_no_history({.peer = "10.0.0.9:1"});
    EXPECT_THAT(lines, ElementsAre("warning: publisher 10.0.0.9:1 keeps no history: only new "
                                   "messages arrive; set its history_limit"));
}

TEST_F(LogObserverTest, LaterOnesAreCountedInOneLinePerInterval) {
    note("first");
    for (int i = 0; i < 40; ++i) {
        note("again");
        wait(std::chrono::milliseconds{100});
    }
    note("last");
    ASSERT_EQ(lines.size(), 1U);
    wait(LimitedLog::interval);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines[1], AllOf(HasSubstr("last is rejected: "), HasSubstr("and 40 before it")));
}

TEST_F(LogObserverTest, AfterAQuietIntervalTheNextIsLoggedAtOnce) {
    note("first");
    wait(LimitedLog::interval + std::chrono::seconds{1});
    EXPECT_EQ(lines.size(), 1U) << "no line is left to report";
    note("second");
    EXPECT_EQ(lines.size(), 2U);
}

TEST_F(LogObserverTest, TheRestIsLoggedAtTheEnd) {
    note("first");
    note("second");
    log.reset();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines[1], HasSubstr("second"));
}

TEST_F(LogObserverTest, LogsEventsWithTheirSeverity) {
    using Kind = netio::DeviceEvent::Kind;
    observer().on_peer_connected({.peer = "a:1", .provider = "tcp"});
    observer().on_peer_disconnected(
        {.peer = "a:1",
         .closed = {.reason = netio::CloseReason::too_slow, .detail = "a:1 sleeps"}});
    observer().on_not_admitted({.peer = "a:2", .why = "no key", .key = 7});
    observer().on_not_admitted({.peer = "a:3", .why = "no key"});
    observer().on_key_file_problem("k:1: what is this");
    observer().on_key_revoked({.key = 7, .sessions = 2});
    observer().on_provider_unused(
        {.provider = "verbs", .address = {.host = "h", .port = 1}, .why = "in use"});
    observer().on_peer_stalled({.peer = "a:1", .stalled = std::chrono::milliseconds{1020}});
    observer().on_device_event(
        {.kind = Kind::port_down, .device = "mlx5_0", .port = 1, .what = {}});
    observer().on_device_event({.kind = Kind::port_up, .device = "mlx5_0", .port = 1, .what = {}});
    EXPECT_THAT(
        lines,
        ElementsAre("debug: a:1 is connected over tcp",
                    "debug: the session with a:1 has ended: peer too slow: a:1 sleeps",
                    "warning: a:2 (key 7) is not admitted: no key",
                    "warning: a:3 is not admitted: no key", "error: k:1: what is this",
                    "warning: key 7 was removed or changed: 2 connections are closed",
                    "warning: no peer can connect over verbs at h:1: in use",
                    "info: subscriber a:1 is slow: no progress for 1.0 s; reduce its load, or let "
                    "it subscribe with policy drop or newest",
                    "warning: port 1 of mlx5_0 is down", "info: port 1 of mlx5_0 is active"));
}

TEST_F(LogObserverTest, WritesOneLineAMinuteAboutSlowSubscribers) {
    for (int second = 0; second < 59; ++second) {
        observer().on_peer_stalled({.peer = "a:1", .blocks_publisher = true});
        observer().on_peer_recovered({.peer = "a:1", .stalled = std::chrono::milliseconds{1420}});
        wait(std::chrono::seconds{1});
    }
    EXPECT_THAT(lines, ElementsAre(HasSubstr("publishing is blocked")));
    wait(std::chrono::seconds{2});
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines[1], AllOf(HasSubstr("a:1 makes progress again after 1.4 s"),
                                HasSubstr("and 116 before it")));
}

TEST_F(LogObserverTest, TheLastRouteIsLeftToTheConnector) {
    const netio::Closed closed{.reason = netio::CloseReason::refused, .detail = "h:1 over verbs"};
    observer().on_route_failed({.provider = "verbs", .remote = {"h", 1}, .closed = closed});
    observer().on_route_failed(
        {.provider = "tcp", .remote = {"h", 1}, .closed = closed, .is_last = true});
    EXPECT_THAT(lines, ElementsAre(HasSubstr("info: cannot connect over verbs: ")));
}

TEST_F(LogObserverTest, GetsNoCallbacksAfterItsDestruction) {
    log.reset();
    EXPECT_EQ(loop.observer, nullptr);
}

TEST_F(LogObserverTest, LogsNothingWithoutAnEvent) {
    wait(2 * LimitedLog::interval);
    log.reset();
    EXPECT_THAT(lines, IsEmpty());
}

} // namespace

} // namespace apps::logging_test
