// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/http_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace apps {
namespace {

using testing::StartsWith;

// All that is to be sent.
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

TEST(HttpExchange, TakesNothingBehindARequest) {
    HttpExchange exchange;
    exchange.take("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
    exchange.take("GET /c HTTP/1.1\r\n\r\n");
    EXPECT_EQ(exchange.path(), "/a");
}

} // namespace
} // namespace apps
