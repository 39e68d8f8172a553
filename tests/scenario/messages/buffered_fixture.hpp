// SPDX-License-Identifier: Apache-2.0
#pragma once

// A buffered sender and a listener on a test bed.

#include "netio/messages/buffered_send_socket.hpp"
#include "tests/scenario/messages/receiver.hpp"
#include "tests/support/test_bed.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace netio::test {

using Bytes = std::vector<std::byte>;

class BufferedSender final : public BufferedSendSocket::Handler {
  public:
    void on_connected(BufferedSendSocket&) override {
        ++connected;
        if (at_connected) at_connected();
    }
    void on_writable(BufferedSendSocket& socket) override {
        EXPECT_TRUE(socket.is_connected());
        ++room;
        if (at_room) at_room();
    }
    void on_closed(BufferedSendSocket& socket, const Closed& why) override {
        EXPECT_EQ(socket.pages_in_use(), 0U);
        closed.push_back(why);
        if (at_closed) at_closed();
    }
    int connected = 0;
    int room = 0;
    std::vector<Closed> closed;
    std::function<void()> at_connected, at_room, at_closed;
};

class BufferedMessages : public testing::TestWithParam<Bed> {
  protected:
    void listen(BufferedListenSocket::Options options = {}) {
        options.listen = {bed.address()};
        options.allow_remote_anonymous = true;
        listener = std::make_unique<BufferedListenSocket>(bed.transport(), options, receiver);
        address = listener->endpoints().front().address;
    }
    void connect(const BufferedSendSocket::Options& options) {
        socket = std::make_unique<BufferedSendSocket>(bed.transport(), options, sender);
        socket->connect(address);
        ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    }
    Status send(const Bytes& message) { return socket->send(message); }
    bool arrived(std::size_t count) {
        return bed.run_until([&] { return receiver.messages.size() >= count; });
    }

    // No page leaves without a flush.
    const BufferedSendSocket::Options patient{
        .page_size_bytes = 1024, .page_count = 4, .flush_time = std::chrono::microseconds{0}};

    TestBed bed{GetParam()};
    Address address;
    Receiver receiver;
    BufferedSender sender;
    std::unique_ptr<BufferedListenSocket> listener;
    std::unique_ptr<BufferedSendSocket> socket;
};

} // namespace netio::test
