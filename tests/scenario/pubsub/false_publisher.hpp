// SPDX-License-Identifier: Apache-2.0
#pragma once

// A publisher that admits a subscriber, grants all its requests, and then sends only what the test
// wants.

#include "netio/base/frame.hpp"
#include "netio/session/handshake.hpp"
#include "netio/transport.hpp"
#include "pubsub/core/wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace netio::pubsub::test {

class FalsePublisher final : private netio::Listener::Handler, private netio::Connection::Handler {
  public:
    FalsePublisher(netio::Transport& transport, const netio::Address& at)
        : listener_{transport.listen(transport.providers_at(at).front(), at,
                                     {.allow_remote_anonymous = true},
                                     static_cast<netio::Listener::Handler&>(*this))} {}
    netio::Address address() const { return listener_->address(); }
    bool has_granted() const { return has_granted_; }
    void send(std::uint8_t kind, const std::vector<std::byte>& body, std::uint8_t flags = 0) {
        std::vector<std::byte> message(netio::frame_header_bytes + body.size());
        netio::encode({.kind = kind, .flags = flags, .credits = 0, .sequence = sequence_++},
                      std::span{message}.first<netio::frame_header_bytes>());
        std::ranges::copy(body, message.begin() + netio::frame_header_bytes);
        ASSERT_LT(posted_, count);
        const netio::Slice slice = send_memory_.slice(posted_ * bytes, message.size());
        std::ranges::copy(message, slice.data);
        EXPECT_EQ(connection_->post_send({&slice, 1}, netio::Cookie{posted_++}), netio::Status::ok);
    }

  private:
    static constexpr std::size_t bytes = 128 * 1024;
    static constexpr std::size_t count = 8;

    void on_request(netio::ConnectionRequest& request) override {
        connection_ = request.make_connection({.send_count = count, .receive_count = count},
                                              static_cast<netio::Connection::Handler&>(*this));
        for (std::size_t i = 0; i < count; ++i) {
            const netio::Slice slice = receive_memory_.slice(i * bytes, bytes);
            EXPECT_EQ(connection_->post_receive({&slice, 1}, netio::Cookie{i}), netio::Status::ok);
        }
        netio::Hello hello{.service = netio::Service::publish_subscribe,
                           .receive_buffer_bytes = bytes,
                           .receive_count = count,
                           .heartbeat_ms = 0,
                           .instance = 1,
                           .service_data = {}};
        constexpr std::uint32_t largest = 1 << 20;
        std::memcpy(hello.service_data.bytes.data(), &largest, sizeof largest);
        hello.service_data.size = sizeof largest;
        netio::ConnectionData data;
        const std::size_t size = netio::encode(hello, data);
        connection_->open(std::span{data}.first(size));
    }
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const netio::Completion& completion) override {
        if (completion.kind != netio::Completion::Kind::receive) return;
        const netio::Slice slice =
            receive_memory_.slice(static_cast<std::size_t>(completion.cookie) * bytes, bytes);
        const std::span<const std::byte> message{slice.data, completion.bytes};
        if (completion.outcome != netio::Completion::Outcome::done) return;
        ASSERT_GE(message.size(), netio::frame_header_bytes);
        const auto header = message.first<netio::frame_header_bytes>();
        if (netio::decode_frame_header(header).kind != subscribe_kind) return;
        const auto request = decode_request(message.subspan(netio::frame_header_bytes));
        ASSERT_TRUE(request.has_value());
        std::vector<std::byte> answer(answer_bytes);
        encode({.request = request->request, .result = SubscriptionResult::accepted}, answer);
        send(subscription_answer_kind, answer);
        has_granted_ = true;
    }
    void on_closed(const netio::Closed&) override {}

    netio::RegisteredBuffer receive_memory_{count * bytes};
    netio::RegisteredBuffer send_memory_{count * bytes};
    std::size_t posted_ = 0;
    std::uint32_t sequence_ = 0;
    bool has_granted_ = false;
    std::unique_ptr<netio::Listener> listener_;
    std::unique_ptr<netio::Connection> connection_; // last member: destroyed first
};

} // namespace netio::pubsub::test
