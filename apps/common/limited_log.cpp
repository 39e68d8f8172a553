// SPDX-License-Identifier: Apache-2.0
#include "apps/common/limited_log.hpp"

#include <fmt/format.h>

#include <utility>

namespace apps {

LimitedLog::LimitedLog(netio::EventLoop& loop, Write write, const Limit& limit)
    : write_{std::move(write)}, limit_{limit}, timer_{loop, [this] { tell(); }} {}

LimitedLog::~LimitedLog() {
    tell();
}

void LimitedLog::note(std::string line) {
    if (!timer_.armed()) {
        told_ = 0;
        timer_.start(limit_.interval);
    }
    if (told_ < limit_.lines) {
        ++told_;
        return write_(line);
    }
    ++untold_;
    last_ = std::move(line);
}

void LimitedLog::tell() {
    if (untold_ == 0) return;
    const std::uint64_t others = std::exchange(untold_, 0) - 1;
    told_ = 1; // of the interval that begins with it
    timer_.start(limit_.interval);
    write_(others == 0 ? last_ : fmt::format("{} (and {} before it)", last_, others));
}

} // namespace apps
