// SPDX-License-Identifier: Apache-2.0
#pragma once

// What other threads have given a client to publish or to send, in order, and its thread has not
// done yet.

#include "netio/base/status.hpp"

#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

namespace netio::pubsub::inline v0_2 {

// An Item has `bytes`.
template <typename Item>
class Outbox {
  public:
    explicit Outbox(std::size_t bytes_limit) noexcept : limit_{bytes_limit} {}

    // Any thread. `first`: nothing was there, so the client's thread is to be told.
    Status put(Item item, bool& first) {
        const std::lock_guard lock{mutex_};
        if (closed_) return Status::closed;
        const std::size_t bytes = item.bytes.size() + sizeof(Item);
        if (bytes_ > 0 && bytes_ + bytes > limit_) return Status::again;
        bytes_ += bytes;
        items_.push_back(std::move(item));
        first = !std::exchange(told_, true);
        return Status::ok;
    }
    // The thread could not be told; whoever puts next is the first.
    void not_told() {
        const std::lock_guard lock{mutex_};
        told_ = false;
    }
    // Nothing is taken any more.
    void close() {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }

    // The client's thread. Calls send(item) for each, as long as it returns true; whether
    // nothing is left.
    template <typename Send>
    bool drain(Send send) {
        for (;;) {
            if (sending_.empty()) {
                const std::lock_guard lock{mutex_};
                sending_.swap(items_);
                told_ = !sending_.empty();
                if (sending_.empty()) return true;
            }
            while (!sending_.empty()) {
                if (!send(sending_.front())) return false;
                const std::size_t bytes = sending_.front().bytes.size() + sizeof(Item);
                sending_.pop_front();
                const std::lock_guard lock{mutex_};
                bytes_ -= bytes;
            }
        }
    }

  private:
    std::size_t limit_;
    std::mutex mutex_;
    std::deque<Item> items_;
    std::size_t bytes_ = 0; // of these and of those being sent
    bool told_ = false;     // the thread comes for them
    bool closed_ = false;
    std::deque<Item> sending_; // the thread's own
};

} // namespace netio::pubsub::inline v0_2
