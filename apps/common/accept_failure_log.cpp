// SPDX-License-Identifier: Apache-2.0
#include "apps/common/accept_failure_log.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace apps {

AcceptFailureLog::AcceptFailureLog(netio::EventLoop& loop)
    : AcceptFailureLog{loop, [](const std::string& line) { spdlog::warn("{}", line); }} {}

AcceptFailureLog::AcceptFailureLog(netio::EventLoop& loop, const LimitedLog::Write& write)
    : log_{loop, write, 1}, rejected_{loop, write, 1} {}

void AcceptFailureLog::rejected(const std::string& peer_address, const std::string& why) {
    rejected_.note(fmt::format("{} is rejected: {}", peer_address, why));
}

void AcceptFailureLog::note(const std::string& peer_address, const netio::FabricError& why) {
    log_.note(fmt::format("{} is rejected: {}", peer_address, why.what()));
}

} // namespace apps
