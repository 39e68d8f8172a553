// SPDX-License-Identifier: Apache-2.0
#pragma once

// Serves pumps, several at a time. What a client's header asks for is done within the limits that
// were given here: of clients, of clients of one host, of memory for each, and of time in which
// nothing moves. Belongs to the loop's thread.

#include "apps/common/logging.hpp"
#include "apps/pump/end.hpp"
#include "netio/access/peer_limiter.hpp"
#include "stream/socket/stream_listener.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace apps::pump {

class Server final : private netio::stream::StreamListener::Handler {
  public:
    struct Options {
        std::vector<netio::Address> addresses;
        bool open = false;                                 // other machines may reach them
        std::shared_ptr<netio::ServerKeys> keys = nullptr; // null: everybody is served
        std::size_t client_limit_count = 16;               // at once; others are rejected
        std::size_t host_limit_count = 0;                  // of them from one host; 0: half
        Settings settings{.memory_limit_bytes = std::size_t{128} << 20U,
                          .idle_limit = std::chrono::minutes{1}};
    };

    // `on_end` is told of each client that has gone.
    Server(netio::EventLoop& loop, netio::Transport& transport, Options options,
           std::function<void(const End&)> on_end);

    std::vector<netio::Endpoint> endpoints() const { return listener_.endpoints(); }
    std::size_t client_count() const noexcept { return clients_.size(); }
    struct Counters {
        std::uint64_t bytes = 0; // that have moved, of all clients
        std::uint64_t ended = 0; // clients that have gone
        std::uint64_t failures = 0;
    };
    Counters counters() const;
    // Sends all clients away, and calls `then` when they have gone. Nobody else is let in.
    void interrupt(std::function<void()> then);
    // Of those that are connected.
    std::vector<StreamFigures> figures() const;

  private:
    struct Client {
        std::string address;
        std::unique_ptr<End> end;
    };

    void on_incoming(netio::stream::IncomingStream& incoming) override;
    void on_closed(End& end);
    void forget_ended();
    std::vector<Client>::iterator client_of(const End& end);

    netio::EventLoop& loop_;
    Options options_;
    std::function<void(const End&)> on_end_;
    netio::access::PeerLimiter places_;
    PeerLog log_;
    std::vector<Client> clients_;
    Counters gone_;                   // of those that are not in it any more
    std::vector<End*> ended_;         // still in their own handlers
    std::function<void()> when_gone_; // empty: serves
    netio::Timer later_;
    netio::stream::StreamListener listener_;
};

} // namespace apps::pump
