// SPDX-License-Identifier: Apache-2.0
#pragma once

// Listens for sessions of one service, at several addresses and over several providers at once, and
// rejects everybody else before an endpoint exists for them: strangers, other versions, other
// services, peers whose receive buffers are too small. So it does with peers for whom this side has
// no memory, descriptors or endpoint left; its owner is told of those.

#include "netio/access/protection.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/session/places.hpp"
#include "netio/session/session.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::inline v0_2 {

class ServerKeys;

// A peer whose hello is in order; accept it or reject it within the handler. Once it is answered,
// as it is when the listener is destroyed, accept() throws FabricError and reject() does nothing.
class IncomingSession {
  public:
    // What it takes up here until its session is gone.
    struct Stay {
        std::unique_ptr<Admittance> admittance; // of who had to show a key
        Places::Place place;
    };
    IncomingSession(Transport& transport, ConnectionRequest& request, const Hello& peer, Stay stay,
                    std::string& refusal);
    ~IncomingSession();
    IncomingSession(const IncomingSession&) = delete;
    IncomingSession& operator=(const IncomingSession&) = delete;

    const Hello& peer() const noexcept { return peer_; }
    std::string peer_address() const { return request_.peer_address(); }
    // Of its key. Null: it may do everything.
    const access::Rights* rights() const noexcept;
    // That was agreed on with it.
    access::Protection protection() const noexcept;
    bool guards_memory() const noexcept { return request_.guards_memory(); }
    // Throws FabricError if this side lacks the means (no memory, no descriptors, a device that
    // refuses another endpoint). Let it out of on_incoming: the listener sees to the peer.
    std::unique_ptr<Session> accept(const Hello& hello, const SessionOptions& options,
                                    Session::Handler& handler);
    // `why`: what the operator is told; empty: what the rejection says.
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
        // A FabricError or std::bad_alloc that leaves it turns the peer away.
        virtual void on_incoming(IncomingSession& incoming) = 0;
        // The peer could not be accepted for this reason, and has been rejected (no_resources).
        // What on_incoming had begun for it is for on_incoming to undo. The loop's observer has
        // been told; may destroy the listener.
        virtual void on_accept_failed(const std::string& /*peer_address*/,
                                      const FabricError& /*why*/) {}
        // The peer has been rejected for what it is or asks for, here or by on_incoming, and the
        // observer told. May destroy the listener.
        virtual void on_peer_rejected(const std::string& /*peer_address*/,
                                      const std::string& /*why*/) {}

      protected:
        ~Handler() = default;
    };
    struct Options {
        Service service = Service::messages;
        std::vector<Address> addresses;
        bool open = false;             // they may be such that other machines reach
        std::size_t service_bytes = 0; // of the service's data in a peer's hello
        std::size_t required_receive_bytes = least_receive_bytes; // of a peer's receive buffers
        std::size_t place_limit = SIZE_MAX; // peers at once; one more is rejected
        // Of one host; 0: half of the places. Where there are keys, theirs counts.
        std::size_t links_per_host = 0;
        // Whom to let in. Null: everybody. With keys, service_bytes is 4 (checked).
        std::shared_ptr<ServerKeys> keys = nullptr;
    };

    // At each address over every provider that serves it; they share the port of the best one
    // where the fabric allows it. Throws FabricError if an address is served by none, and
    // std::invalid_argument if other machines reach one and it is not said to be open, or if the
    // keys are of another loop.
    SessionListener(Transport& transport, Options options, Handler& handler);
    ~SessionListener();
    SessionListener(const SessionListener&) = delete;
    SessionListener& operator=(const SessionListener&) = delete;

    std::vector<Endpoint> endpoints() const;
    // Listener::prepare, of all of them.
    void prepare(RegisteredBuffer& buffer);

  private:
    void on_request(ConnectionRequest& request) override;
    // `refusal`: why it is rejected, where more can be said of it than the rejection says. It
    // outlives the listener.
    void take_request(ConnectionRequest& request, std::string& refusal);
    void let_in(ConnectionRequest& request, std::string& refusal);
    // False: it has been answered, and may not be here any more.
    bool pass_gate(ConnectionRequest& request, const Hello& peer,
                   std::unique_ptr<Admittance>& admittance, std::string& refusal);
    // Null: there is none, and it has been answered.
    Places::Place place_for(ConnectionRequest& request, std::string& refusal);
    // None: it suits. Otherwise what to reject it with.
    Rejection judge(const Hello& peer, RejectCode problem) const;

    Transport& transport_;
    Options options_;
    Handler& handler_;
    bool* destroyed_ = nullptr;
    std::shared_ptr<Places> places_;
    std::vector<std::unique_ptr<Listener>> listeners_;
};

} // namespace netio::inline v0_2
