// SPDX-License-Identifier: Apache-2.0
#pragma once

// Listens for streams: every peer that connects is offered to the handler, which accepts it into a
// StreamSocket of its own, or leaves it, which turns it away.
//
//     void on_incoming(stream::IncomingStream& incoming) override {
//         sockets.push_back(incoming.accept(options, handler)); // on_connected follows
//     }
//
// Belongs to the loop's thread; may be destroyed in its handler.

#include "stream/stream_socket.hpp"

#include "netio/link_listener.hpp"

#include <memory>
#include <vector>

namespace stream {

// A peer that speaks the stream protocol. Valid during on_incoming only.
class IncomingStream {
  public:
    std::string peer_address() const { return incoming_.peer_address(); }
    // May throw FabricError (no memory or descriptors left) and std::invalid_argument (options).
    std::unique_ptr<StreamSocket> accept(StreamOptions options, StreamSocket::Handler& handler);

  private:
    friend class StreamListener;
    IncomingStream(netio::Transport& transport, netio::IncomingLink& incoming)
        : transport_{transport}, incoming_{incoming} {}

    netio::Transport& transport_;
    netio::IncomingLink& incoming_;
    bool accepted_ = false;
};

class StreamListener final : private netio::LinkListener::Handler {
  public:
    class Handler {
      public:
        virtual void on_incoming(IncomingStream& incoming) = 0;

      protected:
        ~Handler() = default;
    };

    // Throws FabricError: an address is in use, not local, or served by no provider.
    StreamListener(netio::Transport& transport, std::vector<netio::Address> addresses,
                   Handler& handler);

    std::vector<netio::LinkListener::Endpoint> endpoints() const { return listener_.endpoints(); }

  private:
    void on_incoming(netio::IncomingLink& incoming) override;

    netio::Transport& transport_;
    Handler& handler_;
    netio::LinkListener listener_;
};

} // namespace stream
