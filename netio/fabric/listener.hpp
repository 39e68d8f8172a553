// SPDX-License-Identifier: Apache-2.0
#pragma once

// A listening (passive) endpoint with its own event queue, so that unauthenticated peers never
// delay existing connections. If connections are kernel sockets, it has a HandshakeGuard. It pauses
// when no descriptor is free for another peer: the provider cannot accept then, and its listening
// socket stays readable. It also pauses when its queue reports only failures.

#include "netio/fabric/connection.hpp"
#include "netio/fabric/handshake_guard.hpp"

#include <optional>
#include <string>

namespace netio::fabric {

class Listener final : public netio::Listener, private EventSource {
  public:
    // Throws FabricError if the address is in use or not local.
    Listener(EventLoop& loop, const FabricOptions& options, Fabric& fabric, Info info,
             const Address& requested, Handler& handler);
    ~Listener() override;

    Address address() const override { return address_; }
    const std::string& provider() const noexcept override { return provider_; }
    void prepare(RegisteredBuffer& buffer) override;

  private:
    int wait_fd() const noexcept override { return wait_fd_; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override;

    class Request;

    // Returns false if the handler destroyed this listener.
    bool handle_request(const CmEvent& event);
    CmReader::Result read();
    bool is_broken(CmReader::Result result);
    template <typename Call>
    auto noting(Call call);
    void rest();
    void close_pending();

    EventLoop& loop_;
    Fabric& fabric_;
    Info info_;
    Handler& handler_;
    std::string provider_;
    int wait_fd_ = -1;
    EventQueueHandle events_;
    PassiveEndpointHandle endpoint_;
    Address address_;
    CmReader reader_;
    std::optional<HandshakeGuard> guard_;
    Timer rest_timer_;
    Request* pending_ = nullptr;      // being handled
    std::size_t nameless_errors_ = 0; // consecutive
};

} // namespace netio::fabric
