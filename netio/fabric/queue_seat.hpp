// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/fabric/domain.hpp"

#include <cstddef>
#include <memory>

namespace netio::fabric {

// The entries that an endpoint may need in a completion queue, given back with this object. It must
// outlive the endpoint.
class QueueRoom {
  public:
    // `alone`: in a queue shared with nobody, which goes with it.
    QueueRoom(Domain& domain, std::size_t entry_count, bool alone)
        : domain_{domain}, entry_count_{entry_count}, alone_{alone}, queue_{domain.queue_for(
                                                                         entry_count, alone)} {
        NETIO_CHECK(queue_.reserve(entry_count));
    }
    ~QueueRoom() {
        queue_.give_back(entry_count_);
        if (alone_) domain_.release(queue_);
    }
    QueueRoom(const QueueRoom&) = delete;
    QueueRoom& operator=(const QueueRoom&) = delete;

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
    std::size_t entry_count_;
    bool alone_;
    CompletionQueue& queue_;
};

// A connection's place in a completion queue, given up with this object.
class QueueSeat {
  public:
    QueueSeat(Domain& domain, Connection& connection, std::size_t entry_count, bool alone)
        : connection_{connection}, room_{std::make_shared<QueueRoom>(domain, entry_count, alone)} {
        queue().join(connection_);
    }
    ~QueueSeat() { queue().leave(connection_); }
    QueueSeat(const QueueSeat&) = delete;
    QueueSeat& operator=(const QueueSeat&) = delete;

    bool reserve(std::size_t entry_count) noexcept { return room_->reserve(entry_count); }
    CompletionQueue& queue() const noexcept { return room_->queue(); }
    bool is_alone() const noexcept { return room_->is_alone(); }
    // For an endpoint that outlives its connection.
    const std::shared_ptr<QueueRoom>& room() const noexcept { return room_; }

  private:
    Connection& connection_;
    std::shared_ptr<QueueRoom> room_;
};

} // namespace netio::fabric
