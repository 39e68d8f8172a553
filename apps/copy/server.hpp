// SPDX-License-Identifier: Apache-2.0
#pragma once

// Receives files from several senders at once into one folder (apps/copy/session.hpp). Belongs
// to the loop's thread.

#include "apps/common/peer_log.hpp"
#include "apps/copy/served_folder.hpp"
#include "apps/copy/session.hpp"
#include "netio/access/peer_limiter.hpp"
#include "stream/socket/stream_listener.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace apps::copy {

class Server final : private netio::stream::StreamListener::Handler, private Session::Handler {
  public:
    struct Options {
        std::string folder;
        std::vector<netio::Address> addresses;
        bool open = false;                                 // other machines may reach them
        std::shared_ptr<netio::ServerKeys> keys = nullptr; // null: everybody is served
        std::size_t sender_limit_count = 16;               // at once; others are rejected
        std::size_t host_limit_count = 0;                  // of them from one host; 0: half
        Session::Options session;
    };
    struct Counters {
        std::uint64_t files = 0; // that are on the disk under their names
        std::uint64_t bytes = 0; // that have moved, of those and of unfinished ones
        std::uint64_t failures = 0;
    };

    // Throws std::system_error (the folder) and netio::FabricError (the addresses).
    Server(netio::EventLoop& loop, netio::Transport& transport, Options options);

    std::vector<netio::Endpoint> endpoints() const { return listener_.endpoints(); }
    Counters counters() const;
    std::size_t sender_count() const noexcept { return sessions_.size(); }
    // Sends all senders away; then, when what each has begun is counted and lies on the disk, calls
    // `then`, within a handler or at once. Nobody else is let in.
    void end(std::function<void()> then);

  private:
    void on_incoming(netio::stream::IncomingStream& incoming) override;
    void on_file_kept(std::uint64_t moved_bytes) override;
    void on_file_failed(std::uint64_t moved_bytes) override;
    void on_session_ended(Session& session) override;
    PeerLog& log() override { return log_; }

    PeerLog log_;
    netio::EventLoop& loop_;
    Options options_;
    netio::access::PeerLimiter places_;
    ServedFolder folder_;
    Counters counters_;
    std::vector<std::unique_ptr<Session>> sessions_;
    std::function<void()> when_ended_; // empty: serves
    netio::stream::StreamListener listener_;
};

} // namespace apps::copy
