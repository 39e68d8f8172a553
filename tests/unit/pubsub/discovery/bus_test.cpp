// SPDX-License-Identifier: Apache-2.0
// A bus as used by programs: with threads, files and a loop.

#include "pubsub/discovery/bus.hpp"

#include "pubsub/discovery/directory_registry.hpp"
#include "tests/support/sim_discovery.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace netio::pubsub::bus_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class Listener final : public Discovery::Handler, public Announcer::Handler {
  public:
    void on_announced(const Announcement& announcement) override {
        there[announcement.name] = announcement;
        for (const AnnouncedFids& each : announcement.fids)
            fids += to_integer(each.fids.last) - to_integer(each.fids.first) + 1;
        for (const TimePoint until = Clock::now() + takes; Clock::now() < until;) {
        }
        if (ends != nullptr) ends->reset();
    }
    void on_gone(const std::string& name) override {
        there.erase(name);
        gone.push_back(name);
    }
    void on_warning(const std::string& what) override { troubles.push_back(what); }
    void on_caught_up() override { ++caught_up; }

    void on_written() override { ++written; }

    std::map<std::string, Announcement> there;
    std::vector<std::string> gone;
    std::vector<std::string> troubles;
    std::uint64_t fids = 0;
    int written = 0;
    int caught_up = 0;
    Duration takes{};                           // duration of each on_announced()
    std::unique_ptr<Discovery>* ends = nullptr; // destroyed in the first on_announced()
};

Announcement of(const std::string& name) {
    return {.name = name, .instance = draw_instance(), .addresses = {"tcp:127.0.0.1:1"}};
}

class Bus : public testing::Test {
  protected:
    bool run_until(const std::function<bool()>& done) {
        const TimePoint deadline = Clock::now() + seconds{60};
        while (!done()) {
            if (Clock::now() > deadline) return false;
            loop.run_once(Clock::now() + milliseconds{20});
        }
        return true;
    }
    std::string where() const { return folder.path().string(); }

    test::TemporaryFolder folder;
    EventLoop loop;
    Listener listener;
    BusOptions quick{.lease = milliseconds{300}, .poll = milliseconds{50}};
};

TEST_F(Bus, APublisherIsFoundHoldsItsLeaseAndIsGoneWhenItEnds) {
    const auto bus = open_bus(loop, where(), quick);
    bus->watch(listener);
    Listener own;
    auto announcer = announce(loop, where(), of("a"), own, quick);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    const TimePoint later = Clock::now() + 4 * quick.lease;
    ASSERT_TRUE(run_until([&] { return Clock::now() > later; }));
    Announcement more = of("other name");
    more.mode = "buffered";
    more.name = "a";
    announcer->update(more);
    ASSERT_TRUE(run_until([&] { return listener.there["a"].mode == "buffered"; }));
    announcer.reset();
    ASSERT_TRUE(run_until([&] { return listener.there.empty(); }));
    EXPECT_THAT(listener.troubles, testing::IsEmpty());
    EXPECT_THAT(own.troubles, testing::IsEmpty());
}

// Long before the lease requires the next write.
TEST_F(Bus, AnUpdateIsWrittenAtOnce) {
    const BusOptions slow{.lease = seconds{600}, .poll = milliseconds{50}};
    const auto bus = open_bus(loop, where(), slow);
    bus->watch(listener);
    Listener own;
    const auto announcer = announce(loop, where(), of("a"), own, slow);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a") && own.written == 1; }));
    Announcement more = of("a");
    more.mode = "buffered";
    const TimePoint begin = Clock::now();
    announcer->update(more);
    ASSERT_TRUE(run_until([&] { return listener.there["a"].mode == "buffered"; }));
    EXPECT_LT(Clock::now() - begin, seconds{40});
}

TEST_F(Bus, OnWrittenIsCalledOnceAndNotEarly) {
    const std::filesystem::path place = folder.path() / "bus";
    std::ofstream{place} << "no directory";
    Listener own;
    const auto announcer = announce(loop, place.string(), of("a"), own, quick);
    ASSERT_TRUE(run_until([&] { return !own.troubles.empty(); }));
    EXPECT_EQ(own.written, 0);
    std::filesystem::remove(place);
    std::filesystem::create_directory(place);
    ASSERT_TRUE(run_until([&] { return own.written > 0; }));
    EXPECT_TRUE(std::filesystem::exists(place / "a.netio"));
}

TEST_F(Bus, AfterUnwatchThereAreNoCallbacks) {
    const auto bus = open_bus(loop, where(), quick);
    const auto second = open_bus(loop, where(), quick);
    Listener other;
    bus->watch(listener);
    second->watch(other);
    bus->unwatch();
    Listener own;
    const auto announcer = announce(loop, where(), of("a"), own, quick);
    const auto later = announce(loop, where(), of("b"), own, quick);
    ASSERT_TRUE(run_until([&] { return other.there.size() == 2; }));
    EXPECT_THAT(listener.there, testing::IsEmpty());
}

TEST_F(Bus, AKilledPublisherIsGoneAfterItsLease) {
    const pid_t killed = ::fork();
    ASSERT_GE(killed, 0);
    if (killed == 0) {
        EventLoop own;
        Listener handler;
        const auto announcer = announce(own, where(), of("a"), handler, quick);
        for (;;)
            own.run_once(Clock::now() + seconds{1});
    }
    const auto bus = open_bus(loop, where(), quick);
    bus->watch(listener);
    EXPECT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    ::kill(killed, SIGKILL);
    ::waitpid(killed, nullptr, 0);
    EXPECT_TRUE(run_until([&] { return listener.there.empty(); }));
    EXPECT_THAT(listener.gone, ElementsAre("a"));
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "a.netio"));
}

// Only one read of the directory is possible within this time.
TEST_F(Bus, TenThousandFidsOfTwoHundredPublishersAreFoundByTheFirstLook) {
    DirectoryRegistry board{where(), seconds{1}};
    for (std::uint64_t publisher = 0; publisher < 200; ++publisher) {
        Announcement one = of("p" + std::to_string(publisher));
        for (std::uint64_t fid = 0; fid < 50; ++fid) {
            const Fid each{(publisher * 50 + fid) << 16};
            one.fids.push_back({.fids = {.first = each, .last = each}, .meaning = "hits"});
        }
        board.put(one.name, to_text(one));
    }
    const TimePoint begin = Clock::now();
    const auto bus = open_bus(loop, where(), {.lease = seconds{600}, .poll = seconds{3600}});
    bus->watch(listener);
    ASSERT_TRUE(run_until([&] { return listener.there.size() == 200; }));
    RecordProperty("milliseconds", static_cast<int>((Clock::now() - begin) / milliseconds{1}));
    EXPECT_EQ(listener.fids, 10'000U);
}

TEST_F(Bus, AMissingBusIsReportedAndFoundLater) {
    const std::string later = where() + "/later";
    const auto bus = open_bus(loop, later, quick);
    bus->watch(listener);
    ASSERT_TRUE(run_until([&] { return !listener.troubles.empty(); }));
    EXPECT_THAT(listener.troubles[0], HasSubstr("cannot read '" + later + "'"));
    const auto announcer = announce(loop, later, of("a"), listener, quick);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
}

TEST_F(Bus, AFailedAnnouncementIsReportedAndRetried) {
    const std::string blocked = where() + "/blocked";
    std::ofstream{blocked} << "a file";
    const auto announcer = announce(loop, blocked, of("a"), listener, quick);
    ASSERT_TRUE(run_until([&] { return !listener.troubles.empty(); }));
    EXPECT_THAT(listener.troubles[0], HasSubstr("new subscribers may not find this publisher"));
    std::filesystem::remove(blocked);
    ASSERT_TRUE(run_until([&] { return std::filesystem::exists(blocked + "/a.netio"); }));
}

TEST_F(Bus, AnObstacleUnderItsNameDoesNotStopAPublisher) {
    ASSERT_EQ(::mkfifo((where() + "/pipe.netio").c_str(), 0600), 0);
    std::filesystem::create_symlink("nowhere", where() + "/link.netio");
    std::ofstream{where() + "/huge.netio"}.close();
    std::filesystem::resize_file(where() + "/huge.netio", announcement_bytes_limit + 1);
    const auto bus = open_bus(loop, where(), quick);
    bus->watch(listener);
    Listener own;
    std::vector<std::unique_ptr<Announcer>> announcers;
    for (const char* name : {"pipe", "link", "huge"})
        announcers.push_back(announce(loop, where(), of(name), own, quick));
    ASSERT_TRUE(run_until([&] { return listener.there.size() == 3; }));
    EXPECT_THAT(own.troubles, testing::IsEmpty());
}

// Only the publisher can report it: subscribers on other hosts just fail to connect.
TEST_F(Bus, APublisherIsWarnedOfAddressesThatOthersCannotUse) {
    Announcement announcement = of("a");
    announcement.addresses = {"tcp:no..name:1"}; // refused without a name server
    const auto announcer = announce(loop, where(), announcement, listener, quick);
    ASSERT_TRUE(run_until([&] { return !listener.troubles.empty(); }));
    EXPECT_THAT(listener.troubles, ElementsAre(HasSubstr("'no..name' cannot be resolved here")));
    announcement.addresses = {"tcp:[fe80::1%eth0]:1"};
    announcer->update(announcement);
    ASSERT_TRUE(run_until([&] { return listener.troubles.size() > 1; }));
    EXPECT_THAT(listener.troubles.back(), HasSubstr("[fe80::1%eth0]:1: it is a link-local"));
}

// No further change occurs that could trigger the rest.
TEST_F(Bus, ReportsThatDoNotFitATurnComeInTheNext) {
    DirectoryRegistry board{where(), seconds{1}};
    for (const char* name : {"a", "b", "c"})
        board.put(name, to_text(of(name)));
    listener.takes = 2 * EventLoop::Options{}.turn_limit;
    const auto bus = open_bus(loop, where(), {.lease = seconds{600}, .poll = seconds{3600}});
    bus->watch(listener);
    ASSERT_TRUE(run_until([&] { return !listener.there.empty(); }));
    EXPECT_EQ(listener.there.size(), 1U);
    EXPECT_EQ(listener.caught_up, 0);
    loop.run_once(Clock::now() + milliseconds{20});
    EXPECT_EQ(listener.there.size(), 2U);
    EXPECT_EQ(listener.caught_up, 0);
    loop.run_once(Clock::now() + milliseconds{20});
    EXPECT_EQ(listener.there.size(), 3U);
    EXPECT_EQ(listener.caught_up, 1);
}

TEST_F(Bus, AHandlerMayEndTheBus) {
    DirectoryRegistry board{where(), seconds{1}};
    for (const char* name : {"a", "b", "c"})
        board.put(name, to_text(of(name)));
    auto bus = open_bus(loop, where(), quick);
    listener.ends = &bus;
    bus->watch(listener);
    ASSERT_TRUE(run_until([&] { return bus == nullptr; }));
    EXPECT_EQ(listener.there.size(), 1U);
}

TEST_F(Bus, WhatIsNoBusIsRefusedAtOnce) {
    EXPECT_THROW(open_bus(loop, ""), std::invalid_argument);
    EXPECT_THROW(open_bus(loop, "zookeeper://host"), std::invalid_argument);
    EXPECT_THROW(open_bus(loop, where(), {.lease = milliseconds{1}}), std::invalid_argument);
    EXPECT_THROW(announce(loop, where(), of("../a"), listener), AnnouncementError);
}

TEST_F(Bus, ASimulatedBusReportsTheSame) {
    test::SimDiscovery bus{loop};
    bus.watch(listener);
    bus.announce(of("a"));
    bus.announce(of("b"));
    ASSERT_TRUE(run_until([&] { return listener.there.size() == 2; }));
    bus.partition();
    bus.expire("a");
    loop.run_once();
    EXPECT_EQ(listener.there.size(), 2U);
    bus.heal();
    ASSERT_TRUE(run_until([&] { return listener.there.size() == 1; }));
    EXPECT_THAT(listener.gone, ElementsAre("a"));
}

} // namespace
} // namespace netio::pubsub::bus_test
