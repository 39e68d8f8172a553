// SPDX-License-Identifier: Apache-2.0
#include "apps/top/bus_sources.hpp"

#include "apps/common/option_values.hpp"
#include "pubsub/discovery/bus.hpp"

#include <fmt/format.h>

namespace apps::top {
namespace {

// What cannot be read is kept: to ask there says what is wrong with it.
bool leads_there(const netio::pubsub::Announcement& announcement) {
    try {
        return netio::pubsub::leads_there_from(netio::pubsub::this_host(), announcement,
                                               peer_address(announcement.metrics));
    } catch (const std::invalid_argument&) {
        return true;
    }
}

} // namespace

BusSources::BusSources(netio::EventLoop& loop, const std::string& where)
    : loop_{loop}, bus_{netio::pubsub::open_bus(loop, where)} {
    bus_->watch(*this);
}

bool BusSources::read() {
    reading_ = true;
    end_timer_.start(patience);
    loop_.run();
    end_timer_.cancel();
    reading_ = false;
    return caught_up_;
}

std::vector<Source> BusSources::sources() const {
    std::vector<Source> sources;
    for (const auto& [name, address] : addresses_)
        sources.push_back({.address = address, .name = name});
    return sources;
}

void BusSources::on_announced(const netio::pubsub::Announcement& announcement) {
    addresses_.erase(announcement.name);
    if (announcement.metrics.empty()) return;
    if (leads_there(announcement)) {
        addresses_[announcement.name] = announcement.metrics;
    } else {
        log_.info(fmt::format("{} shows its figures at {} on {} only", announcement.name,
                              announcement.metrics, announcement.host));
    }
}

void BusSources::on_trouble(const std::string& what) {
    log_.warn("bus: " + what);
}

void BusSources::on_caught_up() {
    caught_up_ = true;
    if (reading_) loop_.stop();
}

} // namespace apps::top
