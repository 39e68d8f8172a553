// SPDX-License-Identifier: Apache-2.0
#pragma once

// The base of both publish sockets: the listener, the subscribers and their requests, the shared
// memory budget with the rule for slow subscribers, and the orderly end with its totals. It does
// not know pages or publications: the derived class learns when what it has sent is not used any
// more.

#include "netio/base/slot_pool.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/session_listener.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/publisher/backpressure.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/publisher/subscriber_session.hpp"
#include "pubsub/publisher/subscription_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// The connected subscribers by their ids. The upper half of an id is never used twice; the lower
// half is a slot of the table.
class SubscriberTable {
  public:
    // Enters the result of make(id). If make() throws, the exception is passed on and nothing is
    // entered.
    template <class Make>
    void enter(Make make) {
        const std::uint32_t slot = slots_.take(nullptr);
        const SubscriberId id{next_serial_++ << 32 | slot};
        try {
            slots_[slot] = make(id);
        } catch (...) {
            slots_.release(slot);
            throw;
        }
    }
    std::unique_ptr<Subscriber> take(SubscriberId id) { return slots_.release(slot_of(id)); }
    void clear() { slots_ = {}; }

    Subscriber& operator[](SubscriberId id) noexcept { return *slots_[slot_of(id)]; }
    std::size_t size() const noexcept { return slots_.size(); }

    template <class Visit>
    void for_each(Visit visit) const {
        for (std::uint32_t i = 0; i < slots_.end(); ++i)
            if (slots_[i]) visit(*slots_[i]);
    }

    // Slices that the sessions of all subscribers send without a copy.
    std::size_t segment_limit() const noexcept {
        std::size_t limit = slice_limit;
        for_each([&](const Subscriber& each) {
            if (each.announced) limit = std::min(limit, each.session().segment_limit());
        });
        return limit;
    }

  private:
    static std::uint32_t slot_of(SubscriberId id) noexcept {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
    }

    std::uint64_t next_serial_ = 1;
    SlotPool<std::unique_ptr<Subscriber>> slots_;
};

class PublisherCore : private SessionListener::Handler {
  public:
    // The user's socket and handler, and the counters in which the core counts. They may be members
    // of the derived class.
    struct User {
        Publisher& publisher;
        Publisher::Handler& handler;
        Publisher::Counters& counters;
    };
    struct Terms {
        std::size_t pool = 0;                   // of the memory budget
        std::size_t largest = 1;                // what one message takes of it
        std::size_t required_receive_bytes = 0; // of a subscriber's receive buffers
        bool keeps_newest = false;              // SlowPolicy::newest is available
    };
    PublisherCore(const PublisherCore&) = delete;
    PublisherCore& operator=(const PublisherCore&) = delete;

    EventLoop& loop() const noexcept { return loop_; }
    const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }
    // Registers the buffer where sessions will send from it. Does nothing after close() or abort().
    void prepare(RegisteredBuffer& buffer) {
        if (listener_) listener_->prepare(buffer);
    }
    // The subscribers of each fid. The next event of the loop may change the result of a lookup.
    FanOut& fan_out() noexcept { return fan_out_; }
    const Publisher::Counters& counters() noexcept;
    PublisherSnapshot take_snapshot(const SnapshotLimits& limits);

    // Sends each subscriber its queue, then its totals, and closes its session when it has
    // confirmed them.
    void close();
    // Ends every session at once.
    void abort();

  protected:
    // The options have been checked.
    PublisherCore(Transport& transport, const Publisher::Options& options, const Terms& terms,
                  const User& user);
    virtual ~PublisherCore();
    // The sessions use memory of the derived class, so its destructor calls this first.
    void destroy_sessions() noexcept;

    // --- implemented by the derived class. Unless stated otherwise, the core does nothing after
    // the call, so that the user's handler may destroy the socket

    // Called before the groups become invalid: sends the messages that are coalesced for them. Must
    // not call the user.
    virtual void before_change() {}
    // Passes everything that is pending to the subscribers. Must not call the user.
    virtual void before_end() {}
    // Sets of fids are as in fid_ranges.hpp.
    // The subscriber is gone, or does not want these fids any more. Must not call the user.
    virtual void on_unwanted(SubscriberId /*subscriber*/, std::span<const FidRange> /*fids*/) {}
    // The subscriber has this policy for these fids from now on; nullopt: it has unsubscribed. What
    // is queued for it now precedes the reply. Must not call the user.
    virtual void on_asked(Subscriber& /*subscriber*/, std::span<const FidRange> /*fids*/,
                          std::optional<SlowPolicy> /*policy*/) {}
    // Sends the messages that are conflated for the subscriber. Must not call the user.
    virtual void send_conflated(Subscriber& /*subscriber*/) {}
    // The frames that were sent with returned.cookie are complete: the derived class may use their
    // memory again.
    virtual void on_returned(const SendQueue::Returned& returned) = 0;
    // Items queued with these cookies (one item and its continuations) are not sent to the
    // subscriber: adds their messages to the gap, or conflates them. Returns how many messages were
    // dropped for the subscriber. Must not call the user.
    virtual std::uint64_t on_taken_back(Subscriber& subscriber,
                                        const SendQueue::TakenBack& taken) = 0;
    // Discards kept messages that are too old, and returns the others; nullptr: none are kept.
    virtual const HistoryLog* history() { return nullptr; }
    // These fids were subscribed with history, and the answer is queued. Must not call the user.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): overrides keep the fids
    virtual void on_late(Subscriber& /*subscriber*/, std::vector<FidRange> /*fids*/) {}
    // A subscriber can be sent more, or memory has become free. The last call is notify_writable().
    virtual void on_progress() = 0;

    // --- what it uses

    bool is_closing() const noexcept { return shutdown_.has_begun(); }
    // Also the members of groups.
    SubscriberTable& subscribers() noexcept { return subscribers_; }
    Subscriber& subscriber_of(const Interest& member) noexcept {
        return subscribers_[member.subscriber];
    }
    MemoryBudget& budget() noexcept { return budget_; }
    StampFormat stamps() const noexcept { return stamps_; }
    // publish() was blocked and returns this status.
    Status refuse(Fid fid);
    void note_partial() noexcept { blocked_.begin(loop_.now()); }
    void count_dropped(Fid fid);
    // Calls the user's on_writable if publishing was blocked.
    void notify_writable();
    // Call it when publishing waits for this subscriber: on_progress() follows when the subscriber
    // can be sent something, has been sent something, or is gone.
    void wait_for(const Interest& member);
    // Notes that publishing waits for `amount` of the pool; 0: not any more.
    void note_needed(std::size_t amount) noexcept { needed_ = amount; }
    // Call it when something is queued for a subscriber or in flight to it: starts to watch its
    // progress.
    void watch_progress();
    // If the pool is too short for `needed`, drops what is queued for subscribers whose policy
    // allows it: first for stalled ones, then for those that hold most.
    void reclaim_memory(std::size_t needed = 0) {
        if (budget_.is_short(needed)) reclaim(needed);
    }
    // Tries again to send conflated messages for which there was no memory.
    void retry_conflated();
    // Call it when the number of late subscriptions of a subscriber has changed.
    void note_late(Subscriber& subscriber, std::size_t count);
    // Ends the session of a late subscriber that was sent the history too slowly.
    static void end_overrun(Subscriber& subscriber);

  private:
    friend class Subscriber; // handles the events of subscribers and of the listener

    void on_incoming(IncomingSession& incoming) override;
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override;
    void on_peer_rejected(const std::string& peer_address, const std::string& why) override;
    void on_subscriber_open(Subscriber& subscriber);
    // A frame that is not one of the session's own.
    void on_subscriber_frame(Subscriber& subscriber, const IncomingFrame& frame);
    // Called when a request that had to wait is due.
    void on_request_due(Subscriber& subscriber, const SubscriberRequest& request);
    // Called some time after the subscriber has unsubscribed from everything.
    void on_leave_due(Subscriber& subscriber);
    // What may be posted to the subscriber now.
    std::size_t post_limit(const Subscriber& subscriber) const noexcept {
        return budget_.post_limit(ProgressMonitor::stalled(subscriber.progress));
    }
    void on_turn_of_conflated(Subscriber& subscriber);
    // Called when nothing may be sent to the subscriber any more; its queued items are returned
    // after this.
    void on_subscriber_gone(Subscriber& subscriber);
    // Called when nothing of the subscriber is left; destroys it.
    void on_subscriber_closed(Subscriber& subscriber, const Closed& closed);

    void take_request(Subscriber& subscriber, SubscriberRequest request);
    bool takes_requests(const Subscriber& subscriber) const noexcept;
    void take_subscribe(Subscriber& subscriber, const SubscriptionRequest& request, bool positions);
    void take_unsubscribe(Subscriber& subscriber, const SubscriptionRequest& request);
    void answer(Subscriber& subscriber, const SubscriptionRequest& request,
                SubscriptionResult result, std::optional<std::vector<FidCount>> positions = {});
    void take_fids_question(Subscriber& subscriber, const FidsQuestion& question);
    void send_totals(Subscriber& subscriber);
    void check_closed();

    void look();
    void reclaim(std::size_t needed);
    void take_back(Subscriber& subscriber);
    Subscriber* longest_stalled_with_droppable() noexcept;
    void evict_largest_holder();

    Publisher::Options options_;
    const StampFormat stamps_;
    User user_;
    EventLoop& loop_;
    FanOut fan_out_;
    const std::uint64_t instance_; // identifies this count of published messages
    std::size_t announced_count_ = 0;
    struct {
        LatencyHistogram former_latency; // of subscribers that are gone
        ShownFids<PublishedFidSnapshot> fids;
        FidCounters dropped;
    } shown_;
    BackpressureTimer blocked_;
    struct {
        FidListing listing;
        TimePoint made;
    } published_;

    MemoryBudget budget_;
    ShutdownState shutdown_;
    EvictionPolicy eviction_;
    ProgressMonitor monitor_;
    std::size_t needed_ = 0;
    bool stalled_have_droppable_ = false; // at the last look

  protected:
    bool* destroyed_ = nullptr;

  private:
    Timer closed_timer_;
    Timer watch_timer_; // the next look is due
    Timer look_timer_;  // in the turn after that, when the completions are processed
    SubscriberTable subscribers_;
    std::unique_ptr<SessionListener> listener_; // until the end begins: the address is free then
    std::vector<Endpoint> endpoints_;
};

} // namespace netio::pubsub::inline v0_3
