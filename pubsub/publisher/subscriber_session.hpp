// SPDX-License-Identifier: Apache-2.0
#pragma once

// One subscriber of a publisher, with the counters that snapshots show.

// Counters that only snapshots show: no decision depends on them. No I/O, no clock.

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/session_listener.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/publisher/send_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// A count per fid of rare events, such as a dropped message. Fids without an event cost nothing.
class FidCounters {
  public:
    void add(Fid fid) { ++counts_[fid]; }
    std::uint64_t of(Fid fid) const noexcept {
        const std::uint64_t* const count = counts_.find(fid);
        return count != nullptr ? *count : 0;
    }

  private:
    FidMap<std::uint64_t> counts_;
};

// The time in which publishing was blocked: from the first call that the user must repeat until
// on_writable. And the number of refused calls per fid.
class BackpressureTimer {
  public:
    // Notes that publish() returned `again` for the fid.
    void refuse(Fid fid, TimePoint now) {
        refused_.add(fid);
        begin(now);
    }
    // Notes that a call returned `partial`.
    void begin(TimePoint now) noexcept {
        if (!since_) since_ = now;
    }
    // Returns whether publishing was blocked: then the user gets on_writable now.
    bool end(TimePoint now) noexcept {
        if (!since_) return false;
        past_ += now - *since_;
        since_.reset();
        return true;
    }
    // The sum of all such times, including one that has not ended yet.
    Duration time(TimePoint now) const noexcept { return since_ ? past_ + (now - *since_) : past_; }
    const FidCounters& refused() const noexcept { return refused_; }

  private:
    std::optional<TimePoint> since_;
    Duration past_{};
    FidCounters refused_;
};

// Counters of one subscriber.
class SubscriberStats {
  public:
    explicit SubscriberStats(TimePoint now) noexcept : since_{now} {}

    void note_waiting(std::size_t amount) noexcept {
        most_waiting_ = std::max(most_waiting_, amount);
    }
    // Notes the number of free receives of the peer for this side.
    void note_credits(std::size_t count) noexcept {
        least_credits_ = std::min(least_credits_, count);
    }
    // Notes that a frame was sent, `latency` after it was queued.
    void note_sent(Duration latency) noexcept { latency_.add(latency); }
    void note_dropped(std::uint64_t messages) noexcept { dropped_ += messages; }

    TimePoint since() const noexcept { return since_; }
    std::uint64_t dropped() const noexcept { return dropped_; }
    const LatencyHistogram& latency() const noexcept { return latency_; }
    // The largest queue since the previous call; `now`: its current size.
    std::size_t take_most_waiting(std::size_t now) noexcept {
        return std::max(std::exchange(most_waiting_, now), now);
    }
    // The fewest credits since the previous call.
    std::size_t take_least_credits(std::size_t now) noexcept {
        return std::min(std::exchange(least_credits_, now), now);
    }

  private:
    TimePoint since_;
    std::size_t most_waiting_ = 0;
    std::size_t least_credits_ = std::numeric_limits<std::size_t>::max();
    std::uint64_t dropped_ = 0;
    LatencyHistogram latency_;
};

} // namespace netio::pubsub::inline v0_3

// One connected subscriber of a publisher: its session, the queue of what is still to be sent to
// it, its pending requests, and the stage of its life.

namespace netio::pubsub::inline v0_3 {

class PublisherCore;

struct SubscriberRequest {
    SubscriptionRequest request;
    bool subscribes = true;
    bool wants_positions = false;
};

class Subscriber final : private Session::Handler {
  public:
    // The core owns the subscriber and gets its events.
    Subscriber(EventLoop& loop, SubscriberId id, IncomingSession& incoming, const Hello& hello,
               const SessionOptions& options, PublisherCore& core);
    ~Subscriber();

    SubscriberId id() const noexcept { return id_; }
    SubscriberPeer peer() const {
        return {.id = id_, .address = session_->peer_address(), .gone = stage_ == Stage::gone};
    }
    // What the functions below add to the queue is sent without a further call.
    SendQueue& queue() noexcept { return queue_; }
    const SendQueue& queue() const noexcept { return queue_; }
    const Session& session() const noexcept { return *session_; }

    // Each of these sends at once if nothing is queued and the session has capacity.
    void send_frame(std::uint8_t kind, std::span<const std::byte> extension, const Slice& slice,
                    const SendQueue::Handling& handling);
    void send_message(const ZeroCopyMessage& message, const SendQueue::Handling& handling);
    // `positions` are sent before the reply.
    void send_answer(std::uint8_t kind, std::span<const std::byte> body,
                     std::optional<SendQueue::Positions> positions = {});
    void send_fids(std::uint32_t question, std::span<const FidRange> ranges);
    void send_totals(CountList totals);
    // Whether a request must wait, because too many positions of earlier requests are queued: each
    // request may add one for every fid. Requests keep their order.
    bool must_wait() const noexcept { return !requests_.empty() || !has_room_for_request(); }
    void add_request(SubscriberRequest request) { requests_.push_back(std::move(request)); }
    // Late subscriptions. Requests wait while there are this many: each has a place in the history.
    static constexpr std::size_t late_limit = 16;
    void set_late(std::size_t count);
    bool is_late() const noexcept { return late_ > 0; }
    // Requests that wait, and replies that are queued.
    std::size_t open_requests() const noexcept { return requests_.size() + queue_.answers(); }
    // Notes that `count` messages of the fid were dropped for the subscriber. This is reported to
    // it in order, as soon as something has been sent.
    void add_gap(Fid fid, std::uint64_t count);
    // As add_gap(), for messages that the stats have counted already.
    void queue_gap(const FidCount& dropped);
    // Whether conflated messages may be sent now: nothing is queued that precedes them, and, if the
    // queue is empty, the session has capacity. Until it has, they are replaced by newer ones.
    bool may_send_conflated() const noexcept {
        return has_conflated && queue_.marked() == 0 && (!queue_.has_drained() || can_send_now());
    }

    // Whether the next message, or its first part, would be posted at once. `amount`: what it takes
    // of the pool.
    bool can_send_now(std::size_t amount = 1) const noexcept;
    // Call it if nothing can be sent to the subscriber now: PublisherCore::on_progress() follows
    // when something can.
    void request_capacity() { static_cast<void>(session_->request_capacity()); }
    // Whether all that was published for the subscriber has been sent.
    bool is_idle() const noexcept { return is_drained() && is_complete(); }
    // Whether all that was published for the subscriber is in the queue, or has been sent.
    bool is_complete() const noexcept { return !has_conflated && late_ == 0; }

    // Closes the session when the queue is sent.
    void leave();
    // Closes the session after leave_after, if the subscriber still has no subscriptions then.
    void leave_later() { leave_timer_.start(leave_after); }
    static constexpr std::chrono::seconds leave_after{1};
    void fail(CloseReason reason, const std::string& why);
    void abort() { session_->abort(); }

    enum class Stage : std::uint8_t {
        opening,
        subscribing, // the user knows it
        asked,       // it was sent the totals, and must confirm them
        leaving,     // it has confirmed them, or has unsubscribed from everything
        gone,        // nothing may be sent to it any more
    };
    Stage stage() const noexcept { return stage_; }
    void set_stage(Stage stage) noexcept { stage_ = stage; }

    // Sends conflated messages if it is their turn; otherwise ensures that they get a turn.
    void offer_capacity();

    // Reports to the loop's observer when the subscriber has made no progress for
    // ProgressMonitor::reported_after, and when it makes progress again. `before`: how long it had
    // made none until now.
    void report_stall(Duration before) const;
    // The statistics of a snapshot; restarts those that cover the time since the previous one.
    SubscriberSnapshot take_snapshot(TimePoint now);

    SubscriberStats stats{TimePoint{}};
    SubscriberProgress progress;
    bool announced = false;       // the user knows it
    bool confirmed = false;       // it is gone after it has confirmed the totals
    bool has_conflated = false;   // the publisher stores messages that follow the queue
    std::vector<FidRange> former; // its subscriptions when it was gone

  private:
    void pump();
    bool has_room_for_request() const noexcept {
        return !queue_.positions_are_full() && late_ < late_limit;
    }
    void start_requests();
    void take_next_request();
    bool is_drained() const noexcept { return queue_.has_drained() && queue_.usage().posted == 0; }

    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    SubscriberId id_;
    PublisherCore& core_;
    SendQueue queue_;
    SendQueue::Room room_; // as of the last pump()
    Stage stage_ = Stage::opening;
    std::size_t late_ = 0;
    bool* destroyed_ = nullptr;
    std::vector<SendQueue::Returned> returned_; // empty; keeps its memory
    std::deque<SubscriberRequest> requests_;    // that wait
    Timer request_timer_;                       // the first of these is due
    Timer leave_timer_;
    std::unique_ptr<Session> session_; // destroyed first
};

} // namespace netio::pubsub::inline v0_3
