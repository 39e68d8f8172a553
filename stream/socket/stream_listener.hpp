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

#include "netio/base/export.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/session/session_listener.hpp"

#include <memory>
#include <vector>

namespace netio::stream::inline v0_2 {

// A peer that speaks the stream protocol. Valid during on_incoming only.
class NETIO_EXPORT IncomingStream {
  public:
    std::string peer_address() const { return incoming_.peer_address(); }
    // Throws std::invalid_argument (options), and FabricError if this side lacks the means (no
    // memory, no descriptors, a device that refuses another endpoint). Let that out of on_incoming:
    // the listener tells the peer, and the handler in on_accept_failed.
    std::unique_ptr<StreamSocket> accept(StreamSocket::Options options,
                                         StreamSocket::Handler& handler);

  private:
    friend class StreamListener;
    IncomingStream(Transport& transport, IncomingSession& incoming)
        : transport_{transport}, incoming_{incoming} {}

    Transport& transport_;
    IncomingSession& incoming_;
};

class NETIO_EXPORT StreamListener final : private SessionListener::Handler {
  public:
    class Handler {
      public:
        virtual void on_incoming(IncomingStream& incoming) = 0;
        // A peer was turned away because this side lacks the means: no memory, no locked memory, no
        // descriptors, a device that refuses another endpoint; `why` names the remedy where there
        // is one. Ignoring it loses nothing: the peer has been told, may try again, and nothing of
        // it is kept here. But only here can it be mended, so tell who looks after the program.
        virtual void on_accept_failed(const std::string& /*peer_address*/,
                                      const FabricError& /*why*/) {}

      protected:
        ~Handler() = default;
    };

    // Throws FabricError: an address is in use, not local, or served by no provider.
    StreamListener(Transport& transport, std::vector<Address> addresses, Handler& handler);
    ~StreamListener();
    StreamListener(const StreamListener&) = delete;
    StreamListener& operator=(const StreamListener&) = delete;

    std::vector<SessionListener::Endpoint> endpoints() const;

  private:
    void on_incoming(IncomingSession& incoming) override;
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override;

    Transport& transport_;
    Handler& handler_;
    SessionListener listener_;
};

} // namespace netio::stream::inline v0_2
