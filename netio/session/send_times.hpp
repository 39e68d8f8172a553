// SPDX-License-Identifier: Apache-2.0
#pragma once

// Latency of a socket's sends, from when they were due until they were sent, in the time of its
// loop: a send that completes within the same turn takes no time. Sends complete in the order in
// which they were posted. Canceled sends are not counted.

#include "netio/base/latency_histogram.hpp"
#include "netio/base/ring_queue.hpp"
#include "netio/base/time.hpp"

namespace netio::inline v0_3 {

class SendTimes {
  public:
    void on_posted(TimePoint since) { posted_.emplace_back() = since; }
    void on_sent(TimePoint now) {
        latency_.add(now - posted_.front());
        posted_.pop_front();
    }
    void on_canceled() { posted_.pop_front(); }
    const LatencyHistogram& latency() const noexcept { return latency_; }

  private:
    RingQueue<TimePoint> posted_;
    LatencyHistogram latency_;
};

} // namespace netio::inline v0_3
