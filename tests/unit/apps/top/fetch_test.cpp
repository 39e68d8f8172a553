// SPDX-License-Identifier: Apache-2.0
#include "apps/top/fetch.hpp"

#include "apps/metrics/http_door.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

namespace apps::top {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// Says the same to everybody, again and again if that is wanted, and stays.
class Liar {
  public:
    Liar(std::string text, bool for_ever)
        : listening_{::socket(AF_INET, SOCK_STREAM, 0)}, text_{std::move(text)} {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(
            ::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
        EXPECT_EQ(::listen(listening_.get(), 1), 0);
        socklen_t size = sizeof address;
        ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread{[this, for_ever] { serve(for_ever); }};
    }
    ~Liar() {
        ended_ = true;
        ::shutdown(listening_.get(), SHUT_RDWR);
        thread_.join();
    }
    Liar(const Liar&) = delete;
    Liar& operator=(const Liar&) = delete;
    netio::Address address() const { return {.host = "127.0.0.1", .port = port_}; }

  private:
    void serve(bool for_ever) {
        const Descriptor visitor{::accept(listening_.get(), nullptr, nullptr)};
        do {
            if (::send(visitor.get(), text_.data(), text_.size(), MSG_NOSIGNAL) <= 0) return;
        } while (for_ever);
        char byte = 0;
        while (!ended_ && ::recv(visitor.get(), &byte, 1, 0) > 0) {
        }
    }

    Descriptor listening_;
    std::string text_;
    std::atomic<bool> ended_ = false;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

std::string problem_with(const netio::Address& address, const FetchLimits& limits = {}) {
    try {
        fetch_figures(address, limits);
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
    EXPECT_EQ(fetch_figures({.host = "127.0.0.1", .port = door.port()}), "a 1\nb 2\n");
    door.stop();
    thread.join();
}

TEST(Fetch, ReadsNoMoreThanItsLimitOfWhateverIsEndless) {
    for (const char* const endless :
         {"HTTP/1.1 200 OK\r\n\r\nxxxxxxxxxx", "HTTP/1.1 200 OK\r\nX: y\r\n", "x"}) {
        const Liar liar{endless, true};
        EXPECT_THAT(problem_with(liar.address(),
                                 {.patience = milliseconds{60'000}, .answer_bytes = 1 << 14}),
                    HasSubstr("too long"));
    }
}

TEST(Fetch, WaitsNoLongerThanItsPatienceForWhoSaysNothingMore) {
    const Liar liar{"HTTP/1.1 200 OK\r\n\r\nx", false};
    EXPECT_THAT(problem_with(liar.address(), {.patience = milliseconds{20}}), HasSubstr("in time"));
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
