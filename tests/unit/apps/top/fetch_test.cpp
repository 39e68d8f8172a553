// SPDX-License-Identifier: Apache-2.0
#include "apps/top/fetch.hpp"

#include "apps/common/descriptor.hpp"
#include "apps/metrics/http_door.hpp"
#include "tests/support/liar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

namespace apps::top {
namespace {

using netio::test::Liar;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

const netio::Address here{.host = "127.0.0.1", .port = 0};

std::string problem_with(std::span<const SocketAddress> addresses, const FetchLimits& limits = {}) {
    try {
        fetch_figures(addresses, limits, [](std::string_view) {});
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "none";
}
std::string problem_with(const netio::Address& address, const FetchLimits& limits = {}) {
    return problem_with(addresses_of(address), limits);
}

TEST(Fetch, TakesWhatAProgramShows) {
    HttpDoor door{{.addresses = addresses_of(here)}};
    std::thread thread{[&] {
        door.run([](std::span<const std::string> paths) {
            return std::vector<HttpAnswer>(
                paths.size(), {.text = std::make_shared<const std::string>("a 1\nb 2\n")});
        });
    }};
    std::string shown;
    fetch_figures(addresses_of({.host = "127.0.0.1", .port = door.port()}), {},
                  [&](std::string_view text) { shown = text; });
    EXPECT_EQ(shown, "a 1\nb 2\n");
    door.stop();
    thread.join();
}

// Nobody accepts there, and no more fit into its queue: who comes waits until the end.
class Deaf {
  public:
    Deaf() : listening_{::socket(AF_INET, SOCK_STREAM, 0)} {
        SocketAddress any = addresses_of(here).front();
        EXPECT_EQ(::bind(listening_.get(), any.get(), any.size()), 0);
        EXPECT_EQ(::listen(listening_.get(), 0), 0);
        sockaddr_in bound{};
        socklen_t size = sizeof bound;
        ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
        any.set_port(ntohs(bound.sin_port));
        address = any;
        // So many that nobody else gets in.
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

TEST(Fetch, OfANameWithSeveralAddressesOneThatAnswersIsEnough) {
    const Deaf deaf;
    std::uint16_t port = 0;
    {
        const HttpDoor gone{{.addresses = addresses_of(here)}};
        port = gone.port();
    }
    HttpDoor door{{.addresses = addresses_of(here)}};
    std::thread thread{[&] {
        door.run([](std::span<const std::string> paths) {
            return std::vector<HttpAnswer>(paths.size(),
                                           {.text = std::make_shared<const std::string>("a 1\n")});
        });
    }};
    std::vector<SocketAddress> addresses(3, deaf.address);
    addresses.front().set_port(port);
    addresses.back().set_port(door.port());
    std::string shown;
    fetch_figures(addresses, {.until = netio::Clock::now() + std::chrono::minutes{1}},
                  [&](std::string_view text) { shown = text; });
    EXPECT_EQ(shown, "a 1\n");
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
        const HttpDoor gone{{.addresses = addresses_of(here)}};
        port = gone.port();
    }
    EXPECT_THAT(problem_with({.host = "127.0.0.1", .port = port}), HasSubstr("refused"));
}

// Whichever says so first.
TEST(Fetch, SaysWhyTheBestAddressOfANameCannotBeReached) {
    std::uint16_t port = 0;
    {
        const HttpDoor gone{{.addresses = addresses_of(here)}};
        port = gone.port();
    }
    std::vector<SocketAddress> addresses = addresses_of({.host = "127.0.0.1", .port = port});
    addresses.push_back(addresses_of({.host = "255.255.255.255", .port = port}).front());
    EXPECT_THAT(problem_with(addresses), HasSubstr("refused"));
    std::swap(addresses.front(), addresses.back());
    EXPECT_THAT(problem_with(addresses), Not(HasSubstr("refused")));
}

} // namespace
} // namespace apps::top
