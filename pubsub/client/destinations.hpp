// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a client sends messages point to point: for each address a bounded queue that any thread
// fills, and a connection of the client's thread that comes back by itself. A queue waits for its
// own connection only.

#include "netio/messages/buffered_send_socket.hpp"
#include "pubsub/client/errand.hpp"
#include "pubsub/client/outbox.hpp"

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

namespace netio::pubsub::inline v0_2 {

class Destination;

class Destinations {
  public:
    struct Options {
        BufferedSendSocket::Options socket;
        std::size_t queue_bytes = 0; // of each
        std::size_t limit = 0;       // of them
    };
    // All of them on the client's thread, but for `post`.
    struct Calls {
        PostErrand post;                              // any thread
        std::function<void(const std::string&)> tell; // a line for people
        std::function<void()> ended;                  // a connection has, that was closed
    };
    struct Counted {
        std::atomic<std::uint64_t> sent{0};               // given to a connection
        std::atomic<std::uint64_t> unsent{0};             // too large, or waiting at the end
        std::atomic<std::uint64_t> unconfirmed_frames{0}; // of connections that ended
    };

    Destinations(Options options, Calls calls);
    ~Destinations();
    Destinations(const Destinations&) = delete;
    Destinations& operator=(const Destinations&) = delete;

    // Any thread. Throws std::length_error: there are as many as the limit allows, and none of them
    // is idle. again: some of them are about to end.
    Status send(const Address& to, std::span<const std::byte> message);
    void disconnect(const Address& from);
    void take_no_more();
    const Counted& counted() const noexcept { return counted_; }

    // The client's thread. Sockets are made there.
    void set_transport(Transport& transport) noexcept { transport_ = &transport; }
    // What waits for a connection that stands or is being made is sent, what waits for one that has
    // failed is not.
    void close();
    bool is_over() const noexcept { return open_ == 0; }

  private:
    friend class Destination;

    using Shared = std::shared_ptr<Destination>;
    using ByAddress = std::map<std::string, Shared>;

    struct Found {
        Status status = Status::ok;
        Shared destination{}; // with ok
    };
    Found find_or_add(const Address& to);
    void let_go(ByAddress::iterator which);
    void let_an_idle_one_go();
    void tell(const std::string& line) const { calls_.tell(line); }
    void begin_to_close(Destination& which);
    void one_has_ended(const Destination& which);
    // It may be gone then.
    void forget(const Destination& which);

    Options options_;
    Calls calls_;
    Counted counted_;
    Transport* transport_ = nullptr;
    std::size_t open_ = 0; // whose end follows
    std::mutex mutex_;     // of what follows
    bool closed_ = false;
    ByAddress all_;               // by HOST:PORT
    std::vector<Shared> leaving_; // none of those any more
};

} // namespace netio::pubsub::inline v0_2
