// SPDX-License-Identifier: Apache-2.0
#pragma once

// Round trips of this framework over one connection: a netio::Link used by itself, as a service
// with a protocol of its own would use it.

#include "bench/subject.hpp"
#include "netio/link_listener.hpp"

#include <memory>
#include <optional>

namespace bench {

class LinkEcho final : private netio::Link::Handler, private netio::LinkListener::Handler {
  public:
    LinkEcho(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport)
        : loop_{loop}, measures_{arguments.publish}, trips_{arguments}, message_(arguments.size) {
        const netio::Address address{arguments.address, arguments.port};
        if (measures_) {
            listener_.emplace(transport, netio::LinkListener::Options{.addresses = {address}},
                              static_cast<netio::LinkListener::Handler&>(*this));
            say("listening");
        } else {
            link_ = std::make_unique<netio::Link>(
                transport,
                netio::Link::Target{
                    .provider = arguments.provider, .remote = address, .local_host = {}},
                netio::Hello{}, netio::LinkOptions{}, static_cast<netio::Link::Handler&>(*this));
        }
    }
    void report() {
        if (measures_) trips_.report();
    }

  private:
    void on_incoming(netio::IncomingLink& incoming) override {
        link_ = incoming.accept(netio::Hello{}, netio::LinkOptions{},
                                static_cast<netio::Link::Handler&>(*this));
    }
    void on_turned_away(const std::string&, const netio::FabricError& why) override {
        fail(why.what());
    }
    void on_open(netio::Link&) override {
        if (measures_) send_next();
    }
    void on_frame(netio::Link& link, const netio::IncomingFrame& frame) override {
        if (!measures_) {
            std::memcpy(message_.data(), frame.body.data(), frame.body.size());
            send();
        } else if (trips_.take(frame.body.data())) {
            link.finish();
        } else {
            send_next();
        }
    }
    void on_sent(netio::Link&, netio::Cookie, netio::Completion::Outcome) override {}
    void on_room(netio::Link&) override {}
    void on_closed(netio::Link&, const netio::Closed&) override { loop_.stop(); }

    void send_next() {
        trips_.prepare(message_.data());
        send();
    }
    void send() {
        const netio::Slice slice = message_.slice();
        const netio::OutgoingFrame frame{
            .kind = netio::first_service_kind, .flags = 0, .extension = {}, .slices = {&slice, 1}};
        if (link_->send(frame, std::nullopt) != netio::Status::ok) fail("no room for one message");
    }

    netio::EventLoop& loop_;
    bool measures_;
    RoundTrips trips_;
    netio::RegisteredBuffer message_;
    std::optional<netio::LinkListener> listener_;
    std::unique_ptr<netio::Link> link_;
};

inline void echo_over_link(const Arguments& arguments, netio::EventLoop& loop,
                           netio::Transport& transport) {
    LinkEcho echo{arguments, loop, transport};
    loop.run();
    echo.report();
}

} // namespace bench
