// SPDX-License-Identifier: Apache-2.0
#pragma once

// A server on a port of its own that sends fixed bytes to every client that connects.

#include "apps/common/io.hpp"
#include "netio/base/status.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

namespace netio::test {

// Sends the same bytes to every client, repeatedly if requested, and keeps the connection open.
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
        const apps::Descriptor visitor{::accept(listening_.get(), nullptr, nullptr)};
        do {
            if (::send(visitor.get(), text_.data(), text_.size(), MSG_NOSIGNAL) <= 0) return;
        } while (for_ever);
        char byte = 0;
        while (!ended_ && ::recv(visitor.get(), &byte, 1, 0) > 0) {
        }
    }

    apps::Descriptor listening_;
    std::string text_;
    std::atomic<bool> ended_ = false;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

} // namespace netio::test
