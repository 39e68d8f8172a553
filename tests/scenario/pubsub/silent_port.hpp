// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/transport.hpp"

#include <memory>
#include <span>
#include <vector>

namespace netio::pubsub::test {

// Accepts connections and sends nothing.
class SilentPort final : private netio::Listener::Handler, private netio::Connection::Handler {
  public:
    SilentPort(netio::Transport& transport, const netio::Address& at)
        : listener_{transport.listen(transport.providers_at(at).front(), at,
                                     {.allow_remote_anonymous = true},
                                     static_cast<netio::Listener::Handler&>(*this))} {}
    netio::Address address() const { return listener_->address(); }
    std::size_t requests() const { return taken_.size(); } // so far

  private:
    void on_request(netio::ConnectionRequest& request) override {
        taken_.push_back(request.make_connection({.send_count = 1, .receive_count = 1},
                                                 static_cast<netio::Connection::Handler&>(*this)));
    }
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const netio::Completion&) override {}
    void on_closed(const netio::Closed&) override {}

    std::vector<std::unique_ptr<netio::Connection>> taken_;
    std::unique_ptr<netio::Listener> listener_;
};

} // namespace netio::pubsub::test
