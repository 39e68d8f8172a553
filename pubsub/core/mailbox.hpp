// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages that wait for those who take them, and what becomes of one for which there is no room.
// No I/O, no threads: the caller locks.

#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class Mailbox {
  public:
    struct Options {
        std::size_t messages = 65536;
        std::size_t bytes = std::size_t{64} << 20;
        SlowPolicy when_full = SlowPolicy::block; // or drop
    };
    explicit Mailbox(const Options& options) noexcept : options_{options} {}

    enum class Put : std::uint8_t {
        taken,
        full,    // taken, and now nothing more should come until has_room()
        dropped, // and counted
    };
    // With `block` what comes in spite of that is taken as well: it cannot be sent back.
    Put put(Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
        if (options_.when_full == SlowPolicy::drop && is_full()) {
            ++missed_[fid];
            ++dropped_;
            return Put::dropped;
        }
        std::uint64_t missed = 0;
        if (const std::uint64_t* const found = missed_.find(fid)) {
            missed = *found;
            missed_.erase(fid);
        }
        bytes_ += bytes.size();
        waiting_.push_back({.fid = fid,
                            .status = status,
                            .missed = missed,
                            .bytes = {bytes.begin(), bytes.end()}});
        return is_full() ? Put::full : Put::taken;
    }
    // Appends so many at most.
    std::size_t take(std::vector<Message>& out, std::size_t at_most) {
        const std::size_t count = std::min(at_most, waiting_.size());
        for (std::size_t i = 0; i < count; ++i) {
            bytes_ -= waiting_.front().bytes.size();
            out.push_back(std::move(waiting_.front()));
            waiting_.pop_front();
        }
        return count;
    }

    bool blocks() const noexcept { return options_.when_full != SlowPolicy::drop; }
    bool empty() const noexcept { return waiting_.empty(); }
    bool is_full() const noexcept {
        return waiting_.size() >= options_.messages || bytes_ >= options_.bytes;
    }
    // For more than a few: so that not every message stops and goes.
    bool has_room() const noexcept {
        return waiting_.size() <= options_.messages / 2 && bytes_ <= options_.bytes / 2;
    }
    std::uint64_t dropped() const noexcept { return dropped_; }

  private:
    Options options_;
    std::deque<Message> waiting_;
    std::size_t bytes_ = 0;
    FidMap<std::uint64_t> missed_; // not told yet
    std::uint64_t dropped_ = 0;
};

} // namespace netio::pubsub::inline v0_2
