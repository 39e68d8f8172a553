// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two ends of a session on a test bed, and what they have received.

#include "netio/session/session.hpp"
#include "netio/session/session_listener.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace netio::test {

// One end of a session, and what it has received.
class End final : public Session::Handler {
  public:
    void on_open(Session&) override {
        ++opened;
        act(at_open);
    }
    void on_frame(Session&, const IncomingFrame& frame) override {
        frames.emplace_back(frame.body.begin(), frame.body.end());
        act(at_frame);
    }
    void on_sent(Session&, Cookie cookie, Completion::Outcome outcome) override {
        ++sent[static_cast<std::uint64_t>(cookie)];
        if (outcome != Completion::Outcome::done) ++unsent;
        act(at_sent);
    }
    void on_writable(Session&) override {
        ++room;
        act(at_room);
    }
    void on_closed(Session&, const Closed& why) override {
        closed.push_back(why);
        act(at_closed);
    }
    bool on_shutdown(Session&) override {
        ++shut_down;
        return confirms;
    }
    static void act(const std::function<void()>& hook) {
        if (hook) hook();
    }

    int opened = 0;
    int room = 0;
    int unsent = 0;
    int shut_down = 0;
    bool confirms = true;
    std::vector<std::vector<std::byte>> frames;
    std::map<std::uint64_t, int> sent;
    std::vector<Closed> closed;
    std::function<void()> at_open, at_frame, at_sent, at_room, at_closed;
    std::unique_ptr<Session> session;
};

class SessionTest : public testing::TestWithParam<Bed>, public SessionListener::Handler {
  protected:
    void connect(SessionOptions near_options = {}, SessionOptions far_options = {}) {
        // Also on a busy machine.
        near_options.connect_timeout = far_options.handshake_timeout = std::chrono::minutes{1};
        accept_options = far_options;
        listener = std::make_unique<SessionListener>(
            bed.transport(),
            SessionListener::Options{.service = Service::messages,
                                     .listen = {bed.address()},
                                     .allow_remote_anonymous = true},
            static_cast<SessionListener::Handler&>(*this));
        dial(near_options);
        bed.run_until([&] {
            return (near.opened == 1 && far.opened == 1) || !near.closed.empty() ||
                   !far.closed.empty();
        });
        if (near.opened == 1 && far.opened == 1) return;
        for (const End* end : {&near, &far}) {
            for (const Closed& closed : end->closed)
                ADD_FAILURE() << closed.detail;
        }
        // An ASSERT would end only this function.
        throw std::runtime_error{"the session did not open"};
    }
    void dial(const SessionOptions& options) {
        const Address address = listener->endpoints().front().address;
        near.session = std::make_unique<Session>(
            bed.transport(),
            Session::Target{.provider = bed.transport().providers_to(address).front(),
                            .remote = address,
                            .local_host = {}},
            Hello{.service = Service::messages, .service_data = {}}, options, near);
    }
    void on_incoming(IncomingSession& incoming) override {
        far.session = incoming.accept({.service = Service::messages, .service_data = {}},
                                      accept_options, far);
    }
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override {
        ADD_FAILURE() << peer_address << ": " << why.what();
    }
    void send(End& from, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(from.session->send({.kind = 20}, std::nullopt), Status::ok);
    }
    // Sends `count` frames as fast as possible, with their number in the body.
    void flood(End& from, std::uint64_t count) {
        from.at_room = [&from, count, next = std::uint64_t{0}]() mutable {
            for (; next < count; ++next) {
                std::array<std::byte, 8> body;
                wire::store(body.data(), next);
                const Status status =
                    from.session->send({.kind = 20, .extension = body}, Cookie{next});
                if (status == Status::again) return;
                ASSERT_EQ(status, Status::ok);
            }
        };
        from.at_room();
    }
    static void expect_end(const End& at, CloseReason reason, std::uint64_t unconfirmed) {
        ASSERT_EQ(at.closed.size(), 1U);
        EXPECT_EQ(at.closed[0].reason, reason)
            << to_string(at.closed[0].reason) << ": " << at.closed[0].detail;
        EXPECT_EQ(at.closed[0].unconfirmed_frames, unconfirmed) << at.closed[0].detail;
    }
    static void expect_flood(const End& at, std::uint64_t count) {
        ASSERT_EQ(at.frames.size(), count);
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(wire::load<std::uint64_t>(at.frames[i].data()), i);
    }

    TestBed bed{GetParam()};
    SessionOptions accept_options;
    std::unique_ptr<SessionListener> listener;
    End near, far;
};

} // namespace netio::test
