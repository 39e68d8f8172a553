// SPDX-License-Identifier: Apache-2.0
#pragma once

// A listen socket on a test bed, and senders that record their callbacks.

#include "netio/messages/send_socket.hpp"
#include "tests/scenario/messages/receiver.hpp"
#include "tests/support/test_bed.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace netio::test {

class Sender final : public SendSocket::Handler {
  public:
    void on_connected(SendSocket&) override {
        ++connected;
        if (at_connected) at_connected();
    }
    void on_send_completed(SendSocket&, Cookie key, Completion::Outcome outcome) override {
        ++completions[static_cast<std::uint64_t>(key)];
        if (outcome == Completion::Outcome::done) ++done;
        if (at_completed) at_completed();
    }
    void on_writable(SendSocket&) override {
        if (at_room) at_room();
    }
    void on_closed(SendSocket&, const Closed& why) override {
        closed.push_back(why);
        if (at_closed) at_closed();
    }
    int connected = 0;
    std::size_t done = 0;
    std::map<std::uint64_t, int> completions;
    std::vector<Closed> closed;
    std::function<void()> at_connected, at_completed, at_room, at_closed;
};

class Messages : public testing::TestWithParam<Bed> {
  protected:
    void listen(ListenSocket::Options options = {}) {
        options.listen = {bed.address()};
        options.allow_remote_anonymous = true;
        listener = std::make_unique<ListenSocket>(bed.transport(), options, receiver);
        address = listener->endpoints().front().address;
    }
    std::unique_ptr<SendSocket> connected(Sender& handler) {
        auto socket = std::make_unique<SendSocket>(bed.transport(), SendSocket::Options{}, handler);
        socket->connect(address);
        EXPECT_TRUE(bed.run_until([&] { return handler.connected == 1; }));
        return socket;
    }

    TestBed bed{GetParam()};
    Address address;
    Receiver receiver;
    Sender sender;
    std::unique_ptr<ListenSocket> listener;
};

} // namespace netio::test
