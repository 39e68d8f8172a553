// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/bus_place.hpp"

#include "netio/access/host.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <map>
#include <span>
#include <unistd.h>

namespace apps {
namespace {

using netio::pubsub::AnnouncedFids;
using netio::pubsub::Announcement;
using netio::pubsub::FidRange;

// Reduces a host name to letters, digits and hyphens; the first character is a letter or a digit.
std::string as_name(std::string host) {
    std::ranges::replace_if(
        host, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; }, '-');
    if (host.empty() || std::isalnum(static_cast<unsigned char>(host.front())) == 0)
        host.insert(0, "host");
    return host.substr(0, 64);
}

bool stands_for_all(const std::string& text) {
    const auto host = netio::access::parse_host(text);
    return host && netio::access::is_any(*host);
}

std::vector<AnnouncedFids> announced(const std::vector<StreamConfig>& streams) {
    std::map<std::string, std::vector<FidRange>> by_meaning;
    for (const StreamConfig& stream : streams) {
        auto& ranges = by_meaning[stream.meaning];
        ranges.insert(ranges.end(), stream.fids.begin(), stream.fids.end());
    }
    std::vector<AnnouncedFids> fids;
    for (const auto& [meaning, ranges] : by_meaning)
        for (const FidRange& range : netio::pubsub::normalised(ranges))
            fids.push_back({.fids = range, .meaning = meaning});
    return fids;
}

} // namespace

Process this_process() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 32> started{};
    std::strftime(started.data(), started.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return {.host = netio::pubsub::this_host(),
            .pid = static_cast<int>(::getpid()),
            .started = started.data()};
}

void refuse_unannounceable(const PublisherConfig& config) {
    if (config.bus.where.empty()) return;
    const std::size_t ranges = announced(config.streams).size();
    if (ranges <= netio::pubsub::announced_ranges_limit) return;
    refuse_at(config, "bus",
              fmt::format("the fids are {} separate ranges, but an announcement has at most {}; "
                          "divide them among publishers or loops, or publish them without a bus",
                          ranges, netio::pubsub::announced_ranges_limit));
}

Announcement announcement_of(const PublisherConfig& config,
                             const std::vector<netio::Endpoint>& endpoints,
                             const Process& process) {
    Announcement announcement{
        .name = config.bus.name.empty()
                    ? fmt::format("{}-{}-{}", as_name(process.host), process.pid, config.position)
                    : config.bus.name,
        .instance = netio::pubsub::draw_instance(),
        .fids = announced(config.streams),
        .mode = config.buffered ? "buffered" : "unbuffered",
        .parameters = {{"largest_message", std::to_string(config.publisher.largest_message_bytes)}},
        .host = process.host,
        .pid = process.pid,
        .started = process.started};
    if (config.buffered) {
        announcement.parameters.emplace("page_size",
                                        std::to_string(config.buffered_options.page_size_bytes));
    }
    const auto as_others_see = [&](netio::Address address) {
        const std::string& self =
            config.bus.advertise.empty() ? process.host : config.bus.advertise;
        if (stands_for_all(address.host)) address.host = self;
        return address;
    };
    for (const netio::Endpoint& endpoint : endpoints) {
        announcement.addresses.push_back(netio::pubsub::to_announced_address(
            {.provider = endpoint.provider, .address = as_others_see(endpoint.address)}));
    }
    if (!config.metrics.listen.empty()) {
        const netio::Address metrics = netio::parse_address(config.metrics.listen);
        if (metrics.port != 0) announcement.metrics = to_string(as_others_see(metrics));
    }
    return announcement;
}

BusPlace::BusPlace(netio::EventLoop& loop, const BusConfig& config,
                   const Announcement& announcement)
    : log_{loop}, place_{fmt::format("{} at {}", announcement.name, config.where)} {
    announcer_ =
        netio::pubsub::announce(loop, config.where, announcement, *this, {.lease = config.lease});
}

void BusPlace::on_written() {
    spdlog::info("announced as {}", place_);
}

void BusPlace::on_trouble(const std::string& what) {
    log_.warn("bus: " + what);
}

namespace {

Announcement announcement_here(const PublisherConfig& config,
                               const std::vector<netio::Endpoint>& endpoints) {
    PublisherConfig shown = config;
    if (!config.metrics.listen.empty()) // an interface name is valid on this machine only
        shown.metrics.listen = to_string(metrics_address(config.metrics));
    return announcement_of(shown, endpoints, this_process());
}

} // namespace

std::unique_ptr<BusPlace> announce_publisher(netio::EventLoop& loop, const PublisherConfig& config,
                                             const std::vector<netio::Endpoint>& endpoints) {
    if (config.bus.where.empty()) return nullptr;
    return told_at(config, "bus", [&] {
        return std::make_unique<BusPlace>(loop, config.bus, announcement_here(config, endpoints));
    });
}

void check_announcement(netio::EventLoop& loop, const PublisherConfig& config,
                        const std::vector<netio::Endpoint>& endpoints) {
    if (config.bus.where.empty()) return;
    told_at(config, "bus", [&] {
        static_cast<void>(to_text(announcement_here(config, endpoints)));
        static_cast<void>(
            netio::pubsub::open_bus(loop, config.bus.where, {.lease = config.bus.lease}));
    });
}

} // namespace apps
