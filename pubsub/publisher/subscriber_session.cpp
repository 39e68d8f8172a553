// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscriber_session.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "pubsub/publisher/publisher_core.hpp"

#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

// The loop's time does not change within a turn, and costs nothing to read.
SendQueue::Handling stamped(SendQueue::Handling handling, const EventLoop& loop) noexcept {
    handling.since = loop.now();
    return handling;
}

} // namespace

Subscriber::Subscriber(EventLoop& loop, SubscriberId id, IncomingSession& incoming,
                       const Hello& hello, const SessionOptions& options, PublisherCore& core)
    : id_{id}, core_{core}, room_{.by_device = incoming.guards_memory()},
      request_timer_{loop, [this] { take_next_request(); }},
      leave_timer_{loop, [this] { core_.on_leave_due(*this); }}, session_{incoming.accept(
                                                                     hello, options, *this)} {
    stats = SubscriberStats{session_->loop().now()};
}

Subscriber::~Subscriber() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

void Subscriber::send_frame(std::uint8_t kind, std::span<const std::byte> extension,
                            const Slice& slice, const SendQueue::Handling& handling) {
    NETIO_CHECK(stage_ != Stage::gone);
    queue_.add_frame(kind, extension, slice, stamped(handling, session_->loop()));
    stats.note_waiting(queue_.usage().waiting);
    pump();
}

void Subscriber::send_message(const ZeroCopyMessage& message, const SendQueue::Handling& handling) {
    NETIO_CHECK(stage_ != Stage::gone);
    queue_.add_message(message, stamped(handling, session_->loop()));
    stats.note_waiting(queue_.usage().waiting);
    pump();
}

void Subscriber::send_answer(std::uint8_t kind, std::span<const std::byte> body,
                             std::optional<SendQueue::Positions> positions) {
    if (stage_ == Stage::gone) return;
    if (positions) queue_.add_positions(std::move(*positions));
    queue_.add_answer(kind, body);
    pump();
}

void Subscriber::send_fids(std::uint32_t question, std::span<const FidRange> ranges) {
    if (stage_ == Stage::gone) return;
    queue_.add_fids(question, ranges);
    pump();
}

void Subscriber::send_totals(CountList totals) {
    queue_.add_totals(std::move(totals));
    pump();
}

void Subscriber::add_gap(Fid fid, std::uint64_t count) {
    if (stage_ == Stage::gone) return;
    stats.note_dropped(count);
    queue_gap({.fid = fid, .count = count});
}

void Subscriber::queue_gap(const FidCount& dropped) {
    if (stage_ == Stage::gone) return;
    const bool nothing_is_sent = is_drained();
    queue_.add_gap(dropped.fid, dropped.count);
    if (nothing_is_sent) pump();
}

bool Subscriber::can_send_now(std::size_t amount) const noexcept {
    if (!queue_.has_drained() || !session_->has_capacity()) return false;
    const std::size_t posted = queue_.usage().posted;
    return posted == 0 || posted + amount <= core_.post_limit(*this);
}

void Subscriber::pump() {
    room_.body_limit = session_->body_limit();
    if (queue_.should_batch(room_)) return; // until a frame in flight is sent
    room_.slice_limit = session_->segment_limit();
    ReadyFrame frame;
    // Checks the capacity first: prepare() copies small messages, which is useless without it.
    while (!queue_.has_drained() && session_->request_capacity()) {
        room_.post_limit = core_.post_limit(*this);
        if (!queue_.prepare(room_, frame)) break;
        if (session_->send(frame.outgoing(), frame.cookie) != Status::ok) return;
        queue_.posted();
    }
    // The smallest number of this call, because sending uses credits up.
    stats.note_credits(session_->counters().credits);
    start_requests();
    if (stage_ == Stage::leaving && queue_.has_drained()) session_->close();
}

void Subscriber::start_requests() {
    const bool is_due = !requests_.empty() && has_room_for_request();
    if (is_due && !request_timer_.armed()) request_timer_.start(Duration::zero());
}

void Subscriber::set_late(std::size_t count) {
    late_ = count;
    if (stage_ != Stage::gone) start_requests();
}

// In a turn of its own, because pump() may run within a call of the user's.
void Subscriber::take_next_request() {
    if (requests_.empty() || !has_room_for_request()) return;
    const SubscriberRequest request = std::move(requests_.front());
    requests_.pop_front();
    if (!requests_.empty()) request_timer_.start(Duration::zero());
    core_.on_request_due(*this, request);
}

void Subscriber::offer_capacity() {
    if (may_send_conflated()) core_.on_turn_of_conflated(*this);
    if (has_conflated) request_capacity();
}

void Subscriber::leave() {
    stage_ = Stage::leaving;
    pump();
}

void Subscriber::fail(CloseReason reason, const std::string& why) {
    std::string detail = session_->peer_address() + " " + why;
    if (reason == CloseReason::too_slow) {
        session_->cut_off(reason, std::move(detail), progress.time);
    } else {
        session_->fail(reason, std::move(detail));
    }
}

// --- the session's events -------------------------------------------------------------------

void Subscriber::on_open(Session&) {
    core_.on_subscriber_open(*this);
}

void Subscriber::on_frame(Session&, const IncomingFrame& frame) {
    core_.on_subscriber_frame(*this, frame);
}

void Subscriber::on_sent(Session&, Cookie cookie, Completion::Outcome outcome) {
    // The memory is free for every outcome; a failed session reports that by on_closed.
    const Fate fate = outcome == Completion::Outcome::done ? Fate::sent : Fate::lost;
    std::vector<SendQueue::Returned> returned = std::exchange(returned_, {});
    const TimePoint since = queue_.on_sent(cookie, fate, returned);
    if (!returned.empty()) stats.note_sent(session_->loop().now() - since);
    if (stage_ != Stage::gone) pump();
    if (stage_ != Stage::gone) offer_capacity();
    // The queue's own frame was the last one; publishing may wait for an empty queue.
    if (returned.empty()) {
        returned_ = std::move(returned);
        return core_.on_progress();
    }
    const DestructionWatch watch{destroyed_};
    for (const SendQueue::Returned& each : returned) {
        core_.on_returned(each);
        if (watch.destroyed()) return;
    }
    returned.clear();
    returned_ = std::move(returned);
}

void Subscriber::on_writable(Session&) {
    const Duration before = progress.time;
    progress = {.seen = queue_.progress()};
    report_stall(before);
    pump();
    offer_capacity();
    core_.on_progress();
}

void Subscriber::on_closed(Session&, const Closed& closed) {
    core_.on_subscriber_gone(*this);
    const DestructionWatch watch{destroyed_};
    for (const SendQueue::Returned& returned : queue_.take_rest(session_->body_limit())) {
        core_.on_returned(returned);
        if (watch.destroyed()) return;
    }
    core_.on_subscriber_closed(*this, closed);
}

void Subscriber::report_stall(Duration before) const {
    Observer* const observer = session_->loop().observer;
    const bool was_reported = ProgressMonitor::is_reported(before);
    if (observer == nullptr || was_reported == ProgressMonitor::is_reported(progress.time)) return;
    if (was_reported) {
        observer->on_peer_recovered({.peer = session_->peer_address(), .stalled = before});
    } else {
        observer->on_peer_stalled({.peer = session_->peer_address(),
                                   .stalled = progress.time,
                                   .blocks_publisher = progress.waited_for});
    }
}

SubscriberSnapshot Subscriber::take_snapshot(TimePoint now) {
    const SessionCounters counters = session_->counters();
    const QueueUsage& usage = queue_.usage();
    return {.id = id_,
            .address = session_->peer_address(),
            .connected_for = now - stats.since(),
            .waiting = usage.waiting,
            .most_waiting = stats.take_most_waiting(usage.waiting),
            .posted = usage.posted,
            .queued = queue_.size(),
            .queued_counts = queue_.gap_counts() + queue_.positions(),
            .credits = counters.credits,
            .least_credits = stats.take_least_credits(counters.credits),
            .frames_sent = counters.frames_sent,
            .bytes_sent = counters.bytes_sent,
            .dropped = stats.dropped(),
            .idle = progress.time,
            .reclaimed = progress.reclaimed,
            .waited_for = progress.waited_for,
            .latency = {.median = stats.latency().quantile(0.5),
                        .p99 = stats.latency().quantile(0.99),
                        .longest = stats.latency().longest()}};
}

} // namespace netio::pubsub::inline v0_3
