// SPDX-License-Identifier: Apache-2.0
#pragma once

// Serves several pumps at a time. A client's header is followed within the given limits: number of
// clients, clients per host, memory per client, and time without progress. Belongs to the loop's
// thread.

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
        std::vector<netio::Address> listen;
        bool allow_remote_anonymous = false;               // other machines may reach them
        std::shared_ptr<netio::ServerKeys> keys = nullptr; // null: no authentication
        std::size_t client_limit_count = 16;               // further clients are rejected
        std::size_t host_limit_count = 0;                  // clients per host; 0: half
        Settings settings{.memory_limit_bytes = std::size_t{128} << 20U,
                          .idle_limit = std::chrono::minutes{1}};
    };

    // Calls `on_end` for each client that has disconnected.
    Server(netio::EventLoop& loop, netio::Transport& transport, Options options,
           std::function<void(const End&)> on_end);

    std::vector<netio::Endpoint> endpoints() const { return listener_.endpoints(); }
    std::size_t client_count() const noexcept { return clients_.size(); }
    struct Counters {
        std::uint64_t bytes = 0; // transferred, of all clients
        std::uint64_t ended = 0; // clients that have disconnected
        std::uint64_t failures = 0;
    };
    Counters counters() const;
    // Aborts all clients, and calls `then` when they have ended. Further clients are rejected.
    void interrupt(std::function<void()> then);
    // Metrics of the connected clients.
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
    Counters gone_;                   // of disconnected clients
    std::vector<End*> ended_;         // ended, but still in their own handlers
    std::function<void()> when_gone_; // empty: still serving
    netio::Timer later_;
    netio::stream::StreamListener listener_;
};

} // namespace apps::pump
