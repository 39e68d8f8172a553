// SPDX-License-Identifier: Apache-2.0
#pragma once

// The programs on a bus that show their figures, while they are there.

#include "apps/common/peer_log.hpp"
#include "apps/top/table.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/discovery/bus.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace apps::top {

class BusSources final : private netio::pubsub::Discovery::Handler {
  public:
    // Throws std::invalid_argument for what is no bus.
    BusSources(netio::EventLoop& loop, const std::string& where);

    // Runs the loop until the bus was read for the first time. False: it could not be read, or the
    // loop was stopped.
    bool read();
    // In the order of their names.
    std::vector<Source> sources() const;

  private:
    static constexpr std::chrono::seconds patience{5};

    void on_announced(const netio::pubsub::Announcement& announcement) override;
    void on_gone(const std::string& name) override { addresses_.erase(name); }
    void on_trouble(const std::string& what) override;
    void on_caught_up() override;

    netio::EventLoop& loop_;
    PeerLog log_{loop_};
    std::map<std::string, std::string> addresses_; // by the name
    bool caught_up_ = false;
    bool reading_ = false;
    netio::Timer end_timer_{loop_, [this] { loop_.stop(); }};
    std::unique_ptr<netio::pubsub::Discovery> bus_;
};

} // namespace apps::top
