// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/metrics.hpp"

#include "apps/metrics/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace apps::metrics_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

const netio::Address any_port{.host = "127.0.0.1", .port = 0};

int connected_to(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
}

std::string answer_to(std::uint16_t port, const std::string& request) {
    const int socket = connected_to(port);
    EXPECT_EQ(::send(socket, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = ::recv(socket, part.data(), part.size(), 0)) > 0;)
        answer.append(part.data(), static_cast<std::size_t>(size));
    ::close(socket);
    return answer;
}

std::string get(std::uint16_t port, const std::string& path) {
    return answer_to(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

// Runs the loop until `ask` has its answer.
std::string while_running(netio::EventLoop& loop, const std::function<std::string()>& ask) {
    std::string answer;
    std::thread thread{[&] {
        answer = ask();
        loop.stop();
    }};
    loop.run();
    thread.join();
    return answer;
}

TEST(MetricsServer, ShowsWhatTheLoopCollects) {
    netio::EventLoop loop;
    int asked = 0;
    MetricsServer server{loop, {.address = any_port}, [&] {
                             return [number = ++asked] { return std::to_string(number) + "\n"; };
                         }};
    const std::string first = while_running(loop, [&] { return get(server.port(), "/metrics"); });
    EXPECT_THAT(first, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(first, HasSubstr("text/plain; version=0.0.4"));
    EXPECT_THAT(first, testing::EndsWith("\r\n\r\n1\n"));
    const std::string second = while_running(loop, [&] { return get(server.port(), "/metrics"); });
    EXPECT_THAT(second, testing::EndsWith("\r\n\r\n2\n"));
    EXPECT_THAT(while_running(loop, [&] { return get(server.port(), "/healthz"); }),
                testing::EndsWith("ok\n"));
    EXPECT_THAT(while_running(loop, [&] { return get(server.port(), "/other"); }),
                StartsWith("HTTP/1.1 404"));
    EXPECT_THAT(while_running(loop, [&] { return get(server.port(), "/metrics?all=yes"); }),
                testing::EndsWith("\r\n\r\n4\n"));
}

TEST(MetricsServer, AnswersWithAnErrorIfTheLoopDoesNotRun) {
    netio::EventLoop loop; // does not run
    MetricsServer server{loop, {.address = any_port, .answer_timeout = milliseconds{1}}, [] {
                             return [] { return std::string{}; };
                         }};
    EXPECT_THAT(get(server.port(), "/metrics"), StartsWith("HTTP/1.1 503"));
    EXPECT_THAT(get(server.port(), "/healthz"), StartsWith("HTTP/1.1 503"));
}

TEST(MetricsServer, UsesItsPortExclusively) {
    netio::EventLoop loop;
    const auto nothing = [] { return [] { return std::string{}; }; };
    const MetricsServer server{loop, {.address = any_port}, nothing};
    const MetricsServer::Options same{.address = {.host = "127.0.0.1", .port = server.port()}};
    try {
        const MetricsServer another{loop, same, nothing};
        FAIL() << "the port is in use";
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("in use"));
        EXPECT_THAT(error.what(), HasSubstr(std::to_string(server.port())));
    }
}

TEST(MetricsServer, IsNotShownToOtherMachinesUnlessThatIsMeant) {
    netio::EventLoop loop;
    const auto nothing = [] { return [] { return std::string{}; }; };
    for (const char* const host : {"0.0.0.0", "::"}) {
        try {
            const MetricsServer server{loop, {.address = {.host = host, .port = 0}}, nothing};
            FAIL() << host;
        } catch (const std::runtime_error& error) {
            EXPECT_THAT(error.what(), HasSubstr("--metrics-allow-remote-anonymous"));
        }
    }
    const MetricsServer open{
        loop, {.address = {.host = "0.0.0.0", .port = 0}, .allow_remote_anonymous = true}, nothing};
    EXPECT_GT(open.port(), 0);
}

// The clients request a large text and do not read it.
TEST(MetricsServer, ClientsThatDoNotReadDoNotBlockTheLoop) {
    netio::EventLoop loop;
    std::atomic<int> made = 0;
    std::atomic<bool> made_in_the_loop = false;
    MetricsServer server{loop, {.address = any_port}, [&, here = std::this_thread::get_id()] {
                             return [&, here] {
                                 ++made;
                                 if (std::this_thread::get_id() == here) made_in_the_loop = true;
                                 return std::string(std::size_t{16} << 20, 'x');
                             };
                         }};
    std::vector<int> sockets;
    for (int i = 0; i < 4; ++i) {
        sockets.push_back(connected_to(server.port()));
        const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
        ASSERT_GT(::send(sockets.back(), request.data(), request.size(), MSG_NOSIGNAL), 0);
    }
    int turns_behind = 0; // since the first client's text was made
    netio::Timer tick{loop, [&] {
                          if (made >= 1) ++turns_behind;
                          turns_behind < 3 ? tick.start(milliseconds{1}) : loop.stop();
                      }};
    tick.start(milliseconds{1});
    loop.run();
    EXPECT_FALSE(made_in_the_loop);
    EXPECT_THAT(while_running(loop, [&] { return get(server.port(), "/healthz"); }),
                StartsWith("HTTP/1.1 200"));
    for (const int socket : sockets)
        ::close(socket);
}

// Three times as many clients as slots, each with an incomplete request.
TEST(MetricsServer, AnswersThoughManyAskSlowly) {
    netio::EventLoop loop;
    const MetricsServer server{
        loop, {.address = any_port}, [] { return [] { return std::string{"metrics\n"}; }; }};
    std::vector<int> sockets;
    for (int i = 0; i < 48; ++i) {
        sockets.push_back(connected_to(server.port()));
        ASSERT_EQ(::send(sockets.back(), "GET /m", 6, MSG_NOSIGNAL), 6);
    }
    EXPECT_THAT(while_running(loop, [&] { return get(server.port(), "/metrics"); }),
                testing::EndsWith("metrics\n"));
    for (const int socket : sockets)
        ::close(socket);
}

TEST(MetricsServer, ReadsNoMoreThanARequest) {
    netio::EventLoop loop;
    const MetricsServer server{
        loop, {.address = any_port}, [] { return [] { return std::string{}; }; }};
    const std::string megabyte(std::size_t{1} << 20, 'x');
    for (const std::string& endless :
         {megabyte, "GET /" + megabyte, "GET / HTTP/1.1\r\nX: " + megabyte,
          "POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + megabyte}) {
        const int socket = connected_to(server.port());
        // The server closes after the maximum size of a request; then send() fails.
        while (::send(socket, endless.data(), endless.size(), MSG_NOSIGNAL) > 0) {
        }
        ::close(socket);
    }
}

TEST(MetricsServer, AnInterfaceStandsForItsAddress) {
    EXPECT_EQ(metrics_address({.listen = "lo:9345"}), (netio::Address{"127.0.0.1", 9345}));
    EXPECT_EQ(metrics_address({.listen = "[::1]:1"}), (netio::Address{"::1", 1}));
    EXPECT_EQ(metrics_address({.listen = "localhost:0"}), (netio::Address{"localhost", 0}));
    netio::EventLoop loop;
    EXPECT_NE(show_metrics(loop, {.listen = "lo:0"}, nullptr), nullptr);
}

TEST(MetricsServer, CanBeDestroyedDuringAnAnswer) {
    netio::EventLoop loop; // does not run
    auto server = std::make_unique<MetricsServer>(
        loop, MetricsServer::Options{.address = any_port, .answer_timeout = hours{1}},
        [] { return [] { return std::string{}; }; });
    const int silent = connected_to(server->port());
    const int asking = connected_to(server->port());
    const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
    ASSERT_GT(::send(asking, request.data(), request.size(), MSG_NOSIGNAL), 0);
    server.reset();
    std::array<char, 16> part{};
    EXPECT_NE(::recv(asking, part.data(), part.size(), 0), EAGAIN) << "an answer, or the end";
    ::close(silent);
    ::close(asking);
    loop.run_once(); // the posted task must not use the destroyed server
}

} // namespace
} // namespace apps::metrics_test
