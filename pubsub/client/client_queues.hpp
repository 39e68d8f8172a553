// SPDX-License-Identifier: Apache-2.0
#pragma once

// What other threads pass to the thread of a client: requests to run, messages to send and to
// publish, and calls that wait for an answer.

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// How the parts of a client reach its thread and its user.
struct ClientCalls {
    // Any thread. For tasks of the client itself. Returns false if the thread has ended.
    std::function<bool(std::function<void()>)> post;
    // The other functions are called on the client's thread.
    std::function<void(const std::string&)> report; // one line for people
    std::function<void()> ended;                    // a part that was closed
};

// A task for the client's thread that any thread may request. A pending request is not repeated, so
// that there is always space for it among the tasks of the thread.
class CoalescedTask {
  public:
    CoalescedTask(std::function<bool(std::function<void()>)> post, std::function<void()> run)
        : post_{std::move(post)}, run_{std::move(run)} {}

    // Any thread. Keeps `alive` until the task has run.
    void request(std::shared_ptr<const void> alive = {}) {
        if (requested_.load() || requested_.exchange(true)) return;
        const bool posted = post_([this, alive = std::move(alive)] {
            requested_.store(false); // a request from here on needs another run
            run_();
        });
        if (!posted) requested_.store(false);
    }

  private:
    std::function<bool(std::function<void()>)> post_;
    std::function<void()> run_;
    std::atomic<bool> requested_{false};
};

// The messages that other threads have queued for one destination, in order. An Item has `bytes`.
template <typename Item>
class ClientSendQueue {
  public:
    explicit ClientSendQueue(std::size_t bytes_limit) noexcept : limit_{bytes_limit} {}

    // Any thread. After ok the caller notifies the client's thread.
    Status put(Item item) {
        const std::lock_guard lock{mutex_};
        if (closed_) return Status::closed;
        const std::size_t bytes = item.bytes.size() + sizeof(Item);
        if (bytes_ > 0 && bytes_ + bytes > limit_) return Status::again;
        bytes_ += bytes;
        items_.push_back(std::move(item));
        return Status::ok;
    }
    // Further put() return Status::closed.
    void close() {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    // The client's thread. Discards all items and returns their number.
    std::size_t discard() {
        std::size_t count = 0;
        drain([&count](const Item&) { return ++count, true; }, [] { return false; });
        return count;
    }
    // No item is queued or being sent.
    bool empty() {
        const std::lock_guard lock{mutex_};
        return bytes_ == 0;
    }

    enum class Drained : std::uint8_t { all, blocked, time_is_up };
    // The client's thread. Calls send(item) for each item until it returns false, or time_is_up()
    // returns true after an item: other threads may put items without end.
    template <typename Send, typename TimeIsUp>
    Drained drain(Send send, TimeIsUp time_is_up) {
        for (;;) {
            if (sending_.empty()) {
                const std::lock_guard lock{mutex_};
                sending_.swap(items_);
                if (sending_.empty()) return Drained::all;
            }
            while (!sending_.empty()) {
                if (!send(sending_.front())) return Drained::blocked;
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
    std::size_t bytes_ = 0; // of items_ and sending_
    bool closed_ = false;
    std::deque<Item> sending_; // used by the client's thread only
};

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

    // There may be space again for any of them.
    void wake() noexcept { to_try_.splice(to_try_.end(), refused_); }
    bool is_to_try() const noexcept { return !to_try_.empty(); }
    // Requires is_to_try().
    const Item& next() const noexcept { return to_try_.front().front(); }
    // There was no space for next(), and so for no other item of its fid.
    void refuse() noexcept { refused_.splice(refused_.end(), to_try_, to_try_.begin()); }
    // next() was sent; another fid is next.
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
    std::vector<std::byte> bytes;
};

// The messages that other threads have queued for publication, in order within each fid. A fid that
// the publisher has no space for is blocked; the others continue.
//
// Blocked messages must not use up the queue, and it is not known before which fid will be blocked.
// So the first half of the limit is for all fids, and the second half is used only while some fids
// are blocked. Each fid may use a part of the remaining space of the second half, so that there is
// space for further fids however many are blocked.
class ClientPublishQueue {
  public:
    // A fid may use this fraction of the free space of the second half, or one message.
    static constexpr std::size_t parts = 64;

    explicit ClientPublishQueue(std::size_t bytes_limit) noexcept : limit_{bytes_limit} {}

    // Any thread. After ok the caller notifies the client's thread. again: there may be space for
    // another fid. Waits for space until `until`.
    Status put(Publication item, TimePoint until = TimePoint::min()) {
        std::unique_lock lock{mutex_};
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
    // The number of threads that wait for space.
    std::size_t putters() {
        const std::lock_guard lock{mutex_};
        return putters_;
    }
    // Further put() return Status::closed, and so do waiting ones.
    void close() {
        const std::lock_guard lock{mutex_};
        closed_ = true;
        space_.notify_all();
    }

    // The client's thread calls this and the following. There may be space again.
    void wake() noexcept { blocked_.wake(); }

    enum class Drained : std::uint8_t { all, blocked, time_is_up };
    // Calls send(publication) for each whose fid is not blocked, and once after wake() for each
    // blocked fid. send returns false if there is no space for the fid. Ends early if time_is_up()
    // returns true after a message: other threads may put messages without end.
    template <typename Send, typename TimeIsUp>
    Drained drain(Send send, TimeIsUp time_is_up) {
        for (;;) {
            const bool tried = try_blocked(send);
            const bool taken = take_one(send);
            if (!tried && !taken) return blocked_.empty() ? Drained::all : Drained::blocked;
            if (time_is_up()) return Drained::time_is_up;
        }
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

    static std::size_t size_of(const Publication& item) noexcept {
        return item.bytes.size() + sizeof(Publication);
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
    void release(const Publication& item) {
        const std::size_t bytes = size_of(item);
        const std::lock_guard lock{mutex_};
        bytes_ -= bytes;
        if (putters_ > 0 && bytes_ <= limit_ / 4) space_.notify_all();
        if (!item.in_second_half) return;
        const auto at = second_half_.find(item.fid);
        at->second -= bytes;
        if (at->second == 0) second_half_.erase(at);
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
    // Used by the client's thread only.
    std::deque<Publication> sending_;
    BlockedFids<Publication> blocked_;
};

// The calls that wait for the answers to their subscriptions. A subscription is accepted when any
// publishers have accepted each of its fids, and refused with the first refused fid. Each function
// costs the logarithm of the number of waiting calls plus the size of its result, because tens of
// thousands may wait. No I/O.
template <typename Waiter>
class PendingSubscribes {
  public:
    // `limit`: of waiting calls.
    explicit PendingSubscribes(std::size_t limit = SIZE_MAX) noexcept : limit_{limit} {}

    bool is_full() const noexcept { return waiting_.size() >= limit_; }
    // Waits until `end` at most. The caller ensures that `fids` is not empty and is_full() false.
    void add(std::span<const FidRange> fids, Waiter waiter, TimePoint end = TimePoint::max()) {
        const std::uint64_t number = ++last_number_;
        Entry& entry = waiting_
                           .emplace(number, Entry{.open = {},
                                                  .waiter = std::move(waiter),
                                                  .end = ends_.emplace(end, number)})
                           .first->second;
        for (const FidRange& range : normalised(fids))
            open(number, entry, range);
    }
    // Returns the calls that are complete now. All results are in the order of add().
    std::vector<Waiter> accept(const FidRange& fids) {
        std::vector<std::uint64_t> accepted;
        for (const Item& item : overlapping(fids)) {
            Entry& entry = waiting_.at(item.number);
            close(item, entry);
            if (item.range.first < fids.first)
                open(item.number, entry, {item.range.first, Fid{to_integer(fids.first) - 1}});
            if (fids.last < item.range.last)
                open(item.number, entry, {Fid{to_integer(fids.last) + 1}, item.range.last});
            if (entry.open.empty()) accepted.push_back(item.number);
        }
        return take(std::move(accepted));
    }
    // Returns the calls that wait for any of the fids, because these were refused or unsubscribed.
    std::vector<Waiter> end(const FidRange& fids) {
        std::vector<std::uint64_t> ended;
        for (const Item& item : overlapping(fids))
            ended.push_back(item.number);
        return take(std::move(ended));
    }
    // Returns the calls whose time is over.
    std::vector<Waiter> expire(TimePoint now) {
        std::vector<std::uint64_t> over;
        for (auto next = ends_.begin(); next != ends_.end() && next->first <= now; ++next)
            over.push_back(next->second);
        return take(std::move(over));
    }
    // The time when the first call expires.
    TimePoint next_end() const noexcept {
        return ends_.empty() ? TimePoint::max() : ends_.begin()->first;
    }
    std::vector<Waiter> take_all() { return expire(TimePoint::max()); }
    // The number of ranges that accept() and end() have examined, as a measure of their cost.
    std::size_t steps() const noexcept { return steps_; }

  private:
    using Ends = std::multimap<TimePoint, std::uint64_t>;
    struct Entry {
        std::map<Fid, Fid> open; // ranges that are not accepted yet
        Waiter waiter;
        Ends::iterator end;
    };
    struct Item {
        FidRange range;
        std::uint64_t number = 0; // of its entry
    };
    using Starts = std::set<std::pair<Fid, std::uint64_t>>;

    // Ranges are grouped by length, so that the candidates to overlap another range start near it.
    static std::size_t group_of(const FidRange& range) noexcept {
        return static_cast<std::size_t>(
            std::bit_width(to_integer(range.last) - to_integer(range.first)));
    }
    void open(std::uint64_t number, Entry& entry, const FidRange& range) {
        entry.open.emplace(range.first, range.last);
        starts_[group_of(range)].emplace(range.first, number);
    }
    void close(const Item& item, Entry& entry) {
        entry.open.erase(item.range.first);
        starts_[group_of(item.range)].erase({item.range.first, item.number});
    }
    std::vector<Item> overlapping(const FidRange& fids) {
        std::vector<Item> found;
        for (std::size_t group = 0; group < starts_.size(); ++group) {
            const Starts& starts = starts_[group];
            if (starts.empty()) continue;
            const std::uint64_t longest = group < 64 ? (std::uint64_t{1} << group) - 1 : UINT64_MAX;
            const std::uint64_t first = to_integer(fids.first);
            const Fid begin{first > longest ? first - longest : 0};
            ++steps_;
            for (auto at = starts.lower_bound({begin, 0}); at != starts.end(); ++at) {
                ++steps_;
                if (fids.last < at->first) break;
                const Fid last = waiting_.at(at->second).open.at(at->first);
                if (fids.first <= last)
                    found.push_back({.range = {at->first, last}, .number = at->second});
            }
        }
        return found;
    }
    std::vector<Waiter> take(std::vector<std::uint64_t> numbers) {
        std::ranges::sort(numbers);
        std::vector<Waiter> taken;
        for (const std::uint64_t number : numbers) {
            const auto found = waiting_.find(number);
            if (found == waiting_.end()) continue; // was found twice
            Entry& entry = found->second;
            for (const auto& [first, last] : entry.open)
                starts_[group_of({first, last})].erase({first, number});
            ends_.erase(entry.end);
            taken.push_back(std::move(entry.waiter));
            waiting_.erase(found);
        }
        return taken;
    }

    std::size_t limit_;
    std::uint64_t last_number_ = 0;
    std::map<std::uint64_t, Entry> waiting_; // by number, the order of add()
    Ends ends_;
    std::array<Starts, 65> starts_; // of all open ranges, by group
    std::size_t steps_ = 0;
};

// The fids that have a subscriber now, and the number of subscribers. The client's thread updates
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
    // No more subscribers follow: ends the waiting of all threads.
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
