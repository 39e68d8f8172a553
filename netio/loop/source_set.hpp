// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sources of a loop. An active one is drained; one that was armed waits for its descriptor.
// Draining may be cut short when its time is up; the next time begins where this one ended, so
// that a source that always has work does not keep the others from theirs.

#include "netio/loop/event_source.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace netio::inline v0_2 {

class SourceSet {
  public:
    struct Drained {
        bool worked = false;
        bool completely = true; // nothing is left of what was there
    };

    void add(EventSource& source);
    // Legal while draining, as add() is.
    void remove(EventSource& source) noexcept;
    bool contains(const EventSource& source) const noexcept;
    bool empty() const noexcept { return count_ == 0; }

    static void activate(EventSource& source) noexcept { source.active_ = true; }
    // Those that are worth polling.
    void activate_polled() noexcept;

    // At most `limit` pieces of work of each, and none after `time_is_up` has said so behind one.
    Drained drain(std::size_t limit, const std::function<bool()>& time_is_up);
    // False: one of them has work.
    bool arm();

  private:
    std::vector<EventSource*> sources_; // nullptr: removed while draining
    std::size_t count_ = 0;
    std::size_t first_ = 0; // where the next drain begins
    bool draining_ = false;
    bool holes_ = false;
};

} // namespace netio::inline v0_2
