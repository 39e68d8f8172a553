// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who may hold how much of a pool that all subscribers share: bytes of pages, or publications whose
// memory is lent. No I/O, no clock.
//
// What a subscriber holds waits in its queue or is posted to the fabric. As long as half of the
// pool is free, everybody may hold what the options say. Beyond that,
//   - who has stalled and may miss messages gives way, the one that has made no progress for the
//     longest time first, until three quarters are free: so those who go on have something left
//     when they are held up for a moment. Who has given way gets nothing until it takes something;
//   - what waits for those who may miss messages is taken back, from whoever holds the most of it;
//   - each may hold only a fraction of what is still free, one in `others` + the number of
//     subscribers. So however many of them stop, in whatever order, part of the pool stays free for
//     those who go on;
//   - what waits for somebody that publishing waits for is never given up. So nothing is added to
//     it beyond half of the pool unless it fits into such a fraction, of what is free beyond a
//     quarter, or beyond what the largest message takes, as far as that is half of the pool;
//     else publishing waits, also for one that holds nothing, until it can be sent something at
//     once. So a message that nobody who waits wants finds room;
//   - what is posted cannot be taken back: who has made no progress for a while gets one post at a
//     time, and if the posts of such subscribers hold half of the pool, or a message waits in vain
//     for them, the one that has made none for the longest time is to be closed.

#include "netio/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace netio::pubsub::inline v0_2 {

// What one subscriber holds of the pool.
struct Holding {
    std::size_t waiting = 0;   // in its queue
    std::size_t droppable = 0; // of that: may be taken back
    std::size_t limited = 0;   // of what waits: for which its policy is to disconnect
    std::size_t posted = 0;    // in the fabric's hands

    std::size_t all() const noexcept { return waiting + posted; }
};

class Shares {
  public:
    // `largest`: what the largest message takes of the pool.
    explicit Shares(std::size_t pool, std::size_t largest = 1) noexcept
        : pool_{pool}, reserve_{std::clamp(largest, pool / 4, pool / 2)} {}

    // A piece of the pool is in use, or not any more; one piece may be held by many.
    void use(std::size_t amount) noexcept {
        used_ += amount;
        most_used_ = std::max(most_used_, used_);
    }
    void give_back(std::size_t amount) noexcept {
        NETIO_CHECK(used_ >= amount);
        used_ -= amount;
    }
    void set_subscribers(std::size_t count) noexcept { subscribers_ = count; }

    std::size_t pool() const noexcept { return pool_; }
    std::size_t free() const noexcept { return pool_ - std::min(pool_, used_); }
    // The least that was free since this was asked last.
    std::size_t take_least_free() noexcept {
        return pool_ - std::min(pool_, std::exchange(most_used_, used_));
    }
    // Less than half of the pool is free, or than what is needed now.
    bool is_short(std::size_t needed = 0) const noexcept {
        return free() < std::max(pool_ / 2, needed);
    }
    // Half of the pool is still free when so much more of it waits. `free`: with what may still
    // enter pages that have been opened taken off.
    bool is_plenty(std::size_t amount, std::size_t free) const noexcept {
        return free >= amount + (pool_ - pool_ / 2);
    }
    // What whoever is waited for, and cannot be sent anything at once, may come to hold where there
    // is not plenty.
    std::size_t waiting_limit(std::size_t free) const noexcept {
        return (free - std::min(free, reserve_)) / (others + subscribers_);
    }

    // Once the pool was short: those who have stalled have to give way still.
    bool is_recovering() const noexcept { return free() < pool_ - pool_ / 4; }

    // What a subscriber may hold when the next piece comes for it, of a share of so much.
    std::size_t allowance(std::size_t share) const noexcept {
        return is_short() ? std::min(share, free() / (others + subscribers_)) : share;
    }
    // How large a piece should be made where any size will do.
    std::size_t piece(std::size_t usual, std::size_t free) const noexcept {
        return free < pool_ / 2 ? std::min(usual, free / (others + subscribers_)) : usual;
    }
    // What may be posted to a subscriber; the first piece always may.
    std::size_t post_limit(bool stalled) const noexcept {
        return stalled ? 0 : allowance(SIZE_MAX);
    }
    // The posts of those who have stalled hold too much for all of them to be kept, where a message
    // waits that needs so much.
    bool posts_hold_too_much(std::size_t posted_to_stalled, std::size_t needed) const noexcept {
        return posted_to_stalled > 0 &&
               (posted_to_stalled >= pool_ / 2 || pool_ - posted_to_stalled < needed);
    }

  private:
    static constexpr std::size_t others = 4;

    std::size_t pool_;
    std::size_t reserve_; // that those whom publishing waits for leave free
    std::size_t used_ = 0;
    std::size_t most_used_ = 0; // since it was asked for last
    std::size_t subscribers_ = 0;
};

} // namespace netio::pubsub::inline v0_2
