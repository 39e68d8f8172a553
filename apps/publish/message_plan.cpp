// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/message_plan.hpp"

#include <chrono>
#include <cmath>
#include <utility>

namespace apps {

FaultPlan::FaultPlan(const FaultConfig& config, std::uint64_t seed) : config_{config}, draw_{seed} {
    plan();
}

void FaultPlan::accept() {
    switch (fault_) {
    case Fault::none:
        break;
    case Fault::missing:
        ++counts_.missing;
        break;
    case Fault::duplicated:
        if (is_behind_) ++counts_.duplicated;
        break;
    case Fault::corrupted:
        ++counts_.corrupted;
        break;
    case Fault::late:
        if (is_behind_) ++counts_.late;
        break;
    case Fault::truncated:
        ++counts_.truncated;
        break;
    }
    if (after_) {
        step_ = {.sequence = *std::exchange(after_, std::nullopt)};
        is_behind_ = true;
        return;
    }
    plan();
}

FaultCounts FaultPlan::counts() const {
    FaultCounts counts = counts_;
    if (fault_ == Fault::late && is_behind_) ++counts.missing;
    return counts;
}

// Plans the next number, and the one after it if needed.
void FaultPlan::plan() {
    is_behind_ = false;
    fault_ = fresh_ == 0 ? Fault::none : drawn();
    step_ = {.sequence = fresh_++};
    switch (fault_) {
    case Fault::none:
        break;
    case Fault::missing:
        step_.sequence = fresh_++;
        break;
    case Fault::duplicated:
        after_ = step_.sequence;
        break;
    case Fault::late:
        after_ = std::exchange(step_.sequence, fresh_++);
        break;
    case Fault::corrupted:
        step_.damage = Step::Damage::corrupted;
        step_.place = draw_.next();
        break;
    case Fault::truncated:
        step_.damage = Step::Damage::truncated;
        step_.place = draw_.next();
        break;
    }
}

FaultPlan::Fault FaultPlan::drawn() {
    double left = draw_.unit();
    for (const auto& [part, fault] : {std::pair{config_.missing, Fault::missing},
                                      {config_.duplicated, Fault::duplicated},
                                      {config_.corrupted, Fault::corrupted},
                                      {config_.late, Fault::late},
                                      {config_.truncated, Fault::truncated}}) {
        if (left <= part && part > 0) return fault;
        left -= part;
    }
    return Fault::none;
}

namespace {

using netio::Duration;
using netio::TimePoint;

constexpr Duration made_up_for = std::chrono::seconds{1};
// A limit for times, because the clock's nanoseconds overflow after 292 years.
constexpr double generation_seconds = 30.0 * 365 * 24 * 3600;

} // namespace

TriggerClock::TriggerClock(const RateConfig& rate, std::uint64_t seed, TimePoint start)
    : rate_{rate}, start_{start}, draw_{seed}, next_{start} {
    find_next();
}

bool TriggerClock::take(TimePoint now) {
    if (now < next_) return false;
    if (now - next_ > made_up_for) {
        const Duration late = now - next_ - made_up_for;
        put_off_ += late;
        next_ += late;
    }
    ++taken_;
    if (taken_ % rate_.burst == 0) find_next();
    return true;
}

void TriggerClock::find_next() {
    const double mean = static_cast<double>(rate_.burst) / rate_.per_second;
    // A random clock begins after a random time, a periodic one immediately.
    if (rate_.poisson) {
        live_seconds_ -= mean * std::log(draw_.unit());
    } else {
        const auto bursts = taken_ / rate_.burst;
        live_seconds_ = static_cast<double>(bursts) * mean;
    }
    if (!(live_seconds_ < generation_seconds)) {
        next_ = TimePoint::max();
        return;
    }
    // Rounded up: a timer must not fire just before it is due.
    Duration offset{0};
    if (live_seconds_ > 0) {
        const std::chrono::duration<double> live{live_seconds_};
        offset = std::chrono::ceil<Duration>(live) + (rate_.poisson ? Duration{0} : Duration{1});
    }
    if (rate_.train.count() > 0) {
        const Duration::rep trains = offset / rate_.train;
        const std::chrono::duration<double> gaps{static_cast<double>(trains) *
                                                 std::chrono::duration<double>(rate_.gap).count()};
        if (!(gaps.count() < generation_seconds)) {
            next_ = TimePoint::max();
            return;
        }
        offset += trains * rate_.gap;
    }
    next_ = start_ + offset + put_off_;
}

} // namespace apps
