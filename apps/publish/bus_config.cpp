// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/bus_config.hpp"

#include "apps/publish/section_reader.hpp"
#include "netio/base/status.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <filesystem>
#include <stdexcept>

namespace apps {
namespace {

std::string read_where(const YamlValue& value, const std::string& folder) {
    std::string where = value.text("a directory");
    const std::filesystem::path path{where};
    if (where.find("://") != std::string::npos || path.is_absolute() || folder.empty())
        return where;
    return (std::filesystem::path{folder} / path).string();
}

std::string read_name(const YamlValue& value) {
    const std::string allowed =
        "up to 128 letters, digits, '.', '_' and '-', beginning with a letter or a digit";
    std::string name = value.text(allowed);
    if (!netio::pubsub::is_announced_name(name)) value.fail("'" + name + "' is no name", allowed);
    return name;
}

std::string read_host(const YamlValue& value) {
    const std::string allowed = "the name or the address of this host, without a port";
    std::string host = value.text(allowed);
    try {
        static_cast<void>(netio::parse_address(to_string(netio::Address{host, 1})));
    } catch (const std::invalid_argument&) {
        value.fail("'" + host + "' is no host", allowed);
    }
    return host;
}

} // namespace

BusConfig read_bus(const YamlValue& value, const std::string& folder) {
    BusConfig bus;
    if (!value.is_map()) {
        bus.where = read_where(value, folder);
        return bus;
    }
    const SectionReader map{value, {"bus"}};
    bus.where = read_where(map.get("at"), folder);
    if (const auto v = map.find("name")) bus.name = read_name(*v);
    if (const auto v = map.find("advertise")) bus.advertise = read_host(*v);
    map.time("lease_ms", bus.lease);
    return bus;
}

} // namespace apps
