// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of a ListenSocket: who has connected, and how their frames become messages. Private to
// netio/messages.

#include "netio/messages/listen_socket.hpp"
#include "netio/messages/receive_core.hpp"
#include "netio/session/session_listener.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace netio::inline v0_2 {

class ListenCore final : private SessionListener::Handler, private Session::Handler {
  public:
    ListenCore(ListenSocket& socket, Transport& transport, ListenSocket::Options options,
               ListenSocket::Handler& handler);
    ~ListenCore();
    ListenCore(const ListenCore&) = delete;
    ListenCore& operator=(const ListenCore&) = delete;

    void stop_listening() noexcept { listener_.reset(); }
    void close();
    void abort();
    std::vector<Endpoint> endpoints() const;
    EventLoop& loop() const noexcept { return loop_; }
    std::size_t peer_count() const noexcept { return peers_.size(); }
    std::vector<ReceiveSocket*> peers() const;
    const ListenSocket::Counters& counters() const noexcept { return counters_; }

  private:
    void on_incoming(IncomingSession& incoming) override;
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override;
    void on_peer_rejected(const std::string& peer_address, const std::string& why) override;
    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    void close_some();
    void go_on_ending();
    void hand_over(ReceiveCore& peer, std::span<const std::byte> message,
                   std::optional<std::uint64_t> immediate);
    // What is wrong with it; empty: nothing.
    std::string_view take_frame(ReceiveCore& peer, const IncomingFrame& frame);
    std::string_view take_message(ReceiveCore& peer, const IncomingFrame& frame);
    std::string_view take_page(ReceiveCore& peer, std::span<const std::byte> body);
    std::string_view take_fragment(ReceiveCore& peer, std::span<const std::byte> body);

    ListenSocket& socket_;
    EventLoop& loop_;
    ListenSocket::Options options_;
    ListenSocket::Handler& handler_;
    std::unique_ptr<SessionListener> listener_;
    std::unordered_map<const Session*, std::unique_ptr<ReceiveCore>> peers_;
    ListenSocket::Counters counters_;
    std::optional<Closed> end_; // after close() or abort()
    std::vector<const Session*> to_close_;
    bool* destroyed_ = nullptr;
    Timer end_timer_; // closes the next ones, and tells it when the last sender is gone
};

} // namespace netio::inline v0_2
