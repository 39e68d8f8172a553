// SPDX-License-Identifier: Apache-2.0
#pragma once

// Misbehaving clients: one uses plain TCP, the other completes the handshake and then sends any
// bytes.

#include "netio/base/frame.hpp"
#include "netio/base/wire.hpp"
#include "netio/session/handshake.hpp"
#include "netio/transport.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::test {

// A TCP connection of an unauthenticated peer. It never blocks the test: bytes that the other side
// does not accept are not sent.
class RawClient {
  public:
    explicit RawClient(const netio::Address& address)
        : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(address.port);
        EXPECT_EQ(::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr), 1);
        sockaddr generic{};
        std::memcpy(&generic, &to, sizeof to);
        EXPECT_EQ(::connect(fd_, &generic, sizeof to), 0) << std::strerror(errno);
    }
    ~RawClient() {
        if (fd_ >= 0) ::close(fd_);
    }
    RawClient(RawClient&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    // Returns how many bytes the other side's kernel accepted.
    std::size_t send(std::span<const std::byte> bytes) const {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        return sent > 0 ? static_cast<std::size_t>(sent) : 0;
    }
    // The same for one byte of urgent data.
    std::size_t send_urgent(std::byte byte) const {
        return ::send(fd_, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_OOB) == 1 ? 1 : 0;
    }
    // Each send uses its own segment.
    void send_at_once() const {
        const int on = 1;
        EXPECT_EQ(::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    }
    void shutdown_send() const { ::shutdown(fd_, SHUT_WR); }
    // Returns whether the other side has closed the connection.
    bool is_cut_off() const {
        std::byte byte{};
        const ssize_t got = ::recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
        return got == 0 || (got < 0 && errno != EAGAIN);
    }

  private:
    int fd_;
};

// A peer that is admitted with a valid hello and then sends any messages.
class Impostor final : private netio::Connection::Handler {
  public:
    Impostor(netio::Transport& transport, const netio::Address& address, netio::Service service)
        : Impostor{transport, address, service,
                   service == netio::Service::publish_subscribe ? UINT32_MAX : 0} {}
    // `largest_bytes`: the largest message size in its hello.
    Impostor(netio::Transport& transport, const netio::Address& address, netio::Service service,
             std::uint32_t largest_bytes, std::uint8_t version = netio::wire_version)
        : memory_{count * bytes}, send_memory_{count * bytes},
          connection_{transport.make_connection(transport.providers_to(address).front(), address,
                                                {}, {.send_count = count, .receive_count = count},
                                                *this)} {
        for (std::size_t i = 0; i < count; ++i) {
            const netio::Slice slice = memory_.slice(i * bytes, bytes);
            EXPECT_EQ(connection_->post_receive({&slice, 1}, netio::Cookie{i}), netio::Status::ok);
        }
        netio::Hello hello{.service = service,
                           .receive_buffer_bytes = bytes,
                           .receive_count = count,
                           .heartbeat_ms = 0,
                           .instance = 1,
                           .service_data = {}};
        std::memcpy(hello.service_data.bytes.data(), &largest_bytes, sizeof largest_bytes);
        hello.service_data.size = sizeof largest_bytes;
        netio::ConnectionData data;
        const std::size_t size = netio::encode(hello, data);
        netio::wire::store(data.data() + sizeof(std::uint32_t), version); // after the magic
        connection_->open(std::span{data}.first(size));
    }

    bool connected = false;
    netio::RejectCode rejected = netio::RejectCode::none;
    bool closed = false;
    std::size_t sent = 0;

    void send(std::span<const std::byte> message) {
        ASSERT_LT(posted_, count);
        const netio::Slice slice = send_memory_.slice(posted_ * bytes, message.size());
        std::ranges::copy(message, slice.data);
        // An earlier message may have ended the connection, although the end is not reported here
        // yet.
        const netio::Status status = connection_->post_send({&slice, 1}, netio::Cookie{posted_++});
        EXPECT_TRUE(status == netio::Status::ok || status == netio::Status::closed)
            << to_string(status);
    }
    void send_frame(const netio::FrameHeader& header, std::span<const std::byte> body = {}) {
        std::vector<std::byte> message(netio::frame_header_bytes + body.size());
        netio::encode(header, std::span{message}.first<netio::frame_header_bytes>());
        std::ranges::copy(body, message.begin() + netio::frame_header_bytes);
        send(message);
    }
    // The frame that every connecting side sends first.
    void send_open() {
        send_frame({.kind = static_cast<std::uint8_t>(netio::FrameKind::open),
                    .flags = 0,
                    .credits = 0,
                    .sequence = 0});
    }

  private:
    static constexpr std::size_t bytes = 128 * 1024;
    static constexpr std::size_t count = 8;

    void on_connected(std::span<const std::byte>) override { connected = true; }
    void on_rejected(std::span<const std::byte> data) override {
        rejected = netio::decode_rejection(data).code;
    }
    void on_completion(const netio::Completion& completion) override {
        if (completion.kind == netio::Completion::Kind::send) ++sent;
    }
    void on_closed(const netio::Closed&) override { closed = true; }

    netio::RegisteredBuffer memory_;
    netio::RegisteredBuffer send_memory_; // one part per message, because it is borrowed
    std::size_t posted_ = 0;
    std::unique_ptr<netio::Connection> connection_;
};

} // namespace netio::pubsub::test
