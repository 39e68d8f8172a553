// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long the sends of a socket took, from the call until they were sent, in the time of its loop:
// what is posted and sent in one turn took no time. They come back in the order of the calls. Those
// that are canceled are not counted.

#include "netio/base/latency_histogram.hpp"
#include "netio/base/ring_queue.hpp"
#include "netio/base/time.hpp"

namespace netio::inline v0_2 {

class SendTimes {
  public:
    void on_posted(TimePoint now) { posted_.emplace_back() = now; }
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

} // namespace netio::inline v0_2
