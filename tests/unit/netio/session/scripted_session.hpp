// SPDX-License-Identifier: Apache-2.0
#pragma once

// A connecting session in virtual time; its peer is the test (scripted_connection.hpp).

#include "netio/base/wire.hpp"
#include "tests/unit/netio/session/scripted_connection.hpp"
#include "tests/unit/netio/session/session_fixture.hpp"

#include <array>

namespace netio::test {

class ScriptedSession : public testing::Test {
  protected:
    static Hello peer(std::uint16_t receive_count = 100,
                      std::chrono::milliseconds heartbeat = std::chrono::milliseconds{0}) {
        return {.service = Service::messages,
                .receive_buffer_bytes = 4096,
                .receive_count = receive_count,
                .heartbeat_ms = static_cast<std::uint16_t>(heartbeat.count()),
                .service_data = {}};
    }
    void dial(const SessionOptions& options = {}) {
        near = {};
        near.session = std::make_unique<Session>(
            transport, Session::Target{.provider = "scripted", .remote = {}, .local_host = {}},
            Hello{}, options, near);
    }
    // Opens the session; afterwards nothing is in flight.
    void open(const SessionOptions& options = {}, const Hello& answer = peer()) {
        dial(options);
        wire().accept(answer);
        wire().complete();
        ASSERT_EQ(near.opened, 1);
    }
    ScriptedConnection& wire() { return *transport.connection; }
    std::ptrdiff_t sent(FrameKind kind) {
        return std::ranges::count_if(wire().sent, [&](const ScriptedConnection::Sent& frame) {
            return frame.header().kind == static_cast<std::uint8_t>(kind);
        });
    }
    void pass(Duration time) {
        bool over = false;
        Timer timer{loop, [&] { over = true; }};
        timer.start(time);
        while (!over)
            loop.run_once(TimePoint::max());
    }
    static std::array<std::byte, 4> number(std::uint32_t value) {
        std::array<std::byte, 4> bytes;
        wire::store(bytes.data(), value);
        return bytes;
    }
    void expect_end(CloseReason reason, const std::string& detail) {
        wire().end(CloseReason::local);
        ASSERT_EQ(near.closed.size(), 1U);
        EXPECT_EQ(near.closed[0].reason, reason) << near.closed[0].detail;
        EXPECT_THAT(near.closed[0].detail, testing::HasSubstr(detail));
    }

    static constexpr std::uint8_t a_message = first_state_kind;

    SimWorld world;
    EventLoop loop{EventLoop::Options{}, world};
    ScriptedTransport transport{loop};
    End near;
};

} // namespace netio::test
