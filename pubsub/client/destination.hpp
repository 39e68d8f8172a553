// SPDX-License-Identifier: Apache-2.0
#pragma once

// One of a client's destinations: what waits for it, and its connection.

#include "netio/loop/event_loop.hpp"
#include "netio/session/drain_timer.hpp"
#include "pubsub/client/destinations.hpp"

namespace netio::pubsub::inline v0_2 {

class Destination final : public std::enable_shared_from_this<Destination>,
                          private BufferedSendSocket::Handler {
  public:
    Destination(Destinations& all, const Address& address, std::size_t queue_bytes);

    // Any thread.
    Status put(std::span<const std::byte> message);
    void take_no_more() { outbox_.close(); }
    // As close(), in one of the next turns of the client's thread.
    void leave();
    // Nothing waits, and there is no connection, as far as one knows.
    bool is_idle() { return !connected_.load(std::memory_order_relaxed) && outbox_.empty(); }

    // The client's thread. Whether there is a connection, or an attempt at one, whose end follows.
    bool close();
    bool is_closing() const noexcept { return closing_; }

  private:
    struct Item {
        std::vector<std::byte> bytes;
    };

    void serve();
    void connect();
    void try_later();
    void send_what_waits();
    bool send(const Item& item);
    void give_up();
    void end();

    void on_connected(BufferedSendSocket& socket) override;
    void on_writable(BufferedSendSocket& socket) override;
    void on_closed(BufferedSendSocket& socket, const Closed& closed) override;

    Destinations& all_;
    Address address_;
    Outbox<Item> outbox_;
    Errand errand_;
    std::atomic<std::size_t> message_limit_{SIZE_MAX}; // of the last connection
    std::atomic<bool> connected_{false};
    std::atomic<bool> leaving_{false};
    // The thread's own.
    bool closing_ = false;
    std::unique_ptr<Timer> go_on_;
    std::unique_ptr<DrainTimeout> wait_; // at the end
    std::unique_ptr<Timer> again_;       // who refuses for good is asked again, though not soon
    std::unique_ptr<BufferedSendSocket> socket_;
};

} // namespace netio::pubsub::inline v0_2
