// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscriber.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "pubsub/publisher/stall_notice.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// The loop's time stands still in a turn, and costs nothing to read.
SendQueue::Handling stamped(SendQueue::Handling handling, const EventLoop& loop) noexcept {
    handling.since = loop.now();
    return handling;
}

} // namespace

Subscriber::Subscriber(EventLoop& loop, SubscriberId id, IncomingSession& incoming,
                       const Hello& hello, const SessionOptions& options, Owner& owner)
    : id_{id}, owner_{owner}, room_{.by_device = incoming.guards_memory()},
      request_timer_{loop, [this] { take_next_request(); }},
      leave_timer_{loop, [this] { owner_.on_leave_due(*this); }}, session_{incoming.accept(
                                                                      hello, options, *this)} {
    account = SubscriberAccount{session_->loop().now()};
}

Subscriber::~Subscriber() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

void Subscriber::send_frame(std::uint8_t kind, std::span<const std::byte> extension,
                            const Slice& slice, const SendQueue::Handling& handling) {
    NETIO_CHECK(stage_ != Stage::gone);
    queue_.add_frame(kind, extension, slice, stamped(handling, session_->loop()));
    account.note_waiting(queue_.holding().waiting);
    pump();
}

void Subscriber::send_message(const LentMessage& message, const SendQueue::Handling& handling) {
    NETIO_CHECK(stage_ != Stage::gone);
    queue_.add_message(message, stamped(handling, session_->loop()));
    account.note_waiting(queue_.holding().waiting);
    pump();
}

void Subscriber::send_answer(std::uint8_t kind, std::span<const std::byte> body,
                             std::optional<SendQueue::Positions> in_front) {
    if (stage_ == Stage::gone) return;
    if (in_front) queue_.add_positions(std::move(*in_front));
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
    account.note_missed(count);
    tell_gap({.fid = fid, .count = count});
}

void Subscriber::tell_gap(const FidCount& missed) {
    if (stage_ == Stage::gone) return;
    const bool nothing_will_leave = nothing_leaves();
    queue_.add_gap(missed.fid, missed.count);
    if (nothing_will_leave) pump();
}

bool Subscriber::can_send_now(std::size_t amount) const noexcept {
    if (!queue_.has_drained() || !session_->has_capacity()) return false;
    const std::size_t posted = queue_.holding().posted;
    return posted == 0 || posted + amount <= owner_.post_limit(*this);
}

void Subscriber::pump() {
    room_.body_limit = session_->body_limit();
    if (queue_.waits_for_company(room_)) return; // until a frame that is under way has left
    room_.slice_limit = session_->segment_limit();
    ReadyFrame frame;
    // Asked first: where nothing can be sent, every message that comes would have a page gathered.
    while (!queue_.has_drained() && session_->request_capacity()) {
        room_.post_limit = owner_.post_limit(*this);
        if (!queue_.prepare(room_, frame)) break;
        if (session_->send(frame.outgoing(), frame.cookie) != Status::ok) return;
        queue_.posted();
    }
    account.note_credits(session_->counters().credits); // they have only become fewer
    const bool request_is_due = !requests_.empty() && !queue_.positions_are_full();
    if (request_is_due && !request_timer_.armed()) request_timer_.start(Duration::zero());
    if (stage_ == Stage::leaving && queue_.has_drained()) session_->close();
}

// Handled in a turn of its own: pump() may run within a call of the user's.
void Subscriber::take_next_request() {
    if (requests_.empty() || queue_.positions_are_full()) return;
    const SubscriberRequest request = std::move(requests_.front());
    requests_.pop_front();
    if (!requests_.empty()) request_timer_.start(Duration::zero());
    owner_.on_request_due(*this, request);
}

void Subscriber::offer_room() {
    if (is_turn_of_kept()) owner_.on_turn_of_kept(*this);
    if (has_kept) request_capacity();
}

void Subscriber::leave() {
    stage_ = Stage::leaving;
    pump();
}

void Subscriber::fail(CloseReason reason, const std::string& why) {
    std::string detail = session_->peer_address() + " " + why;
    if (reason == CloseReason::too_slow) {
        session_->cut_off(reason, std::move(detail), idle.time);
    } else {
        session_->fail(reason, std::move(detail));
    }
}

// --- the session's events -------------------------------------------------------------------

void Subscriber::on_open(Session&) {
    owner_.on_subscriber_open(*this);
}

void Subscriber::on_frame(Session&, const IncomingFrame& frame) {
    owner_.on_subscriber_frame(*this, frame);
}

void Subscriber::on_sent(Session&, Cookie cookie, Completion::Outcome outcome) {
    // Whatever the outcome, the memory is free; a failed session says so by on_closed.
    const Fate fate = outcome == Completion::Outcome::done ? Fate::sent : Fate::lost;
    std::vector<SendQueue::Returned> returned = std::exchange(returned_, {});
    const TimePoint since = queue_.on_sent(cookie, fate, returned);
    if (!returned.empty()) account.note_sent(session_->loop().now() - since);
    if (stage_ != Stage::gone) pump();
    if (stage_ != Stage::gone) offer_room();
    // A gap or the like that was the last to wait; somebody may wait for the queue to be empty.
    if (returned.empty()) {
        returned_ = std::move(returned);
        return owner_.on_progress();
    }
    const DestructionWatch watch{destroyed_};
    for (const SendQueue::Returned& each : returned) {
        owner_.on_returned(each);
        if (watch.destroyed()) return;
    }
    returned.clear();
    returned_ = std::move(returned);
}

void Subscriber::on_writable(Session&) {
    const Duration before = idle.time;
    idle = {.progress = queue_.progress()};
    tell_observer(session_->loop().observer, *session_, before, idle);
    pump();
    offer_room();
    owner_.on_progress();
}

void Subscriber::on_closed(Session&, const Closed& closed) {
    owner_.on_subscriber_gone(*this);
    const DestructionWatch watch{destroyed_};
    for (const SendQueue::Returned& returned : queue_.take_rest(session_->body_limit())) {
        owner_.on_returned(returned);
        if (watch.destroyed()) return;
    }
    owner_.on_subscriber_closed(*this, closed);
}

SubscriberFigures take_figures(Subscriber& subscriber, TimePoint now) {
    const SessionCounters sums = subscriber.session().counters();
    const Holding& holding = subscriber.queue().holding();
    SubscriberAccount& account = subscriber.account;
    return {.id = subscriber.id(),
            .address = subscriber.peer().address,
            .connected_for = now - account.since(),
            .waiting = holding.waiting,
            .most_waiting = account.take_most_waiting(holding.waiting),
            .posted = holding.posted,
            .queued = subscriber.queue().size(),
            .queued_counts = subscriber.queue().gap_counts() + subscriber.queue().positions(),
            .credits = sums.credits,
            .least_credits = account.take_least_credits(sums.credits),
            .frames_sent = sums.frames_sent,
            .bytes_sent = sums.bytes_sent,
            .dropped = account.missed(),
            .idle = subscriber.idle.time,
            .gave_way = subscriber.idle.gave_way,
            .waited_for = subscriber.idle.waited_for,
            .latency = {.median = account.latency().quantile(0.5),
                        .p99 = account.latency().quantile(0.99),
                        .longest = account.latency().longest()}};
}

} // namespace netio::pubsub::inline v0_2
