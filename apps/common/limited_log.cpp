// SPDX-License-Identifier: Apache-2.0
#include "apps/common/limited_log.hpp"

#include <fmt/format.h>

#include <utility>

namespace apps {

LimitedLog::LimitedLog(netio::EventLoop& loop, Write write)
    : write_{std::move(write)}, timer_{loop, [this] { tell(); }} {}

LimitedLog::~LimitedLog() {
    tell();
}

void LimitedLog::note(const std::string& line) {
    if (!timer_.armed()) {
        told_ = 0;
        timer_.start(interval);
    }
    if (told_ == lines_per_interval) {
        ++untold_;
        return;
    }
    ++told_;
    write_(line);
}

void LimitedLog::tell() {
    if (untold_ > 0) write_(fmt::format("and {} lines like these", std::exchange(untold_, 0)));
}

} // namespace apps
