// SPDX-License-Identifier: Apache-2.0
#pragma once

// Listens for sessions of one service, at several addresses and over several providers, and rejects
// all other requests before an endpoint exists for them: unauthenticated peers, other versions,
// other services, peers whose receive buffers are too small. It also rejects peers for which this
// side lacks memory, descriptors or endpoints, and reports those to its owner.

#include "netio/access/peer_limiter.hpp"
#include "netio/access/protection.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/session/session.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::inline v0_3 {

class ServerKeys;

// A peer with a valid hello, to be accepted or rejected within the handler. Once it is answered,
// which the destruction of the listener does as well, accept() throws FabricError and reject() does
// nothing.
class IncomingSession {
  public:
    // What the peer occupies until its session is destroyed.
    struct Stay {
        std::unique_ptr<AdmittedPeer> admitted; // of a peer with a key
        access::PeerSlot slot;
    };
    IncomingSession(Transport& transport, ConnectionRequest& request, const Hello& peer, Stay stay,
                    std::string& refusal);
    ~IncomingSession();
    IncomingSession(const IncomingSession&) = delete;
    IncomingSession& operator=(const IncomingSession&) = delete;

    const Hello& peer() const noexcept { return peer_; }
    std::string peer_address() const { return request_.peer_address(); }
    // What the peer may do; null: everything.
    const access::Rights* rights() const noexcept;
    // Agreed on with the peer.
    access::Protection protection() const noexcept;
    bool guards_memory() const noexcept { return request_.guards_memory(); }
    // Throws FabricError if this side lacks memory, descriptors or an endpoint. on_incoming need
    // not catch it: the listener rejects the peer then.
    std::unique_ptr<Session> accept(const Hello& hello, const SessionOptions& options,
                                    Session::Handler& handler);
    // `why`: reported to the operator; empty: the text of the code.
    void reject(const Rejection& rejection, std::string why = {});
    bool is_answered() const noexcept { return request_.is_answered(); }

  private:
    Transport& transport_;
    ConnectionRequest& request_;
    const Hello& peer_;
    Stay stay_;
    std::string& refusal_;
};

class SessionListener final : private Listener::Handler {
  public:
    class Handler {
      public:
        // If it throws FabricError or std::bad_alloc, the peer is rejected.
        virtual void on_incoming(IncomingSession& incoming) = 0;
        // The peer could not be accepted for this reason, and was rejected (no_resources).
        // on_incoming has to undo what it had begun. The loop's observer was notified. May destroy
        // the listener.
        virtual void on_accept_failed(const std::string& /*peer_address*/,
                                      const FabricError& /*why*/) {}
        // The peer was rejected because of its hello or its request, here or by on_incoming. The
        // observer was notified. May destroy the listener.
        virtual void on_peer_rejected(const std::string& /*peer_address*/,
                                      const std::string& /*why*/) {}

      protected:
        ~Handler() = default;
    };
    struct Options {
        Service service = Service::messages;
        std::vector<Address> listen;
        bool allow_remote_anonymous = false; // peers of other machines may connect without keys
        std::size_t service_bytes = 0;       // size of the service's data in a peer's hello
        std::size_t required_receive_bytes = least_receive_bytes; // of a peer's receive buffers
        std::size_t peer_limit = SIZE_MAX;                        // simultaneous peers
        // Limit of peers per host; 0: half of peer_limit. With keys, the limit of the keys
        // applies.
        std::size_t connections_per_host = 0;
        // The keys of admitted peers; null: all peers are admitted. With keys, service_bytes is 4
        // (checked).
        std::shared_ptr<ServerKeys> keys = nullptr;
    };

    // Listens at each address over every provider that serves it; providers share the port of the
    // best one where the fabric allows it. Throws FabricError if no provider serves an address, and
    // std::invalid_argument if an address is reachable from other machines without keys and
    // `allow_remote_anonymous` is not set, or if the keys belong to another loop.
    SessionListener(Transport& transport, Options options, Handler& handler);
    ~SessionListener();
    SessionListener(const SessionListener&) = delete;
    SessionListener& operator=(const SessionListener&) = delete;

    std::vector<Endpoint> endpoints() const;
    // Listener::prepare, for all listeners.
    void prepare(RegisteredBuffer& buffer);

  private:
    void on_request(ConnectionRequest& request) override;
    // `refusal`: why the peer is rejected, if there is more to report than the code. It outlives
    // the listener.
    void take_request(ConnectionRequest& request, std::string& refusal);
    void admit_peer(ConnectionRequest& request, std::string& refusal);
    // Returns false if the request was answered; the peer may be gone then.
    bool authenticate(ConnectionRequest& request, const Hello& peer,
                      std::unique_ptr<AdmittedPeer>& admitted, std::string& refusal);
    // Returns null if there is no slot; the request was answered then.
    access::PeerSlot slot_for(ConnectionRequest& request, std::string& refusal);
    // What to reject the peer with; code none: nothing.
    Rejection judge(const Hello& peer, RejectCode problem) const;

    Transport& transport_;
    const Transport::Use use_{transport_};
    Options options_;
    Handler& handler_;
    bool* destroyed_ = nullptr;
    access::PeerLimiter limiter_;
    std::vector<std::unique_ptr<Listener>> listeners_;
};

} // namespace netio::inline v0_3
