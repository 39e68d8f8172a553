// SPDX-License-Identifier: Apache-2.0
#pragma once

// A connection whose peer is the test: the test supplies each received frame, and sees all sent
// frames. And the transport that creates it.

#include "netio/base/frame.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/handshake.hpp"
#include "netio/transport.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace netio::test {

// Every memory can be registered.
class AnyDomain final : public MemoryDomain {
  public:
    std::unique_ptr<Registration> register_memory(std::span<std::byte>, Access) override {
        struct Nothing final : Registration {
            void* descriptor() const noexcept override { return nullptr; }
            std::uint64_t key() const noexcept override { return 0; }
            std::uint64_t base() const noexcept override { return 0; }
        };
        return std::make_unique<Nothing>();
    }
};

class ScriptedConnection final : public Connection {
  public:
    // A sent message, and its number of pieces.
    struct Sent {
        std::vector<std::byte> bytes;
        std::size_t pieces = 0;

        FrameHeader header() const {
            return decode_frame_header(std::span{bytes}.first<frame_header_bytes>());
        }
        std::size_t body_bytes() const { return bytes.size() - frame_header_bytes; }
    };

    explicit ScriptedConnection(Handler& told) : handler_{told} {
        capabilities_.provider = "scripted";
        capabilities_.message_bytes = 1 << 20;
        capabilities_.segment_limit = 4;
    }
    void open(std::span<const std::byte>) override {}
    Status post_send(std::span<const Slice> slices, Cookie cookie) override {
        if (answer != Status::ok) return answer;
        Sent& frame = sent.emplace_back();
        frame.pieces = slices.size();
        for (const Slice& slice : slices)
            frame.bytes.insert(frame.bytes.end(), slice.data, slice.data + slice.size);
        under_way_.push_back(cookie);
        return Status::ok;
    }
    Status post_receive(std::span<const Slice> slices, Cookie cookie) override {
        if (answer == Status::ok) receives.emplace_back(slices.front(), cookie);
        return answer;
    }
    Status post_write(std::span<const Slice>, const RemoteSlice&, std::optional<std::uint32_t>,
                      Cookie cookie) override {
        if (answer == Status::ok) under_way_.push_back(cookie);
        return answer;
    }
    bool reserve_receives(std::size_t) override { return takes_more; }
    void close() override { closed = true; }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    MemoryDomain& domain() noexcept override { return domain_; }
    TimePoint last_sign_of_life(Duration) override { return TimePoint::min(); } // unknown
    std::string peer_address() const override { return "the scripted peer"; }

    // --- actions of the peer ---
    void accept(const Hello& hello) {
        ConnectionData data;
        const std::size_t size = encode(hello, data);
        handler_.on_connected(std::span{data}.first(size));
    }
    // Delivers a frame with the next sequence number.
    void bring(FrameHeader header, std::span<const std::byte> body = {},
               Completion::Kind as = Completion::Kind::receive) {
        ASSERT_FALSE(receives.empty()) << "no receive is posted";
        const auto [slice, cookie] = receives.front();
        receives.pop_front();
        header.sequence += next_number_++;
        encode(header, std::span{slice.data, slice.size}.first<frame_header_bytes>());
        std::ranges::copy(body, slice.data + frame_header_bytes);
        handler_.on_completion(
            {.kind = as, .cookie = cookie, .bytes = frame_header_bytes + body.size()});
    }
    void bring(FrameKind kind, std::span<const std::byte> body = {}) {
        bring({.kind = static_cast<std::uint8_t>(kind)}, body);
    }
    // Completes all sends.
    void complete() {
        for (const Cookie cookie : std::exchange(under_way_, {}))
            handler_.on_completion({.kind = Completion::Kind::send, .cookie = cookie});
    }
    void end(CloseReason reason) { handler_.on_closed({.reason = reason}); }

    Status answer = Status::ok; // status of the following posts
    bool takes_more = false;    // accepts more receives than it was made with
    bool closed = false;
    std::vector<Sent> sent;
    std::deque<std::pair<Slice, Cookie>> receives; // posted receives

  private:
    Handler& handler_;
    Capabilities capabilities_;
    AnyDomain domain_;
    std::vector<Cookie> under_way_;
    std::uint32_t next_number_ = 0;
};

class ScriptedTransport final : public Transport {
  public:
    explicit ScriptedTransport(EventLoop& loop) : loop_{loop} {}
    EventLoop& loop() noexcept override { return loop_; }
    std::vector<std::string> providers_to(const Address&) override { return {"scripted"}; }
    std::vector<std::string> providers_at(const Address&) override { return {"scripted"}; }
    std::unique_ptr<Connection> make_connection(const std::string&, const Address&,
                                                const std::string&, const QueueLimits&,
                                                Connection::Handler& handler) override {
        auto made = std::make_unique<ScriptedConnection>(handler);
        connection = made.get();
        return made;
    }
    std::unique_ptr<Listener> listen(const std::string&, const Address&, const ListenOptions&,
                                     Listener::Handler&) override {
        return nullptr;
    }
    ScriptedConnection* connection = nullptr; // the last one

  private:
    EventLoop& loop_;
};

} // namespace netio::test
