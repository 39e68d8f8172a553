// SPDX-License-Identifier: Apache-2.0
#pragma once

// Round trips over a message socket (`message-socket`), and of requests: with both sides on a loop
// (`request-loop`), and with both sides called from the main thread, so that each message is handed
// over twice (`request`). For comparison with a bare session, and with two hand-overs alone: from
// the main thread to a loop and back (`hand-over`).

#include "bench/subject.hpp"
#include "netio/messages/message_socket.hpp"
#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace bench {

inline bool is_by_request(const Arguments& arguments) {
    return arguments.form == "request" || arguments.form == "request-loop" ||
           arguments.form == "hand-over";
}

inline void echo_over_message_socket(const Arguments& arguments, netio::EventLoop& loop,
                                     netio::Transport& transport) {
    const netio::Address address{arguments.address, arguments.port};
    std::unique_ptr<netio::MessageSocket> socket;
    const auto send = [&](std::span<const std::byte> message) {
        if (socket->send(message) != netio::Status::ok) fail("cannot send a single message");
    };
    if (!arguments.publish) {
        socket = std::make_unique<netio::MessageSocket>(
            transport, netio::MessageSocket::Options{},
            netio::MessageSocket::Functions{
                .on_message = [&](const netio::IncomingMessage& message) { send(message.bytes()); },
                .on_closed = [&](const netio::Closed&) { loop.stop(); }});
        socket->connect(address);
        return loop.run();
    }
    RoundTrips trips{arguments};
    std::vector<std::byte> message(arguments.size);
    const auto send_next = [&] {
        trips.prepare(message.data());
        send(message);
    };
    const netio::MessageListener listener{
        transport,
        {.listen = {address}, .allow_remote_anonymous = true},
        [&](netio::IncomingPeer& peer) {
            socket = peer.accept({}, {.on_connected = send_next,
                                      .on_message =
                                          [&](const netio::IncomingMessage& echo) {
                                              if (trips.take(echo.bytes().data()))
                                                  return socket->close();
                                              send_next();
                                          },
                                      .on_closed = [&](const netio::Closed&) { loop.stop(); }});
        }};
    say("listening");
    loop.run();
    trips.report();
}

namespace by_request {

inline constexpr std::chrono::seconds long_time{10};

inline netio::Requester::Options asking(const netio::Context& context) {
    netio::Requester::Options options{.context = context};
    options.socket.retry_interval = std::chrono::milliseconds{1};
    options.socket.retry_limit = std::chrono::milliseconds{10};
    return options;
}

inline void ask(const Arguments& arguments, const netio::Context& context) {
    netio::Requester requester{netio::Address{arguments.address, arguments.port}, asking(context)};
    say("listening"); // the responder may start
    static_cast<void>(requester.request("connect", long_time));
    RoundTrips trips{arguments};
    std::vector<std::byte> message(arguments.size);
    do {
        trips.prepare(message.data());
    } while (!trips.take(requester.request(message, long_time).bytes().data()));
    requester.close();
    trips.report();
}

inline void ask_on_loop(const Arguments& arguments, netio::EventLoop& loop,
                        netio::Transport& transport) {
    RoundTrips trips{arguments};
    std::vector<std::byte> message(arguments.size);
    std::optional<netio::Requester> requester;
    netio::Reply reply;
    bool is_connected = false;
    netio::Requester::Options options = asking(netio::Context{transport});
    options.on_ready = [&] {
        if (!reply.is_ready()) return;
        const auto echo = reply.next();
        if (std::exchange(is_connected, true) && trips.take(echo->bytes().data()))
            return loop.stop();
        trips.prepare(message.data());
        reply = requester->send(message, long_time);
    };
    requester.emplace(netio::Address{arguments.address, arguments.port}, options);
    say("listening");
    reply = requester->send("connect", long_time);
    loop.run();
    requester->close();
    trips.report();
}

// Ends when the requester has.
inline void answer(const Arguments& arguments, const netio::Context& context) {
    netio::Responder responder{netio::Address{arguments.address, arguments.port},
                               {.context = context, .allow_remote_anonymous = true}};
    for (netio::Request& request : responder) {
        request.reply(request.bytes());
        if (request.size() == arguments.size && is_last(request.bytes().data())) return;
    }
}

inline void answer_on_loop(const Arguments& arguments, netio::EventLoop& loop,
                           netio::Transport& transport) {
    std::optional<netio::Responder> responder;
    bool is_ending = false;
    responder.emplace(
        netio::Address{arguments.address, arguments.port},
        netio::Responder::Options{
            .context = netio::Context{transport}, .allow_remote_anonymous = true, .on_ready = [&] {
                while (auto request = responder->receive(std::chrono::milliseconds{0})) {
                    request->reply(request->bytes());
                    is_ending = is_ending || (request->size() == arguments.size &&
                                              is_last(request->bytes().data()));
                }
                if (responder->is_closed()) return loop.stop();
                if (is_ending) responder->close();
            }});
    loop.run();
}

inline void hand_over(const Arguments& arguments, const netio::Context& context) {
    say("listening");
    RoundTrips trips{arguments};
    std::vector<std::byte> message(arguments.size);
    do {
        trips.prepare(message.data());
        context.run([] {});
    } while (!trips.take(message.data()));
    trips.report();
}

} // namespace by_request

// `loop` and `transport` are used by `request-loop` only.
inline void echo_by_request(const Arguments& arguments, netio::EventLoop& loop,
                            netio::Transport& transport, const netio::EventLoop::Options& options) {
    if (arguments.form == "request-loop") {
        return arguments.publish ? by_request::ask_on_loop(arguments, loop, transport)
                                 : by_request::answer_on_loop(arguments, loop, transport);
    }
    const netio::Context context{{.loop = options, .fabric = {.provider = arguments.provider}}};
    if (arguments.form == "hand-over") {
        if (arguments.publish) by_request::hand_over(arguments, context);
        return;
    }
    arguments.publish ? by_request::ask(arguments, context)
                      : by_request::answer(arguments, context);
}

} // namespace bench
