// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the libraries tell a program's observer, as lines of its log. Peers may bring some of it
// about several times a second, so there are so many lines of a kind in an interval: of peers that
// are rejected one, with the number of the others and what happened to the last. Belongs to the
// loop's thread.

#include "apps/common/limited_log.hpp"
#include "netio/base/observer.hpp"

#include <functional>
#include <string>

namespace apps {

// A line about it.
std::string line_of(const netio::DeviceEvent& event);

class LogObserver final : public netio::Observer {
  public:
    struct Levels {
        LimitedLog::Write debug, info, warning, error;
    };

    // The program's log. Observes the loop until it is destroyed.
    explicit LogObserver(netio::EventLoop& loop);
    LogObserver(netio::EventLoop& loop, const Levels& levels);
    ~LogObserver();
    LogObserver(const LogObserver&) = delete;
    LogObserver& operator=(const LogObserver&) = delete;

  private:
    void on_peer_connected(const netio::PeerConnected& event) override;
    void on_peer_disconnected(const netio::PeerDisconnected& event) override;
    void on_peer_rejected(const netio::PeerRejected& event) override;
    void on_accept_failed(const netio::AcceptFailed& event) override;
    void on_not_admitted(const netio::NotAdmitted& event) override;
    void on_request_refused(const netio::RequestRefused& event) override;
    void on_key_file_problem(const std::string& problem) override;
    void on_key_revoked(const netio::KeyRevoked& event) override;
    void on_route_failed(const netio::RouteFailed& event) override;
    void on_provider_unused(const netio::ProviderUnused& event) override;
    void on_peer_stalled(const netio::PeerStalled& event) override;
    void on_peer_recovered(const netio::PeerRecovered& event) override;
    void on_device_event(const netio::DeviceEvent& event) override;

    netio::EventLoop& loop_;
    LimitedLog sessions_;
    LimitedLog rejected_;
    LimitedLog accept_failed_;
    LimitedLog not_admitted_;
    LimitedLog refused_;
    LimitedLog routes_;
    LimitedLog stalled_;
    LimitedLog warnings_;
    LimitedLog news_;
    LimitedLog errors_;
};

} // namespace apps
