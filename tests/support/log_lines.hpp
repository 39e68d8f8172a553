// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/context.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace netio::test {

// Collects the log lines (set_log) while it exists.
class LogLines {
  public:
    LogLines() {
        set_log([this](std::string_view line) {
            const std::lock_guard lock{mutex_};
            lines_.emplace_back(line);
        });
    }
    ~LogLines() { set_log({}); }
    LogLines(const LogLines&) = delete;
    LogLines& operator=(const LogLines&) = delete;

    std::vector<std::string> all() const {
        const std::lock_guard lock{mutex_};
        return lines_;
    }
    // The number of lines with these words.
    std::size_t count(const std::string& words) const {
        const std::lock_guard lock{mutex_};
        return static_cast<std::size_t>(std::ranges::count_if(lines_, [&](const std::string& line) {
            return line.find(words) != std::string::npos;
        }));
    }
    void wait_for(const std::string& words) const {
        while (count(words) == 0)
            std::this_thread::yield();
    }

  private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

} // namespace netio::test
