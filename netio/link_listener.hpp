// SPDX-License-Identifier: Apache-2.0
#pragma once

// Listens for links of one service, at several addresses and over several providers at once, and
// turns away everybody else before an endpoint exists for them: strangers, other versions, other
// services, peers whose receive buffers are too small.

#include "netio/link.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio {

// A peer whose hello is in order; accept it or reject it within the handler.
class IncomingLink {
  public:
    IncomingLink(Transport& transport, ConnectionRequest& request, const Hello& peer)
        : transport_{transport}, request_{request}, peer_{peer} {}

    const Hello& peer() const noexcept { return peer_; }
    std::string peer_address() const { return request_.peer_address(); }
    // May throw FabricError (no memory or descriptors left).
    std::unique_ptr<Link> accept(const Hello& hello, const LinkOptions& options,
                                 Link::Handler& handler);
    void reject(const Rejection& rejection);

  private:
    Transport& transport_;
    ConnectionRequest& request_;
    const Hello& peer_;
};

class LinkListener final : private Listener::Handler {
  public:
    class Handler {
      public:
        virtual void on_incoming(IncomingLink& incoming) = 0;

      protected:
        ~Handler() = default;
    };
    struct Options {
        Service service = Service::messages;
        std::vector<Address> addresses;
        std::size_t service_bytes = 0; // of the service's data in a peer's hello
        std::size_t required_receive_bytes = least_receive_bytes; // of a peer's receive buffers
    };

    // At each address over every provider that serves it; they share the port of the best one
    // where the fabric allows it. Throws FabricError if an address is served by none.
    LinkListener(Transport& transport, Options options, Handler& handler);

    struct Endpoint {
        std::string provider;
        Address address;
    };
    std::vector<Endpoint> endpoints() const;

  private:
    void on_request(ConnectionRequest& request) override;

    Transport& transport_;
    Options options_;
    Handler& handler_;
    std::vector<std::unique_ptr<Listener>> listeners_;
};

} // namespace netio
