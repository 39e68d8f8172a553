// SPDX-License-Identifier: Apache-2.0
#pragma once

// What other threads have given a client to send, in order, and its thread has not done yet.

#include "netio/base/status.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

namespace netio::pubsub::inline v0_2 {

// An Item has `bytes`.
template <typename Item>
class Outbox {
  public:
    explicit Outbox(std::size_t bytes_limit) noexcept : limit_{bytes_limit} {}

    // Any thread. ok: the client's thread is to be told.
    Status put(Item item) {
        const std::lock_guard lock{mutex_};
        if (closed_) return Status::closed;
        const std::size_t bytes = item.bytes.size() + sizeof(Item);
        if (bytes_ > 0 && bytes_ + bytes > limit_) return Status::again;
        bytes_ += bytes;
        items_.push_back(std::move(item));
        return Status::ok;
    }
    // Nothing is taken any more.
    void close() {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    // The client's thread. Of all that waits nothing is sent any more; how many there were.
    std::size_t give_up() {
        std::size_t count = 0;
        drain([&count](const Item&) { return ++count, true; }, [] { return false; });
        return count;
    }
    // Nothing waits, nor is any of it being sent.
    bool empty() {
        const std::lock_guard lock{mutex_};
        return bytes_ == 0;
    }

    enum class Drained : std::uint8_t { all, held_up, time_is_up };
    // The client's thread. Calls send(item) for each, as long as it returns true and no
    // time_is_up() behind one does: others may put without end.
    template <typename Send, typename TimeIsUp>
    Drained drain(Send send, TimeIsUp time_is_up) {
        for (;;) {
            if (sending_.empty()) {
                const std::lock_guard lock{mutex_};
                sending_.swap(items_);
                if (sending_.empty()) return Drained::all;
            }
            while (!sending_.empty()) {
                if (!send(sending_.front())) return Drained::held_up;
                take_first();
                if (time_is_up()) return Drained::time_is_up;
            }
        }
    }

  private:
    void take_first() {
        const std::size_t bytes = sending_.front().bytes.size() + sizeof(Item);
        sending_.pop_front();
        const std::lock_guard lock{mutex_};
        bytes_ -= bytes;
    }

    std::size_t limit_;
    std::mutex mutex_;
    std::deque<Item> items_;
    std::size_t bytes_ = 0; // of these and of those being sent
    bool closed_ = false;
    std::deque<Item> sending_; // the thread's own
};

} // namespace netio::pubsub::inline v0_2
