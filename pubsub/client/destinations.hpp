// SPDX-License-Identifier: Apache-2.0
#pragma once

// The point-to-point destinations of a client. Each address has a bounded queue, which any thread
// fills, and a connection of the client's thread, which reconnects by itself. A destination never
// waits for another one.

#include "netio/messages/buffered_send_socket.hpp"
#include "netio/transport.hpp"
#include "pubsub/client/client_queues.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class Destinations {
  public:
    struct Options {
        BufferedSendSocket::Options socket;
        std::size_t queue_bytes = 0; // of each destination
        std::size_t limit = 0;       // of destinations
    };
    struct Counted {
        std::atomic<std::uint64_t> sent{0};               // given to a connection
        std::atomic<std::uint64_t> unsent{0};             // too large, or queued at the end
        std::atomic<std::uint64_t> unconfirmed_frames{0}; // of connections that ended
    };

    Destinations(Options options, const ClientCalls& calls);
    ~Destinations();
    Destinations(const Destinations&) = delete;
    Destinations& operator=(const Destinations&) = delete;

    // Any thread. Throws std::length_error if the limit is reached and no destination is idle.
    // again: the limit is reached, and some destinations are about to end.
    Status send(const Address& to, std::span<const std::byte> message);
    void disconnect(const Address& from);
    void take_no_more();
    const Counted& counted() const noexcept { return counted_; }

    // The client's thread, which creates the sockets.
    void set_transport(Transport& transport) noexcept { transport_ = &transport; }
    // Sends the queue of a connection that is open or being established, and discards the queue of
    // a failed one.
    void close();
    bool is_over() const noexcept { return open_ == 0; }

  private:
    class Destination;
    using Shared = std::shared_ptr<Destination>;
    using ByAddress = std::map<std::string, Shared>;

    struct Found {
        Status status = Status::ok;
        Shared destination{}; // with ok
    };
    Found find_or_add(const Address& to);
    void release(ByAddress::iterator which);
    void close_idle_destination();
    void begin_to_close(Destination& which);
    void on_ended(const Destination& which);
    // May destroy it.
    void forget(const Destination& which);

    Options options_;
    ClientCalls calls_;
    Counted counted_;
    Transport* transport_ = nullptr;
    std::size_t open_ = 0; // closed, and their end follows
    std::mutex mutex_;     // of what follows
    bool closed_ = false;
    ByAddress all_;               // by HOST:PORT
    std::vector<Shared> leaving_; // not in all_ any more
};

} // namespace netio::pubsub::inline v0_3
