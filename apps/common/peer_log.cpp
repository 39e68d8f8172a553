// SPDX-License-Identifier: Apache-2.0
#include "apps/common/peer_log.hpp"

#include <spdlog/spdlog.h>

namespace apps {

PeerLog::PeerLog(netio::EventLoop& loop)
    : PeerLog{loop, [](const std::string& line) { spdlog::info("{}", line); },
              [](const std::string& line) { spdlog::warn("{}", line); },
              [](const std::string& line) { spdlog::error("{}", line); }} {}

} // namespace apps
