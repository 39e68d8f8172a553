// SPDX-License-Identifier: Apache-2.0
#pragma once

// An observer for tests that records its notifications.

#include "netio/base/observer.hpp"

#include <string>
#include <utility>
#include <vector>

namespace netio::test {

class Seen final : public Observer {
  public:
    void on_peer_connected(const PeerConnected& event) override {
        connected.push_back(event.peer + " over " + event.provider);
    }
    void on_peer_disconnected(const PeerDisconnected& event) override {
        disconnected.push_back(event);
    }
    void on_peer_rejected(const PeerRejected& event) override {
        rejected.push_back(event.peer + ": " + event.why);
    }
    void on_accept_failed(const AcceptFailed& event) override {
        accept_failed.push_back(event.peer + ": " + event.why.what());
    }
    void on_not_admitted(const NotAdmitted& event) override {
        not_admitted.push_back(std::to_string(event.key) + ": " + event.why);
    }
    void on_key_file_problem(const std::string& problem) override {
        key_file_problems.push_back(problem);
    }
    void on_key_revoked(const KeyRevoked& event) override {
        revoked.emplace_back(event.key, event.sessions);
    }
    void on_route_failed(const RouteFailed& event) override { routes_failed.push_back(event); }
    void on_provider_unused(const ProviderUnused& event) override { unused.push_back(event); }
    void on_request_refused(const RequestRefused& event) override { refused.push_back(event); }
    void on_no_history(const NoHistory& event) override { no_history.push_back(event.peer); }
    void on_peer_stalled(const PeerStalled& event) override { stalled.push_back(event.peer); }
    void on_peer_recovered(const PeerRecovered& event) override { recovered.push_back(event); }
    void on_device_event(const DeviceEvent& event) override { devices.push_back(event); }

    std::vector<std::string> connected, rejected, accept_failed, not_admitted, key_file_problems,
        stalled, no_history;
    std::vector<PeerDisconnected> disconnected;
    std::vector<RequestRefused> refused;
    std::vector<std::pair<unsigned, std::size_t>> revoked;
    std::vector<RouteFailed> routes_failed;
    std::vector<ProviderUnused> unused;
    std::vector<PeerRecovered> recovered;
    std::vector<DeviceEvent> devices;
};

} // namespace netio::test
