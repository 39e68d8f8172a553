// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ends of connections directly on the transport interface, over tcp on loopback: both in one loop.

#include "netio/fabric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::test {

using namespace std::chrono_literals;

inline constexpr std::size_t message_bytes = 64;
inline constexpr std::size_t receive_count = 16;

// One end; it posts all its receives before it opens, and each again after use.
class End final : Connection::Handler {
  public:
    static constexpr QueueLimits limits{.send_count = 64, .receive_count = receive_count};

    End(Transport& transport, const Address& remote) {
        connection = transport.make_connection("tcp", remote, {}, limits, *this);
        begin();
    }
    End(Transport& transport, const Route& route) {
        connection = transport.connect_over(route, limits, *this);
        begin();
    }
    explicit End(ConnectionRequest& request) {
        connection = request.make_connection(limits, *this);
        begin();
    }

    bool send() {
        const Slice slice = out_.slice(0, message_bytes);
        return connection->post_send({&slice, 1}, Cookie{1000}) == Status::ok;
    }

    bool connected = false;
    bool message_came_first = false; // before on_connected
    std::size_t messages = 0;
    std::size_t completions = 0;
    std::vector<Closed> closed;
    std::function<void()> at_connected = [] {};
    std::function<void()> at_message = [] {};
    std::function<void()> at_completion = [] {};
    std::unique_ptr<Connection> connection;

  private:
    void begin() {
        for (std::size_t i = 0; i < receive_count; ++i)
            post_receive(Cookie{i});
        connection->open({});
    }
    void post_receive(Cookie cookie) {
        const Slice slice =
            in_.slice(static_cast<std::size_t>(cookie) * message_bytes, message_bytes);
        std::ignore = connection->post_receive({&slice, 1}, cookie);
    }
    void on_connected(std::span<const std::byte>) override {
        connected = true;
        at_connected();
    }
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const Completion& completion) override {
        ++completions;
        at_completion();
        if (completion.kind != Completion::Kind::receive ||
            completion.outcome != Completion::Outcome::done) {
            return;
        }
        message_came_first = message_came_first || !connected;
        ++messages;
        post_receive(completion.cookie);
        at_message();
    }
    void on_closed(const Closed& why) override { closed.push_back(why); }

    std::vector<std::byte> memory_ = std::vector<std::byte>(message_bytes * (receive_count + 1));
    RegisteredBuffer in_{std::span{memory_}.first(message_bytes * receive_count), Access::local};
    RegisteredBuffer out_{std::span{memory_}.last(message_bytes), Access::send};
};

// Accepts every peer.
class Door final : Listener::Handler {
  public:
    Door(Transport& transport, const Address& local)
        : listener{transport.listen("tcp", local, {.allow_remote_anonymous = true}, *this)} {}

    std::vector<std::unique_ptr<End>> ends;
    std::function<void(End&)> at_accepted = [](End&) {};
    std::unique_ptr<Listener> listener;

  private:
    void on_request(ConnectionRequest& request) override {
        ends.push_back(std::make_unique<End>(request));
        at_accepted(*ends.back());
    }
};

struct Fabric {
    explicit Fabric(FabricOptions options = {}, EventLoop::Options loop_options = {})
        : loop{loop_options}, transport{open_fabric(loop, with_tcp(std::move(options)))} {}

    static FabricOptions with_tcp(FabricOptions options) {
        options.provider = "tcp";
        return options;
    }
    bool run_until(const std::function<bool()>& done) {
        const TimePoint deadline = Clock::now() + 60s;
        while (!done() && Clock::now() < deadline)
            loop.run_once(deadline);
        return done();
    }
    void run_for(Duration time) {
        bool over = false;
        Timer timer{loop, [&] { over = true; }};
        timer.start(time);
        run_until([&] { return over; });
    }

    EventLoop loop;
    std::unique_ptr<Transport> transport;
};

} // namespace netio::test
