// SPDX-License-Identifier: Apache-2.0
#pragma once

// The announcement of a running test publisher on the bus.

#include "apps/common/logging.hpp"
#include "apps/publish/publisher_config.hpp"
#include "netio/base/endpoint.hpp"
#include "pubsub/discovery/bus.hpp"

#include <memory>
#include <string>
#include <vector>

namespace apps {

// The process that announces itself.
struct Process {
    std::string host;
    int pid = 0;
    std::string started; // UTC
};
Process this_process();

// Throws ConfigError if the publisher is to be announced and its fids do not fit into an
// announcement.
void refuse_unannounceable(const PublisherConfig& config);

// Returns the announcement of a publisher. No I/O.
netio::pubsub::Announcement announcement_of(const PublisherConfig& config,
                                            const std::vector<netio::Endpoint>& endpoints,
                                            const Process& process);

class BusPlace final : private netio::pubsub::Announcer::Handler {
  public:
    BusPlace(netio::EventLoop& loop, const BusConfig& config,
             const netio::pubsub::Announcement& announcement);

  private:
    void on_trouble(const std::string& what) override;
    void on_written() override;

    PeerLog log_;
    std::string place_; // NAME at BUS
    std::unique_ptr<netio::pubsub::Announcer> announcer_;
};

// Announces a publisher. Returns null if the configuration has no bus. Throws ConfigError if it
// does not fit into an announcement.
std::unique_ptr<BusPlace> announce_publisher(netio::EventLoop& loop, const PublisherConfig& config,
                                             const std::vector<netio::Endpoint>& endpoints);

// Throws what announce_publisher() would throw, but announces nothing.
void check_announcement(netio::EventLoop& loop, const PublisherConfig& config,
                        const std::vector<netio::Endpoint>& endpoints);

} // namespace apps
