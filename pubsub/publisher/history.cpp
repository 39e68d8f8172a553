// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/history.hpp"

#include "netio/base/option_check.hpp"

#include <string>

namespace netio::pubsub::inline v0_3 {
namespace {

constexpr std::size_t least_bytes = 4096;
constexpr std::size_t bytes_with_time = std::size_t{64} * 1024 * 1024;

} // namespace

void History::check(std::size_t limit_bytes, std::chrono::milliseconds time) {
    require_option(limit_bytes == 0 || limit_bytes >= least_bytes,
                   "history_limit_bytes is " + std::to_string(limit_bytes) +
                       "; it must be 0 (no history) or at least " + std::to_string(least_bytes));
    require_option(time.count() >= 0 && time <= longest_time,
                   "history_time must be from 0 (no limit of time) to a year");
}

std::unique_ptr<History> History::make(std::size_t limit_bytes, std::chrono::milliseconds time) {
    if (limit_bytes == 0 && time.count() == 0) return nullptr;
    const std::size_t bytes = limit_bytes == 0 ? bytes_with_time : limit_bytes;
    return std::make_unique<History>(HistoryLog::Limits{.bytes = bytes, .time = time});
}

bool History::find(CatchUp& late, std::size_t& steps) const {
    for (; late.next < log_.end() && steps > 0; --steps) {
        const HistoryLog::Message message = log_.at(late.next);
        if (late.wants(message.fid)) return true;
        late.next = message.next;
    }
    return false;
}

void History::fill(CatchUp& late, PageWriter& page, std::size_t& steps) const {
    for (; late.next < log_.end() && steps > 0; --steps) {
        const HistoryLog::Message message = log_.at(late.next);
        if (late.wants(message.fid)) {
            std::byte* const out = page.append(message.fid, message.status, message.bytes);
            if (out == nullptr) return;
            copy_parts(message.parts, 0, {out, message.bytes});
        }
        late.next = message.next;
    }
}

void History::end(SubscriberId subscriber, std::span<const FidRange> fids) {
    std::size_t steps = 0;
    for (CatchUp& each : late_)
        if (each.subscriber == subscriber) each.fids = without(each.fids, fids, steps);
    std::erase_if(late_, [](const CatchUp& each) { return each.fids.empty(); });
}

} // namespace netio::pubsub::inline v0_3
