// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages that wait for those who take them, in batches: what is filled by one side is handed over
// as a whole, and what was read comes back to be filled again. No I/O, no threads: the caller
// locks.

#include "pubsub/core/message.hpp"
#include "pubsub/core/message_batch.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class Mailbox {
  public:
    // What waits, or may.
    struct Load {
        std::size_t messages = 0;
        std::size_t bytes = 0;
    };
    explicit Mailbox(const Load& limit) noexcept : limit_{limit} {}

    // Takes a batch that has messages, however many, and gives one that has none.
    void exchange(MessageBatch& batch) {
        load_.messages += batch.size();
        load_.bytes += batch.bytes();
        if (!waiting_.empty() && is_small(batch) && is_small(waiting_.back())) {
            for (const MessageBatch::Item item : batch)
                waiting_.back().append(item);
            return batch.clear();
        }
        waiting_.push_back(std::exchange(batch, take_spare()));
    }
    // The messages of the oldest batch; the memory of the given one is used again. How many.
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
    // Appends copies, so many at most.
    std::size_t take(std::vector<Message>& out, std::size_t at_most) {
        std::size_t taken = 0;
        while (taken < at_most && !waiting_.empty()) {
            MessageBatch& front = waiting_.front();
            const std::size_t count = std::min(at_most - taken, front.size());
            load_.bytes -= front.bytes();
            for (std::size_t i = 0; i < count; ++i) {
                const MessageBatch::Item item = front[i];
                out.push_back({.fid = item.fid,
                               .status = item.status,
                               .missed = item.missed,
                               .is_gap = item.is_gap,
                               .bytes = {item.bytes.begin(), item.bytes.end()}});
            }
            front.drop_front(count);
            load_.bytes += front.bytes();
            load_.messages -= count;
            taken += count;
            if (!front.empty()) continue;
            keep(std::move(front));
            waiting_.pop_front();
        }
        return taken;
    }

    const Load& load() const noexcept { return load_; }
    bool empty() const noexcept { return waiting_.empty(); }
    // For more than a few: so that not every message stops and goes.
    bool has_room() const noexcept {
        return load_.messages <= limit_.messages / 2 && load_.bytes <= limit_.bytes / 2;
    }

  private:
    static bool is_small(const MessageBatch& batch) noexcept {
        return batch.size() <= 256 && batch.bytes() <= std::size_t{32} << 10;
    }

    static constexpr std::size_t spare_bytes = std::size_t{1} << 20; // of each

    MessageBatch take_spare() {
        if (spare_.empty()) return {};
        MessageBatch batch = std::move(spare_.back());
        spare_.pop_back();
        spare_capacity_ -= batch.capacity();
        return batch;
    }
    void keep(MessageBatch batch) {
        // Together half of what may wait: memory that comes and goes with each batch is mapped and
        // cleared by the kernel each time.
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
    std::vector<MessageBatch> spare_; // the one that was used last is taken first
    std::size_t spare_capacity_ = 0;
};

} // namespace netio::pubsub::inline v0_2
