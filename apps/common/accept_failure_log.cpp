// SPDX-License-Identifier: Apache-2.0
#include "apps/common/accept_failure_log.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace apps {

AcceptFailureLog::AcceptFailureLog(netio::EventLoop& loop)
    : AcceptFailureLog{loop, [](const std::string& line) { spdlog::warn("{}", line); }} {}

AcceptFailureLog::AcceptFailureLog(netio::EventLoop& loop, LimitedLog::Write write)
    : log_{loop, std::move(write), 1} {}

void AcceptFailureLog::note(const std::string& peer_address, const netio::FabricError& why) {
    log_.note(fmt::format("{} is rejected: {}", peer_address, why.what()));
}

} // namespace apps
