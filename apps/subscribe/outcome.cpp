// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/outcome.hpp"

namespace apps::subscribe {
namespace {

bool is_sound(const SubscribeReport& report) {
    return report.pattern.corrupt == 0 && report.pattern.truncated == 0 &&
           report.pattern.lost == 0 && report.pattern.reordered == 0 &&
           report.pattern.duplicates == 0 && report.lost.value_or(0) == 0 && report.surplus == 0;
}

bool ended_early(const std::string& end, const Asked& asked) {
    if (end == "lost") return true;
    if (end == "interrupted") return asked.messages || asked.duration;
    return asked.messages && end != "messages";
}

} // namespace

// The worst that is known comes first.
ExitStatus outcome(const SubscribeReport& report, const Asked& asked) {
    if (report.end == "failed" || report.end == "refused") return ExitStatus::failed;
    if (!report.reached) return ExitStatus::unreached;
    if (asked.sound && !is_sound(report)) return ExitStatus::unsound;
    const bool is_missing = report.lost.value_or(0) > 0 || report.unknown_tails > 0;
    if (is_missing || ended_early(report.end, asked)) return ExitStatus::incomplete;
    return report.throughput.messages == 0 ? ExitStatus::nothing : ExitStatus::done;
}

} // namespace apps::subscribe
