// SPDX-License-Identifier: Apache-2.0
#pragma once

// The record of one connected subscriber: its session, the queue of what it still has to be sent,
// and how far its coming and going is.

#include "netio/loop/event_loop.hpp"
#include "netio/session/session_listener.hpp"
#include "pubsub/core/slow_watch.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/publisher/send_queue.hpp"
#include "pubsub/publisher/subscriber_account.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// A request of a subscriber, as it has arrived.
struct SubscriberRequest {
    SubscriptionRequest request;
    bool subscribes = true;
    bool wants_positions = false;
};

class Subscriber final : private Session::Handler {
  public:
    class Owner {
      public:
        virtual void on_subscriber_open(Subscriber& subscriber) = 0;
        // A frame from the subscriber that is not the session's own.
        virtual void on_subscriber_frame(Subscriber& subscriber, const IncomingFrame& frame) = 0;
        // It is the turn of a request that had to wait.
        virtual void on_request_due(Subscriber& subscriber, const SubscriberRequest& request) = 0;
        // It has unsubscribed from everything some time ago.
        virtual void on_leave_due(Subscriber& subscriber) = 0;
        // What may be posted to it at once.
        virtual std::size_t post_limit(const Subscriber& subscriber) const noexcept = 0;
        // This subscriber does not use it any more: it is sent, or never will be.
        virtual void on_returned(const SendQueue::Returned& returned) = 0;
        // Some of the queue has left.
        virtual void on_progress() = 0;
        // It is the turn of what is kept for it. Must not call the user.
        virtual void on_turn_of_kept(Subscriber& subscriber) = 0;
        // Nothing may be sent to it any more; what is queued is returned after this. Must not call
        // the user.
        virtual void on_subscriber_gone(Subscriber& subscriber) = 0;
        // It has nothing any more; it may be destroyed.
        virtual void on_subscriber_closed(Subscriber& subscriber, const Closed& closed) = 0;

      protected:
        ~Owner() = default;
    };

    Subscriber(EventLoop& loop, SubscriberId id, IncomingSession& incoming, const Hello& hello,
               const SessionOptions& options, Owner& owner);
    ~Subscriber();

    SubscriberId id() const noexcept { return id_; }
    SubscriberPeer peer() const {
        return {.id = id_, .address = session_->peer_address(), .gone = stage_ == Stage::gone};
    }
    // What is added to it by the functions below leaves by itself.
    SendQueue& queue() noexcept { return queue_; }
    const SendQueue& queue() const noexcept { return queue_; }
    const Session& session() const noexcept { return *session_; }

    // Each of these sends at once if nothing is waiting and the session has capacity.
    void send_frame(std::uint8_t kind, std::span<const std::byte> extension, const Slice& slice,
                    const SendQueue::Handling& handling);
    void send_message(const LentMessage& message, const SendQueue::Handling& handling);
    void send_answer(std::uint8_t kind, std::span<const std::byte> body,
                     std::optional<SendQueue::Positions> in_front = {});
    void send_fids(std::uint32_t question, std::span<const FidRange> ranges);
    void send_totals(CountList totals);
    // A request waits while too many positions for earlier ones still wait to be sent: each may add
    // one for every fid. Requests keep their order.
    bool must_wait() const noexcept { return !requests_.empty() || queue_.positions_are_full(); }
    void add_request(SubscriberRequest request) { requests_.push_back(std::move(request)); }
    // Requests that wait, and answers that wait to be sent.
    std::size_t open_requests() const noexcept { return requests_.size() + queue_.answers(); }
    // It misses messages. They are told in order, as soon as something has left.
    void add_gap(Fid fid, std::uint64_t count);
    // The same, of what the account knows already.
    void tell_gap(const FidCount& missed);
    // What is kept has waited long enough: nothing that came before it still waits. If nothing
    // waits at all, it is better sent when that is possible, being newer then.
    bool is_turn_of_kept() const noexcept {
        return has_kept && queue_.marked() == 0 && (!queue_.has_drained() || can_send_now());
    }

    // The next message, which takes so much of the pool, would leave at once, or begin to.
    bool can_send_now(std::size_t amount = 1) const noexcept;
    // It cannot send now: the owner's on_progress follows when it can.
    void request_capacity() { static_cast<void>(session_->request_capacity()); }
    // It has everything, and the network too.
    bool is_idle() const noexcept { return nothing_leaves() && !has_kept; }

    // It is let go when it has everything.
    void leave();
    // The same after a while, if the owner still agrees: it may subscribe again at once.
    void leave_later() { leave_timer_.start(leave_after); }
    static constexpr std::chrono::seconds leave_after{1};
    void fail(CloseReason reason, const std::string& why);
    void abort() { session_->abort(); }

    enum class Stage : std::uint8_t {
        opening,
        subscribing, // the user knows it
        asked,       // it has been sent the totals, and is to answer them
        leaving,     // it has answered, or has unsubscribed from everything
        gone,        // nothing may be sent to it any more
    };
    Stage stage() const noexcept { return stage_; }
    void set_stage(Stage stage) noexcept { stage_ = stage; }

    // What is kept for it is sent if it is its turn, and has its turn when there is capacity again.
    void offer_room();

    SubscriberAccount account{TimePoint{}};
    Idleness idle;
    bool announced = false;       // the user has been told of it
    bool confirmed = false;       // it has gone, with everything, and has said so
    bool has_kept = false;        // something that is kept elsewhere, and is to follow the queue
    std::vector<FidRange> former; // that it had when it went

  private:
    void pump();
    void take_next_request();
    bool nothing_leaves() const noexcept {
        return queue_.has_drained() && queue_.holding().posted == 0;
    }

    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    SubscriberId id_;
    Owner& owner_;
    SendQueue queue_;
    SendQueue::Room room_; // as of the last time that something was to leave
    Stage stage_ = Stage::opening;
    bool* destroyed_ = nullptr;
    std::vector<SendQueue::Returned> returned_; // empty; its memory is used again
    std::deque<SubscriberRequest> requests_;    // that wait
    Timer request_timer_;                       // the turn of the first of them has come
    Timer leave_timer_;
    std::unique_ptr<Session> session_; // last: goes first
};

// Begins what is counted since the last time anew.
SubscriberFigures take_figures(Subscriber& subscriber, TimePoint now);

} // namespace netio::pubsub::inline v0_2
