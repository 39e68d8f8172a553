// SPDX-License-Identifier: Apache-2.0
#pragma once

// A listening (passive) endpoint with an event queue of its own, so that strangers at its door
// never stand in the way of connections that exist. It also polices the door where connections
// are kernel sockets (netio/fabric/tcp_sockets.hpp): who connects and does not finish the
// provider's handshake within the stranger time-out is cut off.

#include "netio/fabric/connection.hpp"

#include <set>
#include <string>

namespace netio::fabric {

class Listener final : public netio::Listener, private EventSource {
  public:
    // Throws FabricError: the address is in use or not local.
    Listener(EventLoop& loop, const FabricOptions& options, Fabric& fabric, Info info,
             const Address& requested, Handler& handler);
    ~Listener() override;

    Address address() const override { return address_; }
    const std::string& provider() const noexcept override { return provider_; }

  private:
    int wait_fd() const noexcept override { return wait_fd_; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override;

    class Request;

    // False: the handler destroyed this listener.
    bool handle_request(const CmEvent& event);
    void look_for_strangers();

    EventLoop& loop_;
    const FabricOptions& options_;
    Fabric& fabric_;
    Info info_;
    Handler& handler_;
    std::string provider_;
    int wait_fd_ = -1;
    EventQueueHandle events_;
    PassiveEndpointHandle endpoint_;
    Address address_;
    CmReader reader_;
    Timer stranger_timer_;
    std::size_t idle_drains_ = 0;
    std::set<std::string> known_peers_; // finished the provider's handshake
    std::set<std::string> suspects_;    // had not, when we last looked
    Request* pending_ = nullptr;        // being handled
};

} // namespace netio::fabric
