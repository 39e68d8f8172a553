// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

// The messages that any thread has queued for the connection of one receiver, in order.
class Outbox {
  public:
    using Message = std::vector<std::byte>;

    explicit Outbox(std::size_t bytes_limit) noexcept : limit_{bytes_limit} {}

    // Any thread. After ok the caller notifies the loop's thread. Waits for space until `until`. An
    // empty outbox takes any message.
    Status put(std::span<const std::byte> message, TimePoint until = TimePoint::min()) {
        std::unique_lock lock{mutex_};
        const std::size_t bytes = size_of(message.size());
        const auto has_space = [&] { return closed_ || bytes_ == 0 || bytes_ + bytes <= limit_; };
        if (!has_space() && (until == TimePoint::min() || !wait(lock, until, has_space)))
            return Status::again;
        if (closed_) return Status::closed;
        bytes_ += bytes;
        messages_.emplace_back(message.begin(), message.end());
        return Status::ok;
    }
    // From now on put() returns Status::closed, also in threads that wait in it.
    void close() {
        const std::lock_guard lock{mutex_};
        closed_ = true;
        space_.notify_all();
    }
    // Whether no message is queued or being sent.
    bool empty() {
        const std::lock_guard lock{mutex_};
        return bytes_ == 0;
    }

    enum class Drained : std::uint8_t { all, blocked, time_is_up };
    // The loop's thread. Calls send(message) for each until it returns false, or time_is_up()
    // returns true after a message: other threads may put messages without end.
    template <typename Send, typename TimeIsUp>
    Drained drain(Send send, TimeIsUp time_is_up) {
        for (;;) {
            if (sending_.empty()) {
                const std::lock_guard lock{mutex_};
                sending_.swap(messages_);
                if (sending_.empty()) return Drained::all;
            }
            while (!sending_.empty()) {
                if (!send(std::as_const(sending_.front()))) return Drained::blocked;
                take_first();
                if (time_is_up()) return Drained::time_is_up;
            }
        }
    }
    // The loop's thread. Discards all messages and returns their number.
    std::size_t discard() {
        std::size_t count = 0;
        drain([&count](const Message&) { return ++count, true; }, [] { return false; });
        return count;
    }

  private:
    static std::size_t size_of(std::size_t bytes) noexcept { return bytes + sizeof(Message); }

    template <typename HasSpace>
    bool wait(std::unique_lock<std::mutex>& lock, TimePoint until, HasSpace has_space) {
        ++putters_;
        const bool has = space_.wait_until(lock, until, has_space);
        --putters_;
        return has;
    }
    void take_first() {
        const std::size_t bytes = size_of(sending_.front().size());
        sending_.pop_front();
        const std::lock_guard lock{mutex_};
        bytes_ -= bytes;
        // When much space is free, so that not every sent message wakes a thread.
        if (putters_ > 0 && bytes_ <= limit_ / 2) space_.notify_all();
    }

    const std::size_t limit_;
    std::mutex mutex_; // of what follows
    std::condition_variable space_;
    std::size_t putters_ = 0; // threads that wait for space
    std::deque<Message> messages_;
    std::size_t bytes_ = 0; // of messages_ and sending_
    bool closed_ = false;
    std::deque<Message> sending_; // used by the loop's thread only
};

} // namespace netio::inline v0_3
