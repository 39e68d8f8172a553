// SPDX-License-Identifier: Apache-2.0
#pragma once

// Impostor: a peer that completes the handshake and then sends any stream messages.

#include "stream/core/wire.hpp"
#include "tests/scenario/stream/pair.hpp"

#include "netio/session/session.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace netio::stream::test {

// Follows the session's protocol; the stream messages come from the test.
class Impostor final : private netio::Session::Handler {
  public:
    Impostor(netio::Transport& transport, const netio::Address& address,
             const Hello& hello = {.advert_limit_count = 256, .lends_memory = true})
        : session_{transport,
                   {.provider = transport.providers_to(address).front(), .remote = address},
                   link_hello(hello),
                   session_options(),
                   *this} {}

    bool has_ring() const { return ring_.bytes > 0; }
    const RemoteRing& ring() const { return ring_; }
    std::size_t ring_count = 0;
    std::vector<Advert> adverts; // of the other side
    std::optional<netio::Closed> closed;

    void send(std::uint8_t kind, std::span<const std::byte> body) {
        EXPECT_EQ(try_to_send(kind, body), Status::ok);
    }
    // Its end may not have been reported here yet.
    void send_unless_ended(const ControlMessage& message) {
        const Status status = try_to_send(control_kind, encoded(message));
        EXPECT_TRUE(status == Status::ok || status == Status::closed) << to_string(status);
    }
    void send_ring(const RemoteRing& ring = {.address = 0, .key = 1, .bytes = 1000}) {
        send(ring_kind, encode_ring(ring));
    }
    // Writes nothing, but sends this notice.
    void lie(std::uint32_t notice) {
        ASSERT_NE(ring_.bytes, 0U);
        const Slice slice = memory_.slice(0, 1);
        EXPECT_EQ(session_.write({.slices = {&slice, 1},
                                  .target = {.address = ring_.address, .key = ring_.key},
                                  .notice = notice},
                                 Cookie{2}),
                  Status::ok);
    }
    // Sends this many zero bytes in a frame with these flags.
    void send_bytes(std::uint8_t flags, std::size_t bytes) {
        const Slice slice = memory_.slice(0, bytes);
        EXPECT_EQ(session_.send(
                      {.kind = bytes_kind, .flags = flags, .extension = {}, .slices = {&slice, 1}},
                      Cookie{1}),
                  Status::ok);
    }
    void send(const ControlMessage& message) { send(control_kind, encoded(message)); }

    static netio::SessionOptions session_options() {
        netio::SessionOptions options = StreamSocket::Options{}.session;
        options.remote_writes = true;
        return options;
    }
    static netio::Hello link_hello(const Hello& hello) {
        netio::Hello data{.service = netio::Service::stream, .service_data = {}};
        const auto bytes = encode_hello(hello);
        std::ranges::copy(bytes, data.service_data.bytes.begin());
        data.service_data.size = bytes.size();
        return data;
    }

  private:
    void on_open(netio::Session&) override {}
    void on_frame(netio::Session&, const netio::IncomingFrame& frame) override {
        if (frame.kind == control_kind) {
            ControlMessage message;
            EXPECT_EQ(decode_control(frame.body, message), DecodeError::none);
            adverts.insert(adverts.end(), message.adverts.begin(),
                           message.adverts.begin() +
                               static_cast<std::ptrdiff_t>(message.advert_count));
        }
        if (frame.kind != ring_kind) return;
        EXPECT_EQ(decode_ring(frame.body, ring_), DecodeError::none);
        ++ring_count;
    }
    void on_sent(netio::Session&, Cookie, Outcome) override {}
    void on_writable(netio::Session&) override {}
    void on_closed(netio::Session&, const netio::Closed& why) override { closed = why; }

    static std::vector<std::byte> encoded(const ControlMessage& message) {
        std::vector<std::byte> bytes(control_limit_bytes);
        bytes.resize(encode_control(message, bytes));
        return bytes;
    }
    Status try_to_send(std::uint8_t kind, std::span<const std::byte> body) {
        std::ranges::copy(body, memory_.data());
        const Slice slice = memory_.slice(0, body.size());
        return session_.send({.kind = kind, .flags = 0, .extension = {}, .slices = {&slice, 1}},
                             Cookie{1});
    }

    RegisteredBuffer memory_{8192};
    RemoteRing ring_;
    netio::Session session_;
};

} // namespace netio::stream::test
