// SPDX-License-Identifier: Apache-2.0
#include "tests/world/oracle.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace netio::world {

void Oracle::violate(RuleId rule, std::string what) {
    // Later violations follow from the first ones and could be endless.
    constexpr std::size_t enough = 20;
    if (violations_.size() < enough) {
        violations_.push_back({.rule = rule, .at_us = now_us(), .what = std::move(what)});
    }
    if (show) show(to_text(violations_.back()));
}

void Oracle::note(std::uint32_t process, const char* what, std::uint64_t one, std::uint64_t two) {
    const auto add = [&](std::uint64_t value) { hash_ = (hash_ ^ value) * 1099511628211ULL; };
    ++notes_;
    add(static_cast<std::uint64_t>(now().time_since_epoch().count()));
    add(process);
    for (const char letter : std::string_view{what})
        add(static_cast<std::uint64_t>(letter));
    add(one);
    add(two);
    if (show) {
        show(std::to_string(now_us()) + " process " + std::to_string(process) + ' ' + what + ' ' +
             std::to_string(one) + ' ' + std::to_string(two));
    }
}

void Oracle::begin(Trouble trouble, std::uint32_t process, std::uint32_t other) {
    troubles_.push_back({.trouble = trouble, .process = process, .other = other, .from = now()});
}

void Oracle::end(Trouble trouble, std::uint32_t process, std::uint32_t other) {
    for (Period& period : troubles_) {
        if (period.trouble == trouble && period.process == process && period.other == other &&
            period.to == TimePoint::max()) {
            period.to = now();
        }
    }
}

void Oracle::happens(Trouble trouble, std::uint32_t process) {
    begin(trouble, process);
    troubles_.back().to = now();
}

void Oracle::lasts(Trouble trouble, std::uint32_t process, Duration time) {
    begin(trouble, process);
    troubles_.back().to = now() + time;
}

Duration Oracle::overlap(const Period& period, TimePoint since) const {
    const TimePoint from = std::max(period.from, since);
    const TimePoint to = std::min(period.to, now());
    return to > from ? to - from : Duration{};
}

Duration Oracle::lasted(Trouble trouble, std::uint32_t process, TimePoint since,
                        Duration hidden) const {
    Duration sum{};
    for (const Period& period : troubles_) {
        if (period.trouble != trouble || period.process != process) continue;
        sum += std::max(overlap(period, since) - hidden, Duration{});
    }
    return sum;
}

Duration Oracle::blocked_between(std::uint32_t one, std::uint32_t other, TimePoint since) const {
    Duration longest{};
    for (const Period& period : troubles_) {
        if (period.trouble != Trouble::blocked) continue;
        const bool there = period.process == one && period.other == other;
        const bool back = period.process == other && period.other == one;
        if (there || back) longest += overlap(period, since);
    }
    return longest;
}

bool Oracle::happened(Trouble trouble, std::uint32_t process, TimePoint since) const {
    return std::ranges::any_of(troubles_, [&](const Period& period) {
        return period.trouble == trouble && period.process == process && period.to >= since;
    });
}

TimePoint Oracle::looked_before(std::uint32_t process, TimePoint when) const {
    TimePoint earliest = when;
    for (const Period& period : troubles_) {
        if (period.trouble != Trouble::stopped && period.trouble != Trouble::busy) continue;
        if (period.process == process && period.from <= when && when <= period.to)
            earliest = std::min(earliest, period.from);
    }
    return earliest;
}

bool Oracle::was_free(std::uint32_t process, TimePoint since) const {
    return std::ranges::none_of(troubles_, [&](const Period& period) {
        return (period.process == process || period.other == process) && period.to >= since;
    });
}

bool Oracle::was_calm(TimePoint since) const {
    return std::ranges::none_of(troubles_, [&](const Period& period) {
        return period.to >= since - std::chrono::seconds{1};
    });
}

} // namespace netio::world
