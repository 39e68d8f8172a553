// SPDX-License-Identifier: Apache-2.0
#include "apps/common/io.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/top/top.hpp"
#include "tests/support/liar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <stdexcept>
#include <thread>

namespace apps::top::look_test {
namespace {

using testing::HasSubstr;

// Resolves all names but those that begin with 'no'; names that begin with 'slow' only after `end`.
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

TEST(NameSearch, FindsTheAddressesOfANameOrReportsWhyNot) {
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
    EXPECT_EQ(server.asked, 1) << "a late answer serves the next call";
    EXPECT_EQ(problem_with(names, "slow", far()), "none");
    EXPECT_EQ(server.asked, 2) << "and no call after it";
}

TEST(NameSearch, LimitsConcurrentNamesAndNeedsNoneForAddresses) {
    NameServer server;
    NameSearch names{server.resolve(), 2};
    for (const char* const host : {"slow1", "slow2"})
        EXPECT_THAT(problem_with(names, host, soon()), HasSubstr("not resolved in time"));
    EXPECT_THAT(problem_with(names, "somewhere", soon()), HasSubstr("too many names"));
    for (const char* const host : {"127.0.0.1", "::1"})
        EXPECT_EQ(problem_with(names, host, soon()), "none");
    server.end.set_value();
    // A waiting name is resolved when a slot becomes free.
    EXPECT_EQ(problem_with(names, "somewhere", far()), "none");
    EXPECT_EQ(server.asked, 3);
}

TEST(NameSearch, APendingLookUpMayOutliveIt) {
    NameServer server;
    {
        NameSearch names{server.resolve()};
        EXPECT_THAT(problem_with(names, "slow", soon()), HasSubstr("not resolved in time"));
    }
    server.end.set_value();
    while (server.answered == 0)
        std::this_thread::yield();
}

using netio::test::Liar;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

const netio::Address here{.host = "127.0.0.1", .port = 0};

std::string problem_with(std::span<const SocketAddress> addresses, const FetchLimits& limits = {}) {
    try {
        fetch_metrics(addresses, limits, [](std::string_view) {});
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "none";
}
std::string problem_with(const netio::Address& address, const FetchLimits& limits = {}) {
    return problem_with(addresses_of(address), limits);
}

TEST(Fetch, TakesWhatAProgramShows) {
    HttpServer server{{.addresses = addresses_of(here)}};
    std::thread thread{[&] {
        server.run([](std::span<const std::string> paths) {
            return std::vector<HttpAnswer>(
                paths.size(), {.text = std::make_shared<const std::string>("a 1\nb 2\n")});
        });
    }};
    std::string shown;
    fetch_metrics(addresses_of({.host = "127.0.0.1", .port = server.port()}), {},
                  [&](std::string_view text) { shown = text; });
    EXPECT_EQ(shown, "a 1\nb 2\n");
    server.stop();
    thread.join();
}

// Never accepts, and its queue is full: a connecting client waits until its time limit.
class FullServer {
  public:
    FullServer() : listening_{::socket(AF_INET, SOCK_STREAM, 0)} {
        SocketAddress any = addresses_of(here).front();
        EXPECT_EQ(::bind(listening_.get(), any.get(), any.size()), 0);
        EXPECT_EQ(::listen(listening_.get(), 0), 0);
        sockaddr_in bound{};
        socklen_t size = sizeof bound;
        ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
        any.set_port(ntohs(bound.sin_port));
        address = any;
        // Fills the queue.
        for (bool taken = true; taken;) {
            queue_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
            static_cast<void>(::connect(queue_.back().get(), any.get(), any.size()));
            pollfd watched{.fd = queue_.back().get(), .events = POLLOUT, .revents = 0};
            taken = ::poll(&watched, 1, 100) > 0;
        }
    }

    SocketAddress address = addresses_of(here).front();

  private:
    Descriptor listening_;
    std::vector<Descriptor> queue_;
};

TEST(Fetch, OneWorkingAddressOfANameIsEnough) {
    const FullServer full_server;
    std::uint16_t port = 0;
    {
        const HttpServer gone{{.addresses = addresses_of(here)}};
        port = gone.port();
    }
    HttpServer server{{.addresses = addresses_of(here)}};
    std::thread thread{[&] {
        server.run([](std::span<const std::string> paths) {
            return std::vector<HttpAnswer>(paths.size(),
                                           {.text = std::make_shared<const std::string>("a 1\n")});
        });
    }};
    std::vector<SocketAddress> addresses(3, full_server.address);
    addresses.front().set_port(port);
    addresses.back().set_port(server.port());
    std::string shown;
    fetch_metrics(addresses, {.until = netio::Clock::now() + std::chrono::minutes{1}},
                  [&](std::string_view text) { shown = text; });
    EXPECT_EQ(shown, "a 1\n");
    server.stop();
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

TEST(Fetch, ReadsWithinTheSharedBudgetAndReleasesIt) {
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

TEST(Fetch, AnIncompleteAnswerEndsAtTheTimeLimit) {
    const Liar liar{"HTTP/1.1 200 OK\r\n\r\nx", false};
    EXPECT_THAT(problem_with(liar.address(), {.until = netio::Clock::now() + milliseconds{20}}),
                HasSubstr("in time"));
}

TEST(Fetch, ReportsWhyThereAreNoMetrics) {
    std::uint16_t port = 0;
    {
        const HttpServer gone{{.addresses = addresses_of(here)}};
        port = gone.port();
    }
    EXPECT_THAT(problem_with({.host = "127.0.0.1", .port = port}), HasSubstr("refused"));
}

// The error comes from the first of the two addresses.
TEST(Fetch, ReportsTheErrorOfTheBestAddress) {
    std::uint16_t port = 0;
    {
        const HttpServer gone{{.addresses = addresses_of(here)}};
        port = gone.port();
    }
    std::vector<SocketAddress> addresses = addresses_of({.host = "127.0.0.1", .port = port});
    addresses.push_back(addresses_of({.host = "255.255.255.255", .port = port}).front());
    EXPECT_THAT(problem_with(addresses), HasSubstr("refused"));
    std::swap(addresses.front(), addresses.back());
    EXPECT_THAT(problem_with(addresses), Not(HasSubstr("refused")));
}

using testing::HasSubstr;

// Accepts `together` connections, sends nothing, then closes all of them.
class SilentServer {
  public:
    SilentServer(std::size_t together, std::size_t rounds)
        : listening_{::socket(AF_INET, SOCK_STREAM, 0)} {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const general = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(listening_.get(), general, size), 0);
        EXPECT_EQ(::listen(listening_.get(), 64), 0);
        ::getsockname(listening_.get(), general, &size);
        where = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
        thread_ = std::thread{[this, together, rounds] { serve(together, rounds); }};
    }
    ~SilentServer() {
        ::shutdown(listening_.get(), SHUT_RDWR);
        thread_.join();
    }
    SilentServer(const SilentServer&) = delete;
    SilentServer& operator=(const SilentServer&) = delete;

    std::string where;
    std::atomic<bool> were_more = false; // more connections than `together` at the same time

  private:
    void serve(std::size_t together, std::size_t rounds) {
        for (std::size_t round = 0; round < rounds; ++round) {
            std::vector<Descriptor> clients;
            while (clients.size() < together) {
                clients.emplace_back(::accept(listening_.get(), nullptr, nullptr));
                if (!clients.back().is_open()) return;
            }
            pollfd another{.fd = listening_.get(), .events = POLLIN, .revents = 0};
            if (::poll(&another, 1, 0) > 0) were_more = true;
        }
    }

    Descriptor listening_;
    std::thread thread_;
};

// Long enough for a slow machine; sequential requests would use up all of it.
AskLimits within_a_minute(std::size_t at_once) {
    return {.each = {.until = netio::Clock::now() + std::chrono::minutes{1}}, .at_once = at_once};
}

TEST(Asking, ServersDoNotWaitForEachOther) {
    const SilentServer silent_server{5, 1};
    HttpServer server{{.addresses = addresses_of({.host = "127.0.0.1", .port = 0})}};
    std::thread thread{[&] {
        server.run([](std::span<const std::string> paths) {
            return std::vector<HttpAnswer>(
                paths.size(), {.text = std::make_shared<const std::string>("netio_info 1\n")});
        });
    }};
    std::vector<std::string> sources(5, silent_server.where);
    sources.push_back("127.0.0.1:" + std::to_string(server.port()));
    sources.emplace_back("nonsense");
    NameSearch names;
    const std::vector<Look> looks = look_at(sources, names, within_a_minute(128));
    ASSERT_EQ(looks.size(), sources.size());
    for (std::size_t i = 0; i < looks.size(); ++i)
        EXPECT_EQ(looks[i].source, sources[i]);
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_THAT(looks[i].error, testing::Not(HasSubstr("not in time")));
    EXPECT_EQ(looks[5].error, "");
    EXPECT_THAT(looks[6].error, HasSubstr("HOST:PORT"));
    server.stop();
    thread.join();
}

TEST(Asking, AServerOfAnotherKindIsNotTakenForAnIdleProgram) {
    HttpServer server{{.addresses = addresses_of(here)}};
    std::thread thread{[&] {
        server.run([](std::span<const std::string> paths) {
            return std::vector<HttpAnswer>(paths.size(),
                                           {.text = std::make_shared<const std::string>("a 1\n")});
        });
    }};
    NameSearch names;
    const std::vector<Look> looks =
        look_at({"127.0.0.1:" + std::to_string(server.port())}, names, within_a_minute(1));
    EXPECT_THAT(looks.front().error, HasSubstr("no figure of netio"));
    server.stop();
    thread.join();
}

TEST(Asking, NoMoreAreAskedAtOnceThanTheLimit) {
    const SilentServer silent_server{2, 3};
    NameSearch names;
    const std::vector<Look> looks =
        look_at(std::vector<std::string>(6, silent_server.where), names, within_a_minute(2));
    EXPECT_FALSE(silent_server.were_more);
    for (const Look& look : looks)
        EXPECT_THAT(look.error, testing::Not(HasSubstr("not in time")));
}

TEST(Asking, ReportsServersNotAskedInTime) {
    const SilentServer silent_server{100, 1};
    NameSearch names;
    const std::vector<Look> looks = look_at(
        std::vector<std::string>(3, silent_server.where), names,
        {.each = {.until = netio::Clock::now() + std::chrono::milliseconds{20}}, .at_once = 1});
    for (const Look& look : looks)
        EXPECT_THAT(look.error, HasSubstr("not in time"));
}

TEST(Asking, ABlockedNameServerDelaysNoOtherServer) {
    std::promise<void> end; // ends the silence of the name server
    NameSearch names{[ended = end.get_future().share()](const std::string&) {
        ended.wait();
        return std::vector<SocketAddress>{};
    }};
    const SilentServer silent_server{1, 1};
    const std::vector<Look> looks =
        look_at({"somewhere.else:1", silent_server.where}, names,
                {.each = {.until = netio::Clock::now() + std::chrono::milliseconds{20}}});
    EXPECT_EQ(looks[0].error, "no answer: its name was not resolved in time");
    EXPECT_THAT(looks[1].error, testing::Not(HasSubstr("name")));
    end.set_value();
}

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;

class BusSourcesTest : public testing::Test {
  protected:
    BusSourcesTest() { fs::create_directories(bus); }
    ~BusSourcesTest() override { fs::remove_all(bus); }
    void announce(const std::string& name, const std::string& host,
                  const std::string& metrics) const {
        std::ofstream{fs::path{bus} / (name + ".netio")} << to_text(netio::pubsub::Announcement{
            .name = name, .instance = 1, .host = host, .pid = 1, .metrics = metrics});
    }

    std::string bus = testing::TempDir() + "netio_bus_sources_" + std::to_string(::getpid());
};

TEST_F(BusSourcesTest, WhatOnlyAnotherMachineReachesIsNotAskedHere) {
    const std::string this_host = netio::pubsub::this_host();
    announce("a-here", this_host, "127.0.0.1:9001");
    announce("b-there", this_host + "-2", "127.0.0.1:9002");
    announce("c-there", this_host + "-2", "10.0.0.1:9003");
    announce("d-nowhere", this_host + "-2", "");
    announce("e-there", this_host + "-2", "[::1]:9004");
    announce("f-unsaid", "", "127.0.0.1:9005");
    netio::EventLoop loop;
    BusSources sources{loop, bus};
    ASSERT_TRUE(sources.read());
    const auto is = [](const std::string& name, const std::string& address) {
        return AllOf(Field(&Source::name, name), Field(&Source::address, address));
    };
    EXPECT_THAT(sources.sources(),
                ElementsAre(is("a-here", "127.0.0.1:9001"), is("c-there", "10.0.0.1:9003"),
                            is("f-unsaid", "127.0.0.1:9005")));
}

} // namespace

} // namespace apps::top::look_test
