// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long the pages of a buffered send socket took, from the moment at which they were full, or
// were to leave, until the fabric had sent them. Private to netio/messages.

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace netio::inline v0_2 {

class PageTimes {
  public:
    explicit PageTimes(std::size_t page_count) : departed_(page_count) {}

    void on_departed(std::uint32_t page, TimePoint now) { departed_[page] = now; }
    void on_sent(std::uint32_t page, TimePoint now) { latency_.add(now - departed_[page]); }
    const LatencyHistogram& latency() const noexcept { return latency_; }

  private:
    std::vector<TimePoint> departed_; // by the page
    LatencyHistogram latency_;
};

} // namespace netio::inline v0_2
