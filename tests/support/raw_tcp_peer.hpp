// SPDX-License-Identifier: Apache-2.0
#pragma once

// A hand-made peer: it sends packets of libfabric's tcp provider (wire format 3) on a plain socket,
// both valid and invalid ones. It reads only on request and never blocks the test.

#include "netio/base/endpoint.hpp"
#include "netio/base/wire.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::test {

class RawTcpPeer {
  public:
    // The operation in a packet.
    enum Operation : std::uint8_t { message = 0, tagged = 1, read = 2, read_answer = 3, write = 4 };
    enum Flag : std::uint16_t { with_data = 1, confirm = 4 };
    struct Packet {
        Operation operation = message;
        std::uint16_t flags = 0;
        std::uint8_t kind = 0; // 2: an acknowledgement
    };

    explicit RawTcpPeer(const Address& address)
        : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(address.port);
        EXPECT_EQ(::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr), 1);
        EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    }
    // Takes ownership of an accepted connection.
    explicit RawTcpPeer(int fd) : fd_{fd} {}
    ~RawTcpPeer() {
        if (fd_ >= 0) ::close(fd_);
    }
    RawTcpPeer(RawTcpPeer&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    RawTcpPeer(const RawTcpPeer&) = delete;
    RawTcpPeer& operator=(const RawTcpPeer&) = delete;

    // A connection request of the full length that the provider reads, with `data` inside.
    void request(std::span<const std::byte> data) const {
        constexpr std::size_t header_bytes = 32;
        constexpr std::size_t data_bytes = 256;
        std::vector<std::byte> bytes(header_bytes + data_bytes);
        bytes[0] = std::byte{3};                // version
        bytes[2] = std::byte{data_bytes / 256}; // in network byte order
        bytes[24] = std::byte{1};               // our byte order is the host's
        std::ranges::copy(data, bytes.begin() + header_bytes);
        EXPECT_EQ(send(bytes), bytes.size());
    }
    // The answer that accepts a connection request.
    void accept_request(std::span<const std::byte> data) const {
        const std::vector<std::byte> bytes = accept_message(data);
        EXPECT_EQ(send(bytes), bytes.size());
    }
    static std::vector<std::byte> accept_message(std::span<const std::byte> data) {
        constexpr std::size_t header_bytes = 32;
        std::vector<std::byte> bytes(header_bytes + data.size());
        bytes[0] = std::byte{3};                        // version
        bytes[1] = std::byte{1};                        // accepted
        bytes[3] = static_cast<std::byte>(data.size()); // in network byte order
        bytes[24] = std::byte{1};                       // our byte order
        std::ranges::copy(data, bytes.begin() + header_bytes);
        return bytes;
    }
    static std::vector<std::byte> packet(const Packet& packet,
                                         std::span<const std::byte> body = {}) {
        const std::size_t header_bytes = (packet.flags & with_data) != 0 ? 24 : 16;
        std::vector<std::byte> bytes(header_bytes + body.size());
        bytes[0] = std::byte{3};
        bytes[1] = std::byte{packet.operation};
        wire::store(bytes.data() + 2, packet.flags);
        bytes[4] = std::byte{packet.kind};
        bytes[6] = static_cast<std::byte>(header_bytes);
        wire::store(bytes.data() + 8, static_cast<std::uint64_t>(bytes.size()));
        std::ranges::copy(body, bytes.begin() + static_cast<std::ptrdiff_t>(header_bytes));
        return bytes;
    }

    // Returns how many bytes the other side's kernel accepted.
    std::size_t send(std::span<const std::byte> bytes) const {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        return sent > 0 ? static_cast<std::size_t>(sent) : 0;
    }
    void shutdown_send() const { ::shutdown(fd_, SHUT_WR); }
    // Returns the bytes that have arrived, at most `limit`.
    std::size_t receive(std::size_t limit) const {
        std::vector<std::byte> bytes(limit);
        const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
        return got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    // Returns whether the other side has closed the connection.
    bool is_cut_off() const {
        pollfd wanted{.fd = fd_, .events = POLLRDHUP, .revents = 0};
        return ::poll(&wanted, 1, 0) == 1;
    }

  private:
    int fd_;
};

// A listener to which the library connects.
class RawTcpHost {
  public:
    RawTcpHost() : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)} {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&at), size), 0);
        EXPECT_EQ(::listen(fd_, 512), 0);
        EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
        port_ = ntohs(at.sin_port);
    }
    ~RawTcpHost() { ::close(fd_); }
    RawTcpHost(const RawTcpHost&) = delete;
    RawTcpHost& operator=(const RawTcpHost&) = delete;

    Address address() const { return {.host = "127.0.0.1", .port = port_}; }
    // Returns the peer that has connected, if there is one.
    void accept(std::optional<RawTcpPeer>& peer) const {
        const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0) peer.emplace(fd);
    }

  private:
    int fd_;
    std::uint16_t port_ = 0;
};

} // namespace netio::test
