// SPDX-License-Identifier: Apache-2.0
#pragma once

// What other threads have given a client to publish, and its thread has not done yet. It is in
// order within each fid; a fid for which there is no room waits, and the others go on.
//
// For that they need room here as well, and nobody knows which fid will wait: so the first half is
// for whoever comes, and while some wait the second for all the others. Of that each fid may have a
// part of what is left, so that however many come to wait there is something for one more.

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "pubsub/client/waiting_fids.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

struct Publication {
    Fid fid{};
    std::uint8_t status = 0;
    bool in_second_half = false;
    std::vector<std::byte> bytes;
};

class FidOutbox {
  public:
    // Of what is free of the second half a fid may have one of so many, and one message in any
    // case.
    static constexpr std::size_t parts = 64;

    explicit FidOutbox(std::size_t bytes_limit) noexcept : limit_{bytes_limit} {}

    // Any thread. ok: the client's thread is to be told. again: there may be room for another fid.
    // It waits for room until `until`.
    Status put(Publication item, TimePoint until = TimePoint::min()) {
        std::unique_lock lock{mutex_};
        const std::size_t bytes = size_of(item);
        while (!closed_ && !takes(item, bytes)) {
            const TimePoint now = until == TimePoint::min() ? until : Clock::now();
            if (now >= until) return Status::again;
            // Woken when much is free, so that not each message that leaves wakes a thread. The
            // second half changes without notice, so it is tried again soon.
            ++putters_;
            room_.wait_until(lock, std::min(until, now + retry_interval));
            --putters_;
        }
        if (closed_) return Status::closed;
        bytes_ += bytes;
        items_.push_back(std::move(item));
        return Status::ok;
    }
    // Threads that wait for room.
    std::size_t putters() {
        const std::lock_guard lock{mutex_};
        return putters_;
    }
    // Nothing is taken any more.
    void close() {
        const std::lock_guard lock{mutex_};
        closed_ = true;
        room_.notify_all();
    }

    // The client's thread, as all that follows. There may be room again.
    void wake() noexcept { waiting_.wake(); }

    enum class Drained : std::uint8_t { all, held_up, time_is_up };
    // Calls send(publication) for each whose fid does not wait, and for those that wait once more
    // since they were woken. False: there is no room for its fid. It ends when time_is_up() behind
    // one: others may put without end.
    template <typename Send, typename TimeIsUp>
    Drained drain(Send send, TimeIsUp time_is_up) {
        for (;;) {
            const bool tried = try_one_that_waits(send);
            const bool taken = take_one(send);
            if (!tried && !taken) return waiting_.empty() ? Drained::all : Drained::held_up;
            if (time_is_up()) return Drained::time_is_up;
        }
    }
    // Of all that waits nothing is sent any more; how many there were.
    std::size_t give_up() {
        std::size_t count = 0;
        wake();
        drain([&count](const Publication&) { return ++count, true; }, [] { return false; });
        return count;
    }

  private:
    static constexpr std::chrono::milliseconds retry_interval{10};

    static std::size_t size_of(const Publication& item) noexcept {
        return item.bytes.size() + sizeof(Publication);
    }

    // mutex_ is held.
    bool takes(Publication& item, std::size_t bytes) {
        if (bytes_ == 0 || bytes_ + bytes <= limit_ / 2) return true;
        return item.in_second_half = some_wait_ && takes_in_second_half(item.fid, bytes);
    }
    bool takes_in_second_half(Fid fid, std::size_t bytes) {
        if (bytes_ + bytes > limit_) return false;
        const auto [at, is_first] = second_half_.try_emplace(fid, 0);
        if (!is_first && at->second + bytes > (limit_ - bytes_ - bytes) / parts) return false;
        at->second += bytes;
        return true;
    }

    template <typename Send>
    bool try_one_that_waits(Send& send) {
        if (!waiting_.is_to_try()) return false;
        const Publication& item = waiting_.next();
        if (!send(item)) return waiting_.refuse(), true;
        release(item);
        waiting_.take();
        if (waiting_.empty()) note_whether_some_wait();
        return true;
    }

    template <typename Send>
    bool take_one(Send& send) {
        if (sending_.empty()) {
            const std::lock_guard lock{mutex_};
            sending_.swap(items_);
            if (sending_.empty()) return false;
        }
        Publication& item = sending_.front();
        if ((!waiting_.empty() && waiting_.has(item.fid)) || !send(item)) {
            const bool is_first = waiting_.empty();
            waiting_.put(std::move(item));
            if (is_first) note_whether_some_wait();
        } else {
            release(item);
        }
        sending_.pop_front();
        return true;
    }

    void note_whether_some_wait() {
        const std::lock_guard lock{mutex_};
        some_wait_ = !waiting_.empty();
    }
    void release(const Publication& item) {
        const std::size_t bytes = size_of(item);
        const std::lock_guard lock{mutex_};
        bytes_ -= bytes;
        if (putters_ > 0 && bytes_ <= limit_ / 4) room_.notify_all();
        if (!item.in_second_half) return;
        const auto at = second_half_.find(item.fid);
        at->second -= bytes;
        if (at->second == 0) second_half_.erase(at);
    }

    const std::size_t limit_;
    std::mutex mutex_; // of what follows
    std::condition_variable room_;
    std::size_t putters_ = 0; // threads that wait for room
    std::deque<Publication> items_;
    std::size_t bytes_ = 0; // of these, of those being sent and of those that wait
    std::unordered_map<Fid, std::size_t> second_half_; // of those of these that are there
    bool some_wait_ = false;
    bool closed_ = false;
    // The thread's own.
    std::deque<Publication> sending_;
    WaitingFids<Publication> waiting_;
};

} // namespace netio::pubsub::inline v0_2
