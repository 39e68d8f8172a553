// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/consumer.hpp"

#include "apps/common/parse.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace apps::subscribe {

bool parse_pause(std::string_view text, Slowness& slowness) {
    const std::size_t at = text.find('@');
    if (at == std::string_view::npos) return false;
    const auto pause = parse_duration(text.substr(0, at));
    const auto every = parse_duration(text.substr(at + 1));
    if (!pause || !every || *pause >= *every) return false;
    slowness.pause = *pause;
    slowness.every = *every;
    return true;
}

SlowReader::SlowReader(const Slowness& slowness, netio::TimePoint start)
    : slowness_{slowness}, next_pause_{slowness.pause.count() > 0 ? start + slowness.every
                                                                  : netio::TimePoint::max()} {}

// Pauses during which no message arrived are skipped.
netio::Duration SlowReader::hold(netio::TimePoint now) {
    netio::Duration time = slowness_.think;
    if (now < next_pause_) return time;
    const auto periods = (now - next_pause_) / slowness_.every;
    const netio::TimePoint begin = next_pause_ + periods * slowness_.every;
    next_pause_ = begin + slowness_.every;
    if (now < begin + slowness_.pause) time += begin + slowness_.pause - now;
    return time;
}

void Verifier::check(std::string_view publisher, netio::pubsub::Fid fid,
                     std::span<const std::byte> message) {
    const std::size_t header = std::min(header_bytes_, message.size());
    pattern_.check(fid, message.subspan(header), number_of(publisher));
}

void Verifier::begin_anew(std::string_view publisher) {
    publishers_.insert_or_assign(std::string{publisher}, ++numbers_given_);
    last_publisher_.clear();
}

std::uint32_t Verifier::number_of(std::string_view publisher) {
    if (publisher == last_publisher_) return last_number_;
    auto known = publishers_.find(publisher);
    if (known == publishers_.end()) known = publishers_.emplace(publisher, ++numbers_given_).first;
    last_publisher_ = publisher;
    last_number_ = known->second;
    return last_number_;
}

namespace {

// A publisher may send any number.
netio::Duration difference(std::int64_t published, std::int64_t arrived) noexcept {
    constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max() / 2;
    return netio::Duration{arrived - std::clamp<std::int64_t>(published, 0, latest)};
}

} // namespace

void Latency::add(std::int64_t published, std::int64_t arrived) {
    const netio::Duration taken = difference(published, arrived);
    if (taken < netio::Duration::zero()) ++ahead_;
    histogram_.add(taken);
}

void OneWayLatency::round_trip(netio::Duration time) noexcept {
    round_trip_ = std::min(round_trip_, std::max(time, netio::Duration::zero()));
}

void OneWayLatency::add(std::int64_t published, std::int64_t arrived) noexcept {
    const netio::Duration taken = difference(published, arrived);
    smallest_ = std::min(smallest_, taken);
    if (round_trip_ == netio::Duration::max()) return;
    const Offset now = offset();
    const bool is_certain = now.value > now.error || now.value < -now.error;
    histogram_.add(is_certain ? taken - now.value : taken);
}

OneWayLatency::Offset OneWayLatency::offset() const noexcept {
    return {.value = smallest_ - round_trip_ / 2, .error = round_trip_ / 2};
}

std::optional<OneWayFigures> OneWayLatency::figures(std::string publisher) const {
    if (histogram_.count() == 0) return std::nullopt;
    return OneWayFigures{.publisher = std::move(publisher),
                         .median = histogram_.quantile(0.5),
                         .p99 = histogram_.quantile(0.99),
                         .clock_offset = offset().value,
                         .clock_offset_error = offset().error};
}

std::optional<LatencyReport> Latency::report() const {
    if (histogram_.count() == 0) return {};
    const auto us = [](netio::Duration time) {
        return std::chrono::duration<double, std::micro>(time).count();
    };
    return LatencyReport{.messages = histogram_.count(),
                         .ahead = ahead_,
                         .p50_us = us(histogram_.quantile(0.5)),
                         .p90_us = us(histogram_.quantile(0.9)),
                         .p99_us = us(histogram_.quantile(0.99)),
                         .p99_9_us = us(histogram_.quantile(0.999)),
                         .longest_us = us(histogram_.longest())};
}

} // namespace apps::subscribe
