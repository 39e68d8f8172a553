// SPDX-License-Identifier: Apache-2.0
#include "apps/top/bus_sources.hpp"

#include <spdlog/spdlog.h>

namespace apps::top {

BusSources::BusSources(const std::string& where) : bus_{netio::pubsub::open_bus(loop_, where)} {
    bus_->watch(*this);
}

bool BusSources::read() {
    reading_ = true;
    wait(patience);
    reading_ = false;
    return caught_up_;
}

void BusSources::wait(netio::Duration time) {
    end_timer_.start(time);
    loop_.run();
    end_timer_.cancel();
}

std::vector<std::string> BusSources::addresses() const {
    std::vector<std::string> addresses;
    for (const auto& [name, address] : addresses_)
        addresses.push_back(address);
    return addresses;
}

void BusSources::on_announced(const netio::pubsub::Announcement& announcement) {
    if (announcement.metrics.empty()) {
        addresses_.erase(announcement.name);
    } else {
        addresses_[announcement.name] = announcement.metrics;
    }
}

void BusSources::on_trouble(const std::string& what) {
    spdlog::warn("bus: {}", what);
}

void BusSources::on_caught_up() {
    caught_up_ = true;
    if (reading_) loop_.stop();
}

} // namespace apps::top
