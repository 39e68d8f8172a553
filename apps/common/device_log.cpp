// SPDX-License-Identifier: Apache-2.0
#include "apps/common/device_log.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace apps {

using Kind = netio::DeviceEvent::Kind;

std::string line_of(const netio::DeviceEvent& event) {
    const std::string who =
        event.port == 0 ? event.device : fmt::format("port {} of {}", event.port, event.device);
    switch (event.kind) {
    case Kind::port_up:
        return who + " is active";
    case Kind::port_down:
        return who + " is down";
    case Kind::device_failed:
        return who + " has failed";
    case Kind::changed:
        break;
    }
    return who + ": " + event.what;
}

DeviceLog::DeviceLog(netio::EventLoop& loop)
    : information_{loop, [](const std::string& line) { spdlog::info("{}", line); }},
      warnings_{loop, [](const std::string& line) { spdlog::warn("{}", line); }},
      watch_{loop, [this](const netio::DeviceEvent& event) { note(event); }} {}

void DeviceLog::note(const netio::DeviceEvent& event) {
    const bool bad = event.kind == Kind::port_down || event.kind == Kind::device_failed;
    (bad ? warnings_ : information_).note(line_of(event));
}

} // namespace apps
