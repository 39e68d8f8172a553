// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is behind a StreamSocket: its options, the search for a way to the peer, and the
// conversation, if there is one now.

#include "stream/socket/conversation.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/session/connector.hpp"

#include <memory>

namespace netio::stream::inline v0_2 {

class StreamSocket::Core final : private Connector::Handler {
  public:
    Core(StreamSocket& socket, Transport& transport, Options options,
         StreamSocket::Handler& handler);

    void connect(const Address& remote);
    void accept(IncomingSession& incoming);
    Status send(const Slice& slice, Cookie cookie);
    void shutdown_send();
    void close();
    void abort();

    bool is_connected() const noexcept { return conversation_ && conversation_->is_open(); }
    // Null without a connection or an attempt at one.
    Conversation* conversation() const noexcept { return conversation_.get(); }
    Counters counters() const { return conversation_ ? conversation_->counters() : last_counters_; }

    // For the conversation, and what it reports. Either may destroy this.
    StreamSocket& socket() const noexcept { return socket_; }
    Transport& transport() const noexcept { return transport_; }
    EventLoop& loop() const noexcept { return loop_; }
    const Options& options() const noexcept { return options_; }
    StreamSocket::Handler& handler() const noexcept { return handler_; }
    void on_open();
    void on_ended(const Closed& closed);

  private:
    void on_route(const Session::Target& target) override;
    void on_connect_failed(const Closed& closed) override;

    StreamSocket& socket_;
    Transport& transport_;
    EventLoop& loop_;
    const Options options_;
    StreamSocket::Handler& handler_;
    Connector connector_;
    bool shut_down_ = false; // shutdown_send() was called
    bool closing_ = false;   // close() or abort() was
    std::unique_ptr<Conversation> conversation_;
    Counters last_counters_;
};

} // namespace netio::stream::inline v0_2
