// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

namespace apps::http_server_test {
namespace {

using testing::StartsWith;

// All bytes that the exchange sends.
std::string sent_by(HttpExchange& exchange, std::size_t at_once = 1000) {
    std::string sent;
    while (!exchange.rest().empty()) {
        sent += exchange.rest().substr(0, at_once);
        exchange.sent(std::min(at_once, exchange.rest().size()));
    }
    return sent;
}

TEST(HttpExchange, WantsWhatIsAskedForWhateverThePieces) {
    const std::string request = "GET /metrics?a=b HTTP/1.1\r\nHost: here\r\n\r\n";
    for (std::size_t piece = 1; piece <= request.size(); ++piece) {
        HttpExchange exchange;
        for (std::size_t at = 0; at < request.size(); at += piece) {
            EXPECT_EQ(exchange.path(), "");
            exchange.take(request.substr(at, piece));
        }
        EXPECT_EQ(exchange.path(), "/metrics");
        exchange.answer({.text = std::make_shared<const std::string>("12345")});
        EXPECT_EQ(exchange.path(), "");
        EXPECT_EQ(sent_by(exchange, piece),
                  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
                  "Connection: close\r\n\r\n12345");
    }
}

TEST(HttpExchange, RefusesWhatIsNoRequest) {
    for (const auto* const text :
         {"POST /metrics HTTP/1.1\r\n\r\n", "HEAD", "get /", "\r\n\r\n", "X"}) {
        HttpExchange exchange;
        exchange.take(text);
        EXPECT_THAT(sent_by(exchange), StartsWith("HTTP/1.1 405")) << text;
    }
    for (const auto* const text : {"GET  HTTP/1.1\r\n\r\n", "GET /\r\n\r\n", "GET / FTP/1\r\n\r\n",
                                   "GET x HTTP/1.1\r\n\r\n", "GET \r\n\r\n"}) {
        HttpExchange exchange;
        exchange.take(text);
        EXPECT_THAT(sent_by(exchange), StartsWith("HTTP/1.1 400")) << text;
    }
}

TEST(HttpExchange, RefusesWhatIsTooLongForARequest) {
    HttpExchange exchange;
    exchange.take("GET /");
    exchange.take(std::string(HttpExchange::request_limit_bytes - 6, 'x'));
    EXPECT_FALSE(exchange.is_answered());
    exchange.take(std::string(1U << 20, 'x'));
    EXPECT_THAT(sent_by(exchange), StartsWith("HTTP/1.1 431"));
}

TEST(HttpExchange, ReadsNothingAfterARequest) {
    HttpExchange exchange;
    exchange.take("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
    exchange.take("GET /c HTTP/1.1\r\n\r\n");
    EXPECT_EQ(exchange.path(), "/a");
}

using std::chrono::hours;
using std::chrono::milliseconds;

// A server in a thread with a fixed answer, which ends with the test.
class RunningServer {
  public:
    explicit RunningServer(HttpServer::Options options, std::size_t bytes = 10)
        : server_{with_address(std::move(options))},
          thread_{[this, text = std::make_shared<const std::string>(bytes, 'x')] {
              server_.run([&](std::span<const std::string> paths) {
                  return std::vector<HttpAnswer>(paths.size(), HttpAnswer{.text = text});
              });
          }} {}
    ~RunningServer() {
        server_.stop();
        thread_.join();
    }
    RunningServer(const RunningServer&) = delete;
    RunningServer& operator=(const RunningServer&) = delete;

    std::uint16_t port() const { return server_.port(); }
    Descriptor connect() const {
        Descriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
        const timeval far_deadline{.tv_sec = 60, .tv_usec = 0};
        ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &far_deadline, sizeof far_deadline);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(server_.port());
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(
            ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
        return socket;
    }

  private:
    static HttpServer::Options with_address(HttpServer::Options options) {
        if (options.addresses.empty())
            options.addresses = addresses_of({.host = "127.0.0.1", .port = 0});
        return options;
    }

    HttpServer server_;
    std::thread thread_;
};

void say(const Descriptor& socket, std::string_view text) {
    ASSERT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
}

// The number of bytes until the other side ends the connection.
std::size_t bytes_until_the_end(const Descriptor& socket) {
    std::vector<char> part(65536);
    std::size_t bytes = 0;
    ssize_t got = 0;
    while ((got = ::recv(socket.get(), part.data(), part.size(), 0)) > 0)
        bytes += static_cast<std::size_t>(got);
    if (got < 0) {
        EXPECT_NE(errno, EAGAIN) << "the connection is still open";
    }
    return bytes;
}

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

TEST(HttpServer, AClientThatDoesNotFinishItsRequestIsDisconnected) {
    const RunningServer server{{.request_timeout = milliseconds{1}}};
    const Descriptor silent = server.connect();
    const Descriptor slow = server.connect();
    say(slow, "GET /metrics HTTP/1.1\r\n");
    EXPECT_EQ(bytes_until_the_end(silent), 0U);
    EXPECT_EQ(bytes_until_the_end(slow), 0U);
}

TEST(HttpServer, AClientThatDoesNotReadItsAnswerIsDisconnected) {
    constexpr std::size_t bytes = std::size_t{64} << 20;
    const RunningServer server{{.request_timeout = hours{1}, .response_timeout = milliseconds{1}},
                               bytes};
    const std::ptrdiff_t before = open_descriptors();
    const Descriptor deaf = server.connect();
    say(deaf, "GET /metrics HTTP/1.1\r\n\r\n");
    char first = 0;
    ASSERT_EQ(::recv(deaf.get(), &first, 1, MSG_PEEK), 1);
    // Does not read before the other side has closed.
    while (open_descriptors() > before + 1)
        std::this_thread::yield();
    EXPECT_LT(bytes_until_the_end(deaf), bytes);
}

TEST(HttpServer, WithTooManyClientsTheOldestIsDisconnected) {
    const RunningServer server{{.client_limit = 2, .request_timeout = hours{1}}};
    const Descriptor first = server.connect();
    const Descriptor second = server.connect();
    const Descriptor third = server.connect();
    EXPECT_EQ(bytes_until_the_end(first), 0U);
    say(second, "GET / HTTP/1.1\r\n\r\n");
    EXPECT_GT(bytes_until_the_end(second), 10U);
    say(third, "GET / HTTP/1.1\r\n\r\n");
    EXPECT_GT(bytes_until_the_end(third), 10U);
}

// No machine has 192.0.2.1 (RFC 5737).
std::vector<SocketAddress> nowhere_and_here(std::uint16_t port) {
    std::vector<SocketAddress> addresses;
    for (const char* const host : {"192.0.2.1", "127.0.0.1", "127.0.0.2"})
        addresses.push_back(addresses_of({.host = host, .port = port}).front());
    return addresses;
}

TEST(HttpServer, UsesTheFirstLocalAddressOfAName) {
    const RunningServer server{{.addresses = nowhere_and_here(0)}};
    const Descriptor client = server.connect();
    say(client, "GET / HTTP/1.1\r\n\r\n");
    EXPECT_GT(bytes_until_the_end(client), 10U);
}

TEST(HttpServer, AUsedPortIsAnErrorAndNoOtherAddressIsTried) {
    const RunningServer other{{}};
    try {
        const HttpServer server{{.addresses = nowhere_and_here(other.port())}};
        ADD_FAILURE() << "it listens at another address";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "Address already in use");
    }
}

} // namespace

} // namespace apps::http_server_test
