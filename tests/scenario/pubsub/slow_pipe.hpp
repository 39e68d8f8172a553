// SPDX-License-Identifier: Apache-2.0
#pragma once

// A path on which the first bytes from the client arrive in two parts with a pause between: as in a
// network that delivers a handshake in two segments.

#include "netio/loop/event_loop.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace netio::pubsub::test {

class SlowPipe {
  public:
    // The first `first_bytes` bytes of the client arrive at once, the others `gap` later.
    SlowPipe(const netio::Address& to, std::size_t first_bytes, std::chrono::milliseconds gap)
        : to_{to}, first_bytes_{first_bytes}, gap_{gap},
          listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}, stop_{::eventfd(
                                                                           0, EFD_CLOEXEC)} {
        sockaddr address = make_sockaddr("127.0.0.1", 0);
        EXPECT_EQ(::bind(listener_, &address, sizeof(sockaddr_in)), 0);
        EXPECT_EQ(::listen(listener_, 4), 0);
        sockaddr_in bound{};
        socklen_t size = sizeof bound;
        sockaddr generic{};
        EXPECT_EQ(::getsockname(listener_, &generic, &size), 0);
        std::memcpy(&bound, &generic, sizeof bound);
        address_ = {.host = "127.0.0.1", .port = ntohs(bound.sin_port)};
        thread_ = std::thread{[this] { carry(); }};
    }
    ~SlowPipe() {
        const std::uint64_t one = 1;
        EXPECT_EQ(::write(stop_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
        thread_.join();
        ::close(listener_);
        ::close(stop_);
    }
    SlowPipe(const SlowPipe&) = delete;
    SlowPipe& operator=(const SlowPipe&) = delete;

    const netio::Address& address() const { return address_; }

  private:
    static sockaddr make_sockaddr(const std::string& host, std::uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
        sockaddr generic{};
        std::memcpy(&generic, &address, sizeof address);
        return generic;
    }
    // Returns whether one of the two has data to read; false: stop.
    bool wait(std::array<pollfd, 3>& fds, int timeout_ms) const {
        fds[2] = {.fd = stop_, .events = POLLIN, .revents = 0};
        return ::poll(fds.data(), fds.size(), timeout_ms) >= 0 && (fds[2].revents & POLLIN) == 0;
    }
    static bool send_all(int fd, const char* data, std::size_t size) {
        while (size > 0) {
            const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);
            if (sent <= 0) return false;
            data += sent;
            size -= static_cast<std::size_t>(sent);
        }
        return true;
    }
    void carry() {
        std::array<pollfd, 3> fds{pollfd{.fd = listener_, .events = POLLIN, .revents = 0},
                                  pollfd{.fd = -1, .events = 0, .revents = 0}, pollfd{}};
        if (!wait(fds, -1)) return;
        const int client = ::accept(listener_, nullptr, nullptr);
        const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr target = make_sockaddr(to_.host, to_.port);
        if (::connect(server, &target, sizeof(sockaddr_in)) == 0) forward(client, server);
        ::close(client);
        ::close(server);
    }
    void forward(int client, int server) {
        std::array<char, 65536> bytes;
        bool first = true;
        std::array<pollfd, 3> fds{};
        for (;;) {
            fds[0] = {.fd = client, .events = POLLIN, .revents = 0};
            fds[1] = {.fd = server, .events = POLLIN, .revents = 0};
            if (!wait(fds, -1)) return;
            for (const auto& [from, to] : {std::pair{client, server}, std::pair{server, client}}) {
                const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
                if (got == 0) return;
                if (got < 0) continue;
                auto size = static_cast<std::size_t>(got);
                std::size_t done = 0;
                if (first && from == client && size > first_bytes_) {
                    first = false;
                    done = first_bytes_;
                    if (!send_all(to, bytes.data(), done)) return;
                    fds[0].fd = fds[1].fd = -1;
                    if (!wait(fds, static_cast<int>(gap_.count()))) return;
                }
                if (!send_all(to, bytes.data() + done, size - done)) return;
            }
        }
    }

    netio::Address to_;
    std::size_t first_bytes_;
    std::chrono::milliseconds gap_;
    int listener_;
    int stop_;
    netio::Address address_;
    std::thread thread_;
};

} // namespace netio::pubsub::test
