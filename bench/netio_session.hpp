// SPDX-License-Identifier: Apache-2.0
#pragma once

// Round trips of this framework over one connection: a netio::Session used directly, as a service
// with its own protocol would use it.

#include "bench/subject.hpp"
#include "netio/session/session_listener.hpp"

#include <memory>
#include <optional>

namespace bench {

class SessionEcho final : private netio::Session::Handler, private netio::SessionListener::Handler {
  public:
    SessionEcho(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport)
        : loop_{loop}, measures_{arguments.publish}, trips_{arguments}, message_(arguments.size) {
        const netio::Address address{arguments.address, arguments.port};
        if (measures_) {
            listener_.emplace(transport,
                              netio::SessionListener::Options{.listen = {address},
                                                              .allow_remote_anonymous = true},
                              static_cast<netio::SessionListener::Handler&>(*this));
            say("listening");
        } else {
            session_ = std::make_unique<netio::Session>(
                transport,
                netio::Session::Target{
                    .provider = arguments.provider, .remote = address, .local_host = {}},
                netio::Hello{}, netio::SessionOptions{},
                static_cast<netio::Session::Handler&>(*this));
        }
    }
    void report() {
        if (measures_) trips_.report();
    }

  private:
    void on_incoming(netio::IncomingSession& incoming) override {
        session_ = incoming.accept(netio::Hello{}, netio::SessionOptions{},
                                   static_cast<netio::Session::Handler&>(*this));
    }
    void on_accept_failed(const std::string&, const netio::FabricError& why) override {
        fail(why.what());
    }
    void on_open(netio::Session&) override {
        if (measures_) send_next();
    }
    void on_frame(netio::Session& session, const netio::IncomingFrame& frame) override {
        if (!measures_) {
            std::memcpy(message_.data(), frame.body.data(), frame.body.size());
            send();
        } else if (trips_.take(frame.body.data())) {
            session.close();
        } else {
            send_next();
        }
    }
    void on_sent(netio::Session&, netio::Cookie, netio::Completion::Outcome) override {}
    void on_writable(netio::Session&) override {}
    void on_closed(netio::Session&, const netio::Closed&) override { loop_.stop(); }

    void send_next() {
        trips_.prepare(message_.data());
        send();
    }
    void send() {
        const netio::Slice slice = message_.slice();
        const netio::OutgoingFrame frame{
            .kind = netio::first_service_kind, .flags = 0, .extension = {}, .slices = {&slice, 1}};
        if (session_->send(frame, std::nullopt) != netio::Status::ok)
            fail("cannot send a single message");
    }

    netio::EventLoop& loop_;
    bool measures_;
    RoundTrips trips_;
    netio::RegisteredBuffer message_;
    std::optional<netio::SessionListener> listener_;
    std::unique_ptr<netio::Session> session_;
};

inline void echo_over_session(const Arguments& arguments, netio::EventLoop& loop,
                              netio::Transport& transport) {
    SessionEcho echo{arguments, loop, transport};
    loop.run();
    echo.report();
}

} // namespace bench
