// SPDX-License-Identifier: Apache-2.0
#pragma once

// Listens for streams. Every peer that connects is passed to the handler, which accepts it as a
// StreamSocket; otherwise the peer is rejected.
//
//     void on_incoming(stream::IncomingStream& incoming) override {
//         sockets.push_back(incoming.accept(options, handler)); // on_connected follows
//     }
//
// Belongs to the loop's thread; may be destroyed in its handler, which rejects a peer that is not
// answered yet.

#include "netio/base/address_list.hpp"
#include "netio/base/export.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/base/endpoint.hpp"

#include <memory>
#include <vector>

namespace netio::access::inline v0_3 {
struct Rights;
} // namespace netio::access::inline v0_3

namespace netio::inline v0_3 {
class ServerKeys;
} // namespace netio::inline v0_3

namespace netio::stream::inline v0_3 {

// A peer that speaks the stream protocol. Valid during on_incoming only.
class NETIO_EXPORT IncomingStream {
  public:
    std::string peer_address() const;
    // The rights of the peer's key (netio/access/rights.hpp). Null if the listener has no keys: the
    // peer may do everything.
    const access::Rights* rights() const noexcept;
    // Throws std::invalid_argument (options), and FabricError if this side lacks a resource
    // (memory, descriptors, an endpoint of the device) or if the peer was already answered. Do not
    // catch FabricError in on_incoming: the listener notifies the peer and the observer.
    std::unique_ptr<StreamSocket> accept(StreamSocket::Options options,
                                         StreamSocket::Handler& handler);
    // `why` is passed to the loop's observer, not to the peer. Does nothing if the peer was already
    // answered. If on_incoming neither accepts nor rejects the peer, the listener rejects it
    // without a reason.
    void reject(std::string why);

  private:
    friend class StreamAcceptor;
    IncomingStream(Transport& transport, IncomingSession& incoming)
        : transport_{transport}, incoming_{incoming} {}

    Transport& transport_;
    IncomingSession& incoming_;
};

class StreamAcceptor;

class NETIO_EXPORT StreamListener final {
  public:
    struct Options {
        AddressList listen{};
        bool allow_remote_anonymous = false; // peers of other machines may connect without keys
        std::shared_ptr<ServerKeys> keys{};  // of the accepted peers; null: no key is needed
    };

    class Handler {
      public:
        virtual void on_incoming(IncomingStream& incoming) = 0;
        // A peer was rejected because this side has too little memory or too few descriptors. The
        // loop's observer is notified as well. May destroy the listener.
        virtual void on_accept_failed(const std::string& /*peer_address*/,
                                      const FabricError& /*why*/) {}

      protected:
        ~Handler() = default;
    };

    // Throws FabricError if an address is in use, not local, or served by no provider. Throws
    // std::invalid_argument if other machines can reach it, there are no keys, and
    // `allow_remote_anonymous` is false.
    StreamListener(Transport& transport, Options options, Handler& handler);
    ~StreamListener();
    StreamListener(const StreamListener&) = delete;
    StreamListener& operator=(const StreamListener&) = delete;

    // The addresses where it listens, with the ports that were actually bound.
    std::vector<Endpoint> endpoints() const;

  private:
    std::unique_ptr<StreamAcceptor> acceptor_;
};

} // namespace netio::stream::inline v0_3
