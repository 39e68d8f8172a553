// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/slow_reader.hpp"

#include "apps/common/quantity.hpp"

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

// Pauses that nobody noticed, as no message came, are over.
netio::Duration SlowReader::hold(netio::TimePoint now) {
    netio::Duration time = slowness_.think;
    if (now < next_pause_) return time;
    const auto periods = (now - next_pause_) / slowness_.every;
    const netio::TimePoint begin = next_pause_ + periods * slowness_.every;
    next_pause_ = begin + slowness_.every;
    if (now < begin + slowness_.pause) time += begin + slowness_.pause - now;
    return time;
}

} // namespace apps::subscribe
