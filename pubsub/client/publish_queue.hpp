// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages that any thread passes to the thread of a netio::Publisher, and the fids that have
// subscribers.

#include "netio/base/kept_bytes.hpp"
#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>

namespace netio::pubsub::inline v0_3 {

// The messages of fids that the publisher had no space for, in order within each fid. The fids take
// turns with one message each, so that each gets its share of the space. An Item has a `fid`.
template <typename Item>
class BlockedFids {
  public:
    bool empty() const noexcept { return fids_.empty(); }
    bool has(Fid fid) const { return fids_.count(fid) > 0; }
    // Appends an item. The first item of a fid counts as refused just now.
    void put(Item item) {
        const Fid fid = item.fid;
        const auto found = fids_.find(fid);
        if (found != fids_.end()) return found->second->push_back(std::move(item));
        refused_.emplace_back().push_back(std::move(item));
        fids_.emplace(fid, std::prev(refused_.end()));
    }

    // Call it when there may be space again: all refused items will be tried.
    void wake() noexcept { to_try_.splice(to_try_.end(), refused_); }
    bool is_to_try() const noexcept { return !to_try_.empty(); }
    // Requires is_to_try().
    const Item& next() const noexcept { return to_try_.front().front(); }
    // Call it when there was no space for next(), and so for no other item of its fid.
    void refuse() noexcept { refused_.splice(refused_.end(), to_try_, to_try_.begin()); }
    // Removes next(), which was sent; another fid is next.
    void take() {
        Queue& queue = to_try_.front();
        const Fid fid = queue.front().fid;
        queue.pop_front();
        if (!queue.empty()) return to_try_.splice(to_try_.end(), to_try_, to_try_.begin());
        fids_.erase(fid);
        to_try_.pop_front();
    }

  private:
    using Queue = std::deque<Item>; // of one fid, not empty

    std::list<Queue> to_try_;
    std::list<Queue> refused_; // since the last wake()
    std::unordered_map<Fid, typename std::list<Queue>::iterator> fids_;
};

struct Publication {
    Fid fid{};
    std::uint8_t status = 0;
    bool in_second_half = false;
    bool shares_memory = false; // with other publications of a batch
    KeptBytes bytes;
};

// The messages that other threads have queued for publication, in order within each fid. A fid that
// the publisher has no space for is blocked; the others continue.
//
// Blocked messages must not use up the queue, and it is not known before which fid will be blocked.
// So the first half of the limit is for all fids, and the second half is used only while some fids
// are blocked. Each fid may use a part of the remaining space of the second half, so that there is
// space for further fids however many are blocked.
class PublishQueue {
  public:
    // A fid may use this fraction of the free space of the second half, or one message.
    static constexpr std::size_t parts = 64;

    explicit PublishQueue(std::size_t bytes_limit) noexcept : limit_{bytes_limit} {}

    // Any thread. After ok the item is moved from, and the caller notifies the loop's thread.
    // again: there may be space for another fid. Waits for space until `until`.
    Status put(Publication& item, TimePoint until = TimePoint::min()) {
        std::unique_lock lock{mutex_};
        return put(lock, item, until);
    }
    struct Accepted {
        std::size_t count = 0;
        Status next = Status::ok; // why the next one was not accepted
    };
    // As put() above, for many publications in order: waits for space for the first one, then
    // accepts as many as there is space for. The caller notifies the loop's thread, and calls again
    // for the rest.
    Accepted put(std::span<Publication> items, TimePoint until) {
        std::unique_lock lock{mutex_};
        Accepted accepted;
        while (accepted.count < items.size()) {
            accepted.next = put(lock, items[accepted.count], until);
            if (accepted.next != Status::ok) break;
            ++accepted.count;
            until = TimePoint::min();
        }
        return accepted;
    }
    // The number of threads that wait for space.
    std::size_t putters() {
        const std::lock_guard lock{mutex_};
        return putters_;
    }
    // From now on put() returns Status::closed, also in threads that wait in it.
    void close() {
        const std::lock_guard lock{mutex_};
        closed_ = true;
        space_.notify_all();
    }

    // This and the following functions are for the loop's thread. Call wake() when there may be
    // space again.
    void wake() noexcept { blocked_.wake(); }

    enum class Drained : std::uint8_t { all, blocked, time_is_up };
    // Calls send(publication) for each whose fid is not blocked, and once after wake() for each
    // blocked fid. send returns false if there is no space for the fid. Ends early if time_is_up()
    // returns true after a message: other threads may put messages without end.
    template <typename Send, typename TimeIsUp>
    Drained drain(Send send, TimeIsUp time_is_up) {
        Drained drained = Drained::time_is_up;
        do {
            const bool tried = try_blocked(send);
            const bool taken = take_one(send);
            if (tried || taken) continue;
            drained = blocked_.empty() ? Drained::all : Drained::blocked;
            break;
        } while (!time_is_up());
        release_sent();
        return drained;
    }
    // Discards all messages and returns their number.
    std::size_t discard() {
        std::size_t count = 0;
        wake();
        drain([&count](const Publication&) { return ++count, true; }, [] { return false; });
        return count;
    }

  private:
    static constexpr std::chrono::milliseconds retry_interval{10};
    static constexpr std::size_t most_unreleased_bytes = 16384;

    static std::size_t size_of(const Publication& item) noexcept {
        return item.bytes.size() + sizeof(Publication);
    }

    // mutex_ is held by the lock.
    Status put(std::unique_lock<std::mutex>& lock, Publication& item, TimePoint until) {
        const std::size_t bytes = size_of(item);
        while (!closed_ && !takes(item, bytes)) {
            const TimePoint now = until == TimePoint::min() ? until : Clock::now();
            if (now >= until) return Status::again;
            // Notified when much space is free, so that not every sent message wakes a thread. The
            // second half changes without notice, so it is tried again soon.
            ++putters_;
            space_.wait_until(lock, std::min(until, now + retry_interval));
            --putters_;
        }
        if (closed_) return Status::closed;
        bytes_ += bytes;
        items_.push_back(std::move(item));
        return Status::ok;
    }
    // mutex_ is held.
    bool takes(Publication& item, std::size_t bytes) {
        if (bytes_ == 0 || bytes_ + bytes <= limit_ / 2) return true;
        return item.in_second_half = some_blocked_ && fits_second_half(item.fid, bytes);
    }
    bool fits_second_half(Fid fid, std::size_t bytes) {
        if (bytes_ + bytes > limit_) return false;
        const auto [at, is_first] = second_half_.try_emplace(fid, 0);
        if (!is_first && at->second + bytes > (limit_ - bytes_ - bytes) / parts) return false;
        at->second += bytes;
        return true;
    }

    template <typename Send>
    bool try_blocked(Send& send) {
        if (!blocked_.is_to_try()) return false;
        const Publication& item = blocked_.next();
        if (!send(item)) return blocked_.refuse(), true;
        release(item);
        blocked_.take();
        if (blocked_.empty()) update_some_blocked();
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
        if ((!blocked_.empty() && blocked_.has(item.fid)) || !send(item)) {
            const bool is_first = blocked_.empty();
            // A blocked message must not keep the memory of its whole batch.
            if (item.shares_memory) item.bytes = KeptBytes::copy_of(item.bytes.bytes());
            blocked_.put(std::move(item));
            if (is_first) update_some_blocked();
        } else {
            release(item);
        }
        sending_.pop_front();
        return true;
    }

    void update_some_blocked() {
        const std::lock_guard lock{mutex_};
        some_blocked_ = !blocked_.empty();
    }
    // Takes the lock once for many small messages.
    void release(const Publication& item) {
        const std::size_t bytes = size_of(item);
        unreleased_ += bytes;
        if (!item.in_second_half) {
            if (unreleased_ >= std::min(most_unreleased_bytes, limit_ / 64)) release_sent();
            return;
        }
        release_sent();
        const std::lock_guard lock{mutex_};
        const auto at = second_half_.find(item.fid);
        at->second -= bytes;
        if (at->second == 0) second_half_.erase(at);
    }
    void release_sent() {
        if (unreleased_ == 0) return;
        const std::lock_guard lock{mutex_};
        bytes_ -= std::exchange(unreleased_, 0);
        if (putters_ > 0 && bytes_ <= limit_ / 4) space_.notify_all();
    }

    const std::size_t limit_;
    std::mutex mutex_; // of what follows
    std::condition_variable space_;
    std::size_t putters_ = 0; // threads that wait for space
    std::deque<Publication> items_;
    std::size_t bytes_ = 0;                            // of items_, sending_ and blocked_
    std::unordered_map<Fid, std::size_t> second_half_; // bytes of each fid there
    bool some_blocked_ = false;
    bool closed_ = false;
    // Used by the loop's thread only.
    std::deque<Publication> sending_;
    std::size_t unreleased_ = 0; // bytes of sent messages that bytes_ still contains
    BlockedFids<Publication> blocked_;
};

// The fids that have a subscriber now, and the number of subscribers. The loop's thread updates
// it with the reports of its publish socket; any thread reads it and waits for subscribers.
class WantedFids {
  public:
    // A report may repeat a range, or remove one that the subscriber does not have.
    void subscribe(SubscriberId subscriber, const FidRange& range) {
        const std::lock_guard lock{mutex_};
        Fids& own = by_subscriber_[subscriber];
        for (const FidRange& fresh : own.absent(range)) {
            own.assign(fresh, {});
            const auto others = counts_.pieces(fresh);
            for (const FidRange& unwanted : counts_.absent(fresh))
                counts_.assign(unwanted, 1);
            for (const auto& piece : others)
                counts_.assign(piece.range, piece.value + 1);
        }
        changed_.notify_all();
    }
    void unsubscribe(SubscriberId subscriber, const FidRange& range) {
        const std::lock_guard lock{mutex_};
        const auto found = by_subscriber_.find(subscriber);
        if (found == by_subscriber_.end()) return;
        for (const auto& had : found->second.pieces(range)) {
            for (const auto& piece : counts_.pieces(had.range)) {
                if (piece.value == 1) {
                    counts_.erase(piece.range);
                } else {
                    counts_.assign(piece.range, piece.value - 1);
                }
            }
        }
        found->second.erase(range);
        if (found->second.empty()) by_subscriber_.erase(found);
    }
    // Call it when no more subscribers follow: ends the waits of all threads.
    void end() {
        const std::lock_guard lock{mutex_};
        ended_ = true;
        changed_.notify_all();
    }

    bool has(Fid fid) const {
        const std::lock_guard lock{mutex_};
        return counts_.find(fid) != nullptr;
    }
    // The number of subscribers that have at least one subscription.
    std::size_t subscribers() const {
        const std::lock_guard lock{mutex_};
        return by_subscriber_.size();
    }
    // Waits until `count` subscribers have at least one subscription. Returns false if the time-out
    // passes or end() is called.
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const {
        std::unique_lock lock{mutex_};
        const auto enough = [&] { return by_subscriber_.size() >= count; };
        changed_.wait_for(lock, timeout, [&] { return enough() || ended_; });
        return enough() && !ended_;
    }

  private:
    using Fids = FidRangeMap<std::monostate>;

    mutable std::mutex mutex_; // of what follows
    mutable std::condition_variable changed_;
    std::unordered_map<SubscriberId, Fids> by_subscriber_; // without empty ones
    FidRangeMap<std::uint32_t> counts_;                    // number of subscribers, where not zero
    bool ended_ = false;
};

} // namespace netio::pubsub::inline v0_3
