// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages of a netio::Subscriber that wait for readers: collected in batches on the loop's
// thread, taken by any other thread.

#include "pubsub/core/conflation.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/message_batch.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Batches of messages that wait for a reader. A filled batch is handed over as a whole, and the
// memory of a read batch is reused. No I/O, no threads: the caller locks.
class Mailbox {
  public:
    // What is queued, or a limit of it.
    struct Load {
        std::size_t messages = 0;
        std::size_t bytes = 0;
    };
    explicit Mailbox(const Load& limit) noexcept : limit_{limit} {}

    // Takes a batch with at least one message, and returns an empty one in its place.
    void exchange(MessageBatch& batch) {
        load_.messages += batch.size();
        load_.bytes += batch.bytes();
        if (!waiting_.empty() && is_small(batch) && is_small(waiting_.back())) {
            waiting_.back().append(batch);
            return batch.clear();
        }
        waiting_.push_back(std::exchange(batch, take_spare()));
    }
    // Moves the oldest batch into `batch`, whose memory is reused. Returns the number of messages.
    std::size_t take(MessageBatch& batch) {
        batch.clear();
        if (waiting_.empty()) return 0;
        std::swap(batch, waiting_.front());
        keep(std::move(waiting_.front()));
        waiting_.pop_front();
        load_.messages -= batch.size();
        load_.bytes -= batch.bytes();
        return batch.size();
    }
    const Load& load() const noexcept { return load_; }
    bool empty() const noexcept { return waiting_.empty(); }
    // Whether at least half of the limit is free. Prevents pausing and resuming for each message.
    bool has_room() const noexcept {
        return load_.messages <= limit_.messages / 2 && load_.bytes <= limit_.bytes / 2;
    }

  private:
    static bool is_small(const MessageBatch& batch) noexcept {
        return batch.size() <= 256 && batch.bytes() <= std::size_t{32} << 10;
    }

    static constexpr std::size_t spare_bytes = std::size_t{1} << 20; // of each batch

    MessageBatch take_spare() {
        if (spare_.empty()) return {};
        MessageBatch batch = std::move(spare_.back());
        spare_.pop_back();
        spare_capacity_ -= batch.capacity();
        return batch;
    }
    void keep(MessageBatch batch) {
        // Keeps up to half of the limit, because for newly allocated memory of each batch the
        // kernel would map and clear pages.
        const std::size_t capacity = batch.capacity();
        if (capacity == 0 || capacity > spare_bytes) return;
        if (spare_capacity_ + capacity > limit_.bytes / 2) return;
        spare_capacity_ += capacity;
        batch.clear();
        spare_.push_back(std::move(batch));
    }

    Load limit_;
    Load load_;
    std::deque<MessageBatch> waiting_;
    std::vector<MessageBatch> spare_; // the last one is reused first
    std::size_t spare_capacity_ = 0;
};

// Collects messages for a Mailbox, so that many need one lock, and applies the policy when it is
// full. It knows the load of the mailbox at the last look; since then it can only have decreased.
// No I/O, no threads.
class BatchFiller {
  public:
    struct Options {
        Mailbox::Load limit;
        SlowPolicy when_full = SlowPolicy::block; // disconnect acts as block here
    };
    explicit BatchFiller(const Options& options) : options_{options}, newest_{options.limit.bytes} {
        look({});
    }

    // Sets the current load of the mailbox. Appends conflated messages to the batch as far as there
    // is space, so that no newer message of their fids precedes them.
    void look(const Mailbox::Load& load) {
        seen_ = load;
        if (!newest_.empty() && !is_full()) take_kept(false);
        const Mailbox::Load& limit = options_.limit;
        calm_ = {.messages = std::min(batch_messages,
                                      limit.messages - std::min(limit.messages, load.messages)),
                 .bytes = std::min(batch_bytes, limit.bytes - std::min(limit.bytes, load.bytes))};
    }
    // The fast path of put(): takes the message if there is space, no losses are to be reported,
    // and the batch is neither full nor due with it. Otherwise returns false without an effect.
    bool put_fast(Fid fid, std::span<const std::byte> bytes, std::uint8_t status,
                  StampFormat stamps = {}) {
        if (lost_sum_ > 0 || batch_.size() + 1 >= calm_.messages ||
            batch_.bytes() + bytes.size() >= calm_.bytes) {
            return false;
        }
        batch_.append(
            {.fid = fid, .status = status, .lost_before = 0, .bytes = bytes, .stamps = stamps});
        return true;
    }
    // Whether the mailbox is full with this batch, as far as is known.
    bool is_full() const noexcept {
        return seen_.messages + batch_.size() >= options_.limit.messages ||
               seen_.bytes + batch_.bytes() >= options_.limit.bytes;
    }
    bool blocks() const noexcept {
        return options_.when_full == SlowPolicy::block ||
               options_.when_full == SlowPolicy::disconnect;
    }

    // Returns false if the message was dropped, or, with `newest`, conflated until there is space.
    // With `block` a message is taken even if the mailbox is full, because it cannot be refused.
    bool put(Fid fid, std::span<const std::byte> bytes, std::uint8_t status,
             StampFormat stamps = {}) {
        if (!has_room_for(fid, bytes, status, stamps)) return false;
        append(fid, bytes, status, stamps);
        return true;
    }
    // The same for a message that is not copied. `bytes`: with its time stamp.
    bool put_kept(Fid fid, KeptBytes bytes, std::uint8_t status, StampFormat stamps = {}) {
        const std::size_t before = time_stamp::bytes_of(stamps);
        if (!has_room_for(fid, bytes.bytes().subspan(before), status, stamps)) return false;
        const std::uint64_t lost = take_lost(fid);
        batch_.append(
            {.fid = fid, .status = status, .lost_before = lost, .bytes = {}, .stamps = stamps},
            std::move(bytes));
        return true;
    }
    // Dropped messages of all fids since the construction.
    std::uint64_t dropped() const noexcept { return dropped_; }
    // Whether conflated messages wait here.
    bool keeps() const noexcept { return newest_.has_messages(); }
    // Notes that `count` messages were lost before the next one of this fid.
    void add_lost(Fid fid, std::uint64_t count) {
        lost_[fid] += count;
        lost_sum_ += count;
    }
    // No message follows: appends conflated messages and unreported losses beyond the limit.
    // Returns the number of these losses.
    std::uint64_t put_rest() {
        take_kept(true);
        lost_.for_each([this](Fid fid, std::uint64_t count) {
            batch_.append({.fid = fid, .lost_before = count, .is_gap = true, .bytes = {}});
        });
        lost_.clear();
        return std::exchange(lost_sum_, 0);
    }
    // Whether the batch is large enough to be handed over.
    bool is_due() const noexcept {
        return batch_.size() >= batch_messages || batch_.bytes() >= batch_bytes;
    }
    MessageBatch& batch() noexcept { return batch_; }

  private:
    static constexpr std::size_t batch_messages = 2048;
    static constexpr std::size_t batch_bytes = std::size_t{256} << 10;

    void append(Fid fid, std::span<const std::byte> bytes, std::uint8_t status,
                StampFormat stamps) {
        const std::uint64_t lost = take_lost(fid);
        batch_.append(
            {.fid = fid, .status = status, .lost_before = lost, .bytes = bytes, .stamps = stamps});
    }
    std::uint64_t take_lost(Fid fid) {
        const std::uint64_t* const found = lost_sum_ > 0 ? lost_.find(fid) : nullptr;
        if (found == nullptr) return 0;
        const std::uint64_t lost = *found;
        lost_sum_ -= lost;
        lost_.erase(fid);
        return lost;
    }
    // False: the message was dropped or conflated.
    bool has_room_for(Fid fid, std::span<const std::byte> bytes, std::uint8_t status,
                      StampFormat stamps) {
        if (blocks() || !is_full()) return true;
        options_.when_full == SlowPolicy::newest ? keep(fid, bytes, status, stamps) : drop(fid);
        return false;
    }
    void drop(Fid fid) {
        add_lost(fid, 1);
        ++dropped_;
    }
    void keep(Fid fid, std::span<const std::byte> bytes, std::uint8_t status, StampFormat stamps) {
        const std::span<const std::byte> all = time_stamp::with_stamp(bytes, stamps);
        dropped_ += newest_.put(fid, {&all, 1}, status, stamps).size();
        calm_ = {}; // no fast path until the next look
    }
    void take_kept(bool all) {
        for (const FidCount& dropped : newest_.take_dropped())
            add_lost(dropped.fid, dropped.count);
        while (newest_.has_messages() && (all || !is_full())) {
            const ConflationStore::Message& message = newest_.front();
            append(message.fid,
                   std::span{message.bytes}.subspan(time_stamp::bytes_of(message.stamps)),
                   message.status, message.stamps);
            newest_.pop_front();
        }
    }

    Options options_;
    ConflationStore newest_; // with `newest`: the last message of each fid; has its own limit
    Mailbox::Load seen_;
    Mailbox::Load calm_; // below it a batch is neither full nor due
    MessageBatch batch_;
    FidMap<std::uint64_t> lost_; // not reported yet
    std::uint64_t lost_sum_ = 0; // of all fids
    std::uint64_t dropped_ = 0;
};

// Hands messages from the loop's thread to all others: a Mailbox with a lock, a condition to wait
// for, and a descriptor for event loops. The lock is taken once per batch.
class MessageQueue {
  public:
    // `resume` requests more messages; called from any thread.
    MessageQueue(const BatchFiller::Options& options, std::function<void()> resume);
    ~MessageQueue();
    MessageQueue(const MessageQueue&) = delete;
    MessageQueue& operator=(const MessageQueue&) = delete;

    // The loop's thread. Returns false if no more messages should follow until `resume`. Other
    // threads see the messages after hand_over(), which is due at the end of the loop's turn, and
    // after `resume`.
    bool put(Fid fid, std::span<const std::byte> bytes, std::uint8_t status,
             StampFormat stamps = {}) {
        return filler_.put_fast(fid, bytes, status, stamps) ||
               put_slow([&] { return filler_.put(fid, bytes, status, stamps); });
    }
    // The same for a message that is not copied. `bytes`: with its time stamp.
    bool put_kept(Fid fid, KeptBytes bytes, std::uint8_t status, StampFormat stamps = {}) {
        return put_slow([&] { return filler_.put_kept(fid, std::move(bytes), status, stamps); });
    }
    // Notes that `count` messages of this fid were lost at this position.
    void add_lost(Fid fid, std::uint64_t count) { filler_.add_lost(fid, count); }
    bool hand_over();
    // No message follows. Unreported losses are queued; returns their number.
    std::uint64_t end();

    // Any thread.
    // The next poll() does not wait, and the descriptor is readable until then.
    void wake();
    // Replaces `batch` by the next one, whose memory is reused. Returns the number of messages; 0
    // after the time-out, after wake(), or at the end.
    std::size_t poll(MessageBatch& batch, std::chrono::milliseconds timeout);
    int pollable_fd() const noexcept { return fd_; }
    std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  private:
    template <typename Put>
    bool put_slow(Put put);
    void resume_if_space();
    void set_readable(bool readable);

    // Used by the loop's thread only.
    BatchFiller filler_;
    bool has_looked_ = false; // in this turn
    std::atomic<std::uint64_t> dropped_{0};

    std::mutex mutex_; // of what follows
    std::condition_variable changed_;
    Mailbox mailbox_;
    std::function<void()> resume_;
    bool stopped_ = false; // the loop waits for space
    bool woken_ = false;
    bool ended_ = false;
    bool readable_ = false;
    int fd_;
};

template <typename Put>
bool MessageQueue::put_slow(Put put) {
    // With drop and newest, looks at the mailbox once per turn of the loop.
    if (filler_.is_full() && !filler_.blocks() && !std::exchange(has_looked_, true)) {
        const std::lock_guard lock{mutex_};
        filler_.look(mailbox_.load());
    }
    if (!put()) {
        dropped_.store(filler_.dropped(), std::memory_order_relaxed);
        return true;
    }
    const bool stop = filler_.is_full() && filler_.blocks();
    return stop || filler_.is_due() ? hand_over() : true;
}

} // namespace netio::pubsub::inline v0_3
