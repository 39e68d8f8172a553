// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/measurement.hpp"

#include <sys/resource.h>

#include <chrono>

namespace apps::pump {

double processor_seconds() {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Measurement::begin(netio::TimePoint now) {
    begin_ = end_ = now;
    processor_begin_ = processor_seconds();
    processor_s_ = 0;
}

void Measurement::end(netio::TimePoint now) {
    end_ = now;
    processor_s_ = processor_seconds() - processor_begin_;
}

double Measurement::seconds() const {
    return std::chrono::duration<double>(end_ - begin_).count();
}

} // namespace apps::pump
