// SPDX-License-Identifier: Apache-2.0
// A subscriber in a program with its own epoll loop and its own timer: foreign_loop HOST:PORT
#include "netio/fabric.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <cstdio>
#include <exception>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <system_error>
#include <unistd.h>

namespace pubsub = netio::pubsub;

struct Counting final : pubsub::SubscribeSocket::Handler {
    void on_message(pubsub::SubscribeSocket&, pubsub::Fid, std::span<const std::byte>,
                    std::uint8_t) override {
        ++messages;
    }
    void on_closed(pubsub::SubscribeSocket&, const netio::Closed& closed, bool retrying) override {
        ended = !retrying;
        failed = closed.reason != netio::CloseReason::orderly;
    }
    unsigned long long messages = 0;
    bool ended = false;
    bool failed = false;
};

// The program's own loop: a level-triggered epoll.
class Epoll {
  public:
    Epoll() : epoll_{require(epoll_create1(EPOLL_CLOEXEC))} {}
    ~Epoll() { close(epoll_); }
    Epoll(const Epoll&) = delete;
    Epoll& operator=(const Epoll&) = delete;

    void add(int descriptor) const {
        epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
        require(epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event));
    }
    int wait() const {
        epoll_event event{};
        return epoll_wait(epoll_, &event, 1, -1) == 1 ? event.data.fd : -1;
    }
    static int require(int result) {
        if (result < 0) throw std::system_error{errno, std::system_category()};
        return result;
    }

  private:
    int epoll_;
};

int main(int argc, char** argv) try {
    const Epoll epoll;
    const int timer = Epoll::require(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    const itimerspec every_10_ms{.it_interval = {0, 10'000'000}, .it_value = {0, 10'000'000}};
    Epoll::require(timerfd_settime(timer, 0, &every_10_ms, nullptr));
    epoll.add(timer);

    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Counting counting;
    pubsub::SubscribeSocket::Options options;
    options.publisher = netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345");
    pubsub::SubscribeSocket socket{*transport, options, counting};
    socket.subscribe({0, 63});
    epoll.add(loop.pollable_fd());
    // Called at the beginning, and after every call into the library from outside of its handlers.
    // A call takes at most a few milliseconds; if work is left, the descriptor stays readable.
    loop.dispatch();
    unsigned long long ticks = 0;
    while (!counting.ended) {
        if (epoll.wait() == timer) {
            std::uint64_t expirations = 0;
            if (read(timer, &expirations, sizeof expirations) > 0) ticks += expirations;
        } else {
            loop.dispatch();
        }
    }
    close(timer);
    std::printf("%llu messages, while the timer fired %llu times\n", counting.messages, ticks);
    return counting.failed ? 1 : 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "foreign_loop: %s\n", error.what());
    return 1;
}
