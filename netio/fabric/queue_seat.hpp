// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/fabric/domain.hpp"

#include <cstddef>

namespace netio::fabric {

// A connection's place in a completion queue, given up with this object.
class QueueSeat {
  public:
    // With room for so many entries; `alone`: in a queue shared with nobody, which goes with it.
    QueueSeat(Domain& domain, Connection& connection, std::size_t entry_count, bool alone)
        : domain_{domain}, connection_{connection},
          entry_count_{entry_count}, alone_{alone}, queue_{domain.queue_for(entry_count, alone)} {
        queue_.join(connection_, entry_count_);
    }
    ~QueueSeat() {
        queue_.leave(connection_, entry_count_);
        if (alone_) domain_.release(queue_);
    }
    QueueSeat(const QueueSeat&) = delete;
    QueueSeat& operator=(const QueueSeat&) = delete;

    // So many entries more. False: the queue has no room for them.
    bool reserve(std::size_t entry_count) noexcept {
        if (!queue_.reserve(entry_count)) return false;
        entry_count_ += entry_count;
        return true;
    }
    CompletionQueue& queue() const noexcept { return queue_; }
    bool is_alone() const noexcept { return alone_; }

  private:
    Domain& domain_;
    Connection& connection_;
    std::size_t entry_count_;
    bool alone_;
    CompletionQueue& queue_;
};

} // namespace netio::fabric
