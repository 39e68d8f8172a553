// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rule for slow subscribers: how much of the publisher's memory a subscriber may hold, and what
// happens when it holds more or makes no progress. No I/O, no clock: PublisherCore carries it out.
//
// All subscribers share one pool: bytes of pages (buffered), or publications whose memory is
// borrowed (zero-copy). A subscriber holds what is queued for it and what is posted to the fabric.
//
// | a subscriber that          | block        | disconnect   | drop           | newest         |
// |----------------------------|--------------|--------------|----------------|----------------|
// | holds less than its limit  | enqueue      | enqueue      | enqueue        | enqueue        |
// | holds its limit            | `again`      | `again`      | drop, gap      | conflate       |
// | holds most, pool short     | `again`      | `again`      | queue dropped  | conflated      |
// | is stalled, pool short     | `again`      | `again`      | queue dropped, | conflated,     |
// |                            |              |              | no more queued | no more queued |
// | is stalled                 | one post     | one post     | one post       | one post       |
// | is waited for too long     | `again`      | session ends | -              | -              |
// | has posts that others need | session ends | session ends | session ends   | session ends   |
//
// - The limit is the configured one while at least half of the pool is free. When the pool is short
//   (less than half free) it is a fraction of what is still free: 1 / (4 + number of subscribers).
//   So some memory stays free for the others, however many subscribers stop and in whatever order.
// - Messages for a `block` or `disconnect` subscriber are never dropped from its queue. So beyond
//   half of the pool nothing is queued for it unless it fits into such a fraction of what is free
//   beyond a reserve: a quarter of the pool, or the largest message up to half of the pool.
//   Otherwise publish() returns `again` until the subscriber can be sent something at once.
// - Stalled: no progress for ProgressMonitor::stalled_after. While the pool is short, and until
//   three quarters are free again, the queues of stalled `drop` and `newest` subscribers are
//   dropped, the longest stalled first. Then, while it is short, those of the subscribers that hold
//   most.
// - Posted memory cannot be reclaimed. If the posts of stalled subscribers hold half of the pool,
//   or a message waits for them in vain, the sessions of the longest stalled end, as many as
//   needed.
// - While the publisher closes, a subscriber that makes no progress for close_timeout is
//   disconnected, and at close_limit all that are left.

#include "netio/base/check.hpp"
#include "netio/base/cookie.hpp"
#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/fid.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// --- memory -----------------------------------------------------------------------------------

// What one subscriber holds of the pool.
struct QueueUsage {
    std::size_t waiting = 0;   // in its queue
    std::size_t droppable = 0; // part of `waiting`: may be dropped
    std::size_t limited = 0;   // part of `waiting`: its policy is to disconnect
    std::size_t posted = 0;    // posted to the fabric

    std::size_t all() const noexcept { return waiting + posted; }
};

class MemoryBudget {
  public:
    // `pool`: the memory limit, in the unit of the publisher: bytes of pages, or publications.
    // `largest`: what the largest message takes of it.
    explicit MemoryBudget(std::size_t pool, std::size_t largest = 1) noexcept
        : pool_{pool}, reserve_{std::clamp(largest, pool / 4, pool / 2)} {}

    // Counts a piece of memory that is in use. Several subscribers may hold the same piece; it is
    // counted once.
    void use(std::size_t amount) noexcept {
        used_ += amount;
        most_used_ = std::max(most_used_, used_);
    }
    void release(std::size_t amount) noexcept {
        NETIO_CHECK(used_ >= amount);
        used_ -= amount;
    }
    void set_subscribers(std::size_t count) noexcept { subscribers_ = count; }

    std::size_t pool() const noexcept { return pool_; }
    std::size_t free() const noexcept { return pool_ - std::min(pool_, used_); }
    // The smallest free() since the previous call.
    std::size_t take_least_free() noexcept {
        return pool_ - std::min(pool_, std::exchange(most_used_, used_));
    }
    // Whether less than half of the pool is free, or less than `needed`.
    bool is_short(std::size_t needed = 0) const noexcept {
        return free() < std::max(pool_ / 2, needed);
    }
    // Whether half of the pool stays free if `amount` more is queued. `free`: the free memory
    // without that which open pages may still fill.
    bool has_ample_space(std::size_t amount, std::size_t free) const noexcept {
        return free >= amount + (pool_ - pool_ / 2);
    }
    // What a `block` or `disconnect` subscriber that cannot be sent anything now may hold where
    // has_ample_space() is false.
    std::size_t waiting_limit(std::size_t free) const noexcept {
        return (free - std::min(free, reserve_)) / (others + subscribers_);
    }

    // Whether less than three quarters of the pool are free. After the pool was short, stalled
    // subscribers hold nothing while this is true.
    bool is_recovering() const noexcept { return free() < pool_ - pool_ / 4; }

    // How much a subscriber may hold when the next piece is queued for it; `limit`: its configured
    // limit.
    std::size_t allowance(std::size_t limit) const noexcept {
        return is_short() ? std::min(limit, free() / (others + subscribers_)) : limit;
    }
    // The size of the next piece if any size up to `usual` is useful.
    std::size_t piece(std::size_t usual, std::size_t free) const noexcept {
        return free < pool_ / 2 ? std::min(usual, free / (others + subscribers_)) : usual;
    }
    // How much may be posted to a subscriber; its first piece always may be posted.
    std::size_t post_limit(bool stalled) const noexcept {
        return stalled ? 0 : allowance(SIZE_MAX);
    }
    // Whether stalled subscribers must be disconnected, because too much of the pool is posted to
    // them: half of it, or so much that a waiting message, which needs `needed`, has no place in
    // the rest.
    bool posts_hold_too_much(std::size_t posted_to_stalled, std::size_t needed) const noexcept {
        return posted_to_stalled > 0 &&
               (posted_to_stalled >= pool_ / 2 || pool_ - posted_to_stalled < needed);
    }

  private:
    // Parts of the free memory that no subscriber of now may hold.
    static constexpr std::size_t others = 4;

    std::size_t pool_;
    std::size_t reserve_; // memory that `block` and `disconnect` subscribers leave free
    std::size_t used_ = 0;
    std::size_t most_used_ = 0; // since take_least_free()
    std::size_t subscribers_ = 0;
};

// --- progress ---------------------------------------------------------------------------------

struct SubscriberProgress {
    std::uint64_t seen = 0;  // SendQueue::progress() at the last check
    Duration time{};         // without progress
    bool reclaimed = false;  // its queue was dropped; nothing is queued until it makes progress
    bool waited_for = false; // publishing waits for it
    bool limited = false;    // and its policy is to disconnect
};

// Measures how long subscribers make no progress although data waits for them.
//
// Only time that was observed counts. A publisher that was stopped, or was busy in a handler of the
// user's, has not seen the progress of its subscribers in that time, so one check adds at most two
// periods. The caller checks after it has processed the completions that had arrived.
class ProgressMonitor {
  public:
    // A subscriber without progress for this long is stalled.
    static constexpr std::chrono::milliseconds stalled_after{100};
    // A subscriber without progress for this long is reported as slow. Shorter stalls are common
    // and cost nothing: a subscriber that computes, a process that waits for a processor.
    static constexpr std::chrono::seconds reported_after{1};

    // `shortest`: the shortest time-out that is observed.
    explicit ProgressMonitor(Duration shortest) noexcept
        : period_{
              std::clamp<Duration>(shortest / 8, std::chrono::microseconds{100}, stalled_after)} {}

    // The time between two checks while data waits for a subscriber.
    Duration period() const noexcept { return period_; }

    // Begins a check of all subscribers.
    void look(TimePoint now) noexcept {
        looked_ = last_ == TimePoint::min() ? Duration::zero() : std::min(now - last_, 2 * period_);
        last_ = now;
    }
    // Call it when no data waits for any subscriber: the time until the next check does not count.
    void rest() noexcept { last_ = TimePoint::min(); }

    struct Queue {
        bool has_more = false;      // data waits for the subscriber
        std::uint64_t progress = 0; // changes when the subscriber makes progress
    };
    // A subscriber with queued data stays `waited_for` even if it made progress, because the
    // progress may predate the wait or be too small to end it.
    void see(SubscriberProgress& subscriber, const Queue& queue) const noexcept {
        const bool progressed = queue.progress != subscriber.seen;
        subscriber.seen = queue.progress;
        subscriber.waited_for = subscriber.waited_for && (queue.has_more || !progressed);
        subscriber.limited = subscriber.limited && subscriber.waited_for;
        const bool counts = !progressed && (queue.has_more || subscriber.waited_for);
        subscriber.reclaimed = subscriber.reclaimed && counts;
        subscriber.time = counts ? subscriber.time + looked_ : Duration{};
    }
    static bool stalled(const SubscriberProgress& subscriber) noexcept {
        return subscriber.time >= stalled_after;
    }
    static bool is_reported(Duration time) noexcept { return time >= reported_after; }

  private:
    Duration period_;
    TimePoint last_ = TimePoint::min();
    Duration looked_{};
};

// --- ending sessions --------------------------------------------------------------------------

// The progress of a publisher's shutdown, and how it is reported when all subscribers are gone.
class ShutdownState {
  public:
    // Begins an orderly shutdown: subscribers that have not received everything at `limit`, on the
    // clock of attended(), are disconnected. Returns false if the shutdown had begun before.
    bool begin(TimePoint limit) noexcept {
        if (begun_) return false;
        begun_ = true;
        limit_ = limit;
        return true;
    }
    void begin_abort() noexcept { begun_ = aborted_ = true; }

    bool has_begun() const noexcept { return begun_; }
    bool is_overdue(TimePoint now) const noexcept { return now >= limit_; }
    // Call it when a subscriber is gone and has not confirmed the totals.
    void note_unconfirmed() noexcept { unconfirmed_ += begun_ ? 1 : 0; }

    Closed result() const;

  private:
    bool begun_ = false;
    bool aborted_ = false;
    std::size_t unconfirmed_ = 0;
    TimePoint limit_ = TimePoint::max();
};

// Decides whose sessions end because they make no progress.
class EvictionPolicy {
  public:
    // Memory that is posted to a subscriber without progress for this long may be reclaimed by
    // ending its session.
    static constexpr std::chrono::seconds post_timeout{1};

    struct Timeouts {
        std::chrono::milliseconds disconnect_after{}; // policy disconnect, while waited for
        std::chrono::milliseconds close_timeout{};    // all, while the publisher closes
    };
    explicit EvictionPolicy(const Timeouts& timeouts) noexcept : timeouts_{timeouts} {}

    // Why a subscriber must be disconnected; empty: it stays.
    std::string verdict(const SubscriberProgress& subscriber, const ShutdownState& shutdown,
                        TimePoint now) const;

    // A stalled subscriber, and the memory that only the end of its session frees.
    struct Holder {
        SubscriberId subscriber{};
        Duration idle{};
        std::vector<std::pair<Cookie, std::size_t>> posts; // and the pool memory of each
        std::size_t rest = 0; // what else it holds, free when its session ends
    };
    // What the publisher waits for.
    struct Need {
        std::size_t amount = 0; // of the pool; 0: nothing
        // All other subscribers hold nothing, so no memory becomes free by itself. Free memory may
        // be fragmented, so a message can wait in vain although enough is free.
        bool in_vain = false;
    };
    // The subscribers whose sessions must end: the longest stalled, and no more than needed.
    static std::vector<SubscriberId> evicted(std::vector<Holder> holders,
                                             const MemoryBudget& budget, const Need& need);

  private:
    Timeouts timeouts_;
};

} // namespace netio::pubsub::inline v0_3
