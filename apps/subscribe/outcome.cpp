// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/outcome.hpp"

namespace apps::subscribe {
namespace {

bool is_sound(const SubscribeReport& report) {
    const PatternCounts& counts = report.pattern;
    return counts.corrupt == 0 && counts.truncated == 0 && counts.lost == 0 &&
           counts.reordered == 0 && counts.duplicates == 0 && report.lost.value_or(0) == 0 &&
           report.surplus == 0;
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

} // namespace apps::subscribe
