// SPDX-License-Identifier: Apache-2.0
#pragma once

// A test publisher's place on the bus, while it runs.

#include "apps/common/logging.hpp"
#include "apps/publish/publisher_config.hpp"
#include "netio/base/endpoint.hpp"
#include "pubsub/discovery/bus.hpp"

#include <memory>
#include <string>
#include <vector>

namespace apps {

// Who it is that announces itself.
struct Process {
    std::string host;
    int pid = 0;
    std::string started; // UTC
};
Process this_process();

// Throws ConfigError: it is to be announced, and its fids do not fit into an announcement.
void refuse_unannounceable(const PublisherConfig& config);

// What a publisher says of itself. No I/O.
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

// Null where nothing is to be announced. Throws ConfigError: it does not fit into an announcement.
std::unique_ptr<BusPlace> announce_publisher(netio::EventLoop& loop, const PublisherConfig& config,
                                             const std::vector<netio::Endpoint>& endpoints);

// Throws what announce_publisher() would throw, and announces nothing.
void check_announcement(netio::EventLoop& loop, const PublisherConfig& config,
                        const std::vector<netio::Endpoint>& endpoints);

} // namespace apps
