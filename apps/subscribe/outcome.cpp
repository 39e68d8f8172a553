// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/outcome.hpp"

#include <algorithm>

namespace apps::subscribe {
namespace {

bool is_sound(const PatternCounts& counts) {
    return counts.corrupt == 0 && counts.truncated == 0 && counts.lost == 0 &&
           counts.reordered == 0 && counts.duplicates == 0;
}

bool is_sound(const SubscribeReport& report) {
    return is_sound(report.pattern) && report.lost.value_or(0) == 0 && report.surplus == 0;
}

bool ended_early(const std::string& end, const Asked& asked) {
    if (end == "lost") return true;
    if (end == "interrupted") return asked.messages || asked.duration;
    return asked.messages && end != "messages";
}

} // namespace

// The worst result has priority.
ExitStatus outcome(const SubscribeReport& report, const Asked& asked) {
    if (report.end == "failed" || report.end == "refused") return ExitStatus::failed;
    if (!report.reached.any) return ExitStatus::unreached;
    if (asked.sound && !is_sound(report)) return ExitStatus::unsound;
    const bool is_missing =
        report.lost.value_or(0) > 0 || report.unknown_tails > 0 || report.reached.unreached > 0;
    if (is_missing || ended_early(report.end, asked)) return ExitStatus::incomplete;
    return report.throughput.messages == 0 ? ExitStatus::nothing : ExitStatus::done;
}

bool is_whole(netio::pubsub::Fid fid, const SubscribeReport& report, const PatternCounts& counts) {
    if (report.reached.unreached > 0 || report.unknown_tails > 0 ||
        report.throughput.passed_over > 0)
        return false;
    const auto row = std::ranges::lower_bound(report.fids, fid, {}, &FidReport::fid);
    return row != report.fids.end() && row->fid == fid && row->lost == 0 && row->surplus == 0 &&
           is_sound(counts);
}

} // namespace apps::subscribe
