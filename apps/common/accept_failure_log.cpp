// SPDX-License-Identifier: Apache-2.0
#include "apps/common/accept_failure_log.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace apps {

AcceptFailureLog::AcceptFailureLog(netio::EventLoop& loop)
    : AcceptFailureLog{loop, [](const std::string& line) { spdlog::warn("{}", line); }} {}

AcceptFailureLog::AcceptFailureLog(netio::EventLoop& loop, Write write)
    : write_{std::move(write)}, timer_{loop, [this] { tell(); }} {}

AcceptFailureLog::~AcceptFailureLog() {
    tell();
}

void AcceptFailureLog::note(const std::string& peer_address, const netio::FabricError& why) {
    ++untold_;
    last_ = fmt::format("{} is rejected: {}", peer_address, why.what());
    if (!timer_.armed()) tell();
}

void AcceptFailureLog::tell() {
    if (untold_ == 0) return; // the next one is told at once
    const std::uint64_t others = std::exchange(untold_, 0) - 1;
    timer_.start(interval);
    write_(others == 0 ? last_ : fmt::format("{} (and {} before it)", last_, others));
}

} // namespace apps
