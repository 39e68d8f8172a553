// SPDX-License-Identifier: Apache-2.0
#include "apps/top/asking.hpp"

#include "apps/common/option_values.hpp"
#include "netio/base/signals_blocked.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>

namespace apps::top {
namespace {

// Its address may be somebody's announcement.
Look look_at(const std::string& source, NameSearch& names, const FetchLimits& limits) {
    Look look{.source = source, .error = {}, .rows = {}};
    try {
        fetch_figures(names.find(peer_address(source), limits.until), limits,
                      [&](std::string_view text) { look.rows = rows_of(text); });
    } catch (const std::exception& error) {
        look.error = error.what();
    }
    look.seconds = std::chrono::duration<double>(netio::Clock::now().time_since_epoch()).count();
    return look;
}

} // namespace

std::vector<Look> look_at(const std::vector<std::string>& sources, NameSearch& names,
                          const AskLimits& limits) {
    std::vector<Look> looks(sources.size());
    AnswerRoom room{limits.bytes_together};
    FetchLimits each = limits.each;
    each.room = &room;
    std::atomic<std::size_t> next = 0;
    const auto ask = [&] {
        for (std::size_t at = next++; at < sources.size(); at = next++)
            looks[at] = look_at(sources[at], names, each);
    };
    {
        std::vector<std::jthread> others; // beside this one
        try {
            const netio::AllSignalsBlocked blocked;
            for (std::size_t i = 1; i < std::min(limits.at_once, sources.size()); ++i)
                others.emplace_back(ask);
        } catch (const std::system_error&) { // no more threads: those that there are do it
        }
        ask();
    }
    return looks;
}

} // namespace apps::top
