// SPDX-License-Identifier: Apache-2.0
#pragma once

// What both publish sockets are built on: the listener, the sessions of the subscribers and their
// requests, and the orderly end with its totals. Who wants what is in FanOut, who may hold how much
// in Shares, who is slow in SlowSubscribers. It does not know pages or publications: the publisher
// above is told when what it has sent is not used any more.

#include "netio/loop/event_loop.hpp"
#include "netio/session/session_listener.hpp"
#include "pubsub/core/fan_out.hpp"
#include "pubsub/core/fid_listing.hpp"
#include "pubsub/core/fid_tally.hpp"
#include "pubsub/core/held_up.hpp"
#include "pubsub/core/publisher_end.hpp"
#include "pubsub/core/shares.hpp"
#include "pubsub/core/shown_fids.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/publisher/slow_subscribers.hpp"
#include "pubsub/publisher/subscriber_table.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class SubscriberSessions final : private SessionListener::Handler, private Subscriber::Owner {
  public:
    // The publish socket. Each of these is the last thing that SubscriberSessions does in its own
    // event, so the socket may be destroyed by the user's handler that it calls; except those of
    // which it is said that they must not call the user.
    class Owner {
      public:
        // The groups are about to be void: send what is coalesced for them. Must not call the user.
        virtual void before_change() {}
        // Sets of fids are as in fid_ranges.hpp.
        // The subscriber is gone, or does not want these fids any more. Must not call the user.
        virtual void on_unwanted(SubscriberId /*subscriber*/, std::span<const FidRange> /*fids*/) {}
        // It has this policy for these fids from now on; nothing: it does not want them any more.
        // What is queued for it now stands in front of the answer. Must not call the user.
        virtual void on_asked(Subscriber& /*subscriber*/, std::span<const FidRange> /*fids*/,
                              std::optional<SlowPolicy> /*policy*/) {}
        // It can be sent what is kept for it (Subscriber::has_kept). Must not call the user.
        virtual void give_kept(Subscriber& /*subscriber*/) {}
        // So many frames of what was sent with this cookie are not used any more.
        virtual void on_returned(const SendQueue::Returned& returned) = 0;
        // What was queued with these cookies for the subscriber, one item and what continues it, is
        // not sent to it: the messages go into the gap, or are kept. How many it misses. Must not
        // call the user.
        virtual std::uint64_t on_taken_back(Subscriber& subscriber,
                                            const SendQueue::TakenBack& taken) = 0;
        // A subscriber can take more.
        virtual void on_progress() = 0;

      protected:
        ~Owner() = default;
    };
    struct User {
        Publisher& publisher;
        Publisher::Handler& handler;
    };
    struct Terms {
        std::size_t pool = 0;                   // what Shares is about
        std::size_t largest = 1;                // that one message takes of it
        std::size_t required_receive_bytes = 0; // of a subscriber's receive buffers
        bool keeps_newest = false;              // subscribers may ask for SlowPolicy::newest
    };

    // The options have been checked.
    SubscriberSessions(Transport& transport, const Publisher::Options& options, const Terms& terms,
                       Owner& owner, const User& user);
    ~SubscriberSessions();

    SessionListener& listener() const noexcept { return *listener_; }
    // What sessions know of it.
    void count(Publisher::Counters& counters) const noexcept {
        counters.subscribers = announced_count_;
        counters.rejected = turned_away_.rejected;
        counters.accept_failed = turned_away_.accept_failed;
        counters.requests_refused = turned_away_.requests;
    }

    // Who gets what. The next of the loop's events may change it.
    FanOut& fan_out() noexcept { return fan_out_; }
    // Groups' members among them.
    SubscriberTable& subscribers() noexcept { return subscribers_; }
    SlowSubscribers& slow() noexcept { return slow_; }

    Shares& shares() noexcept { return shares_; }
    // Where the pool is short: takes back what waits for those who may miss messages, first from
    // those who have stalled.
    void make_others_give_way(std::size_t needed = 0);
    // Those for whom something is kept that the owner had no memory to send.
    void offer_what_is_kept();

    // Totals to every subscriber behind what it still has to be sent, then the shutdown.
    void close();
    // Every session ends at once.
    void abort();
    bool is_closing() const noexcept { return end_.has_begun(); }

    PublisherSnapshot take_snapshot(const SnapshotLimits& limits, const FidTally& drops,
                                    const HeldUp& held_up);

  private:
    void on_incoming(IncomingSession& incoming) override;
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override;
    void on_peer_rejected(const std::string& peer_address, const std::string& why) override;
    void on_subscriber_open(Subscriber& subscriber) override;
    void on_subscriber_frame(Subscriber& subscriber, const IncomingFrame& frame) override;
    void on_request_due(Subscriber& subscriber, const SubscriberRequest& request) override;
    void on_leave_due(Subscriber& subscriber) override;
    std::size_t post_limit(const Subscriber& subscriber) const noexcept override;
    void on_returned(const SendQueue::Returned& returned) override;
    void on_progress() override;
    void on_turn_of_kept(Subscriber& subscriber) override;
    void on_subscriber_gone(Subscriber& subscriber) override;
    void on_subscriber_closed(Subscriber& subscriber, const Closed& closed) override;

    void take_request(Subscriber& subscriber, SubscriberRequest request);
    bool takes_requests(const Subscriber& subscriber) const noexcept;
    void take_subscribe(Subscriber& subscriber, const SubscriptionRequest& request, bool positions);
    void take_unsubscribe(Subscriber& subscriber, const SubscriptionRequest& request);
    void answer(Subscriber& subscriber, std::uint32_t request, SubscriptionResult result,
                std::optional<std::vector<FidCount>> positions = {});
    void take_fids_question(Subscriber& subscriber, const FidsQuestion& question);
    void ask(Subscriber& subscriber);
    void check_closed();

    Publisher::Options options_;
    Owner& owner_;
    User user_;
    EventLoop& loop_;
    FanOut fan_out_;
    Shares shares_;
    const std::uint64_t instance_; // of this account of what was published
    PublisherEnd end_;
    std::size_t announced_count_ = 0;
    struct {
        std::uint64_t rejected = 0;
        std::uint64_t accept_failed = 0;
        std::uint64_t requests = 0;
    } turned_away_;
    struct {
        LatencyHistogram former_latency; // of those who have gone
        ShownFids<FidFigures> fids;
    } shown_;
    struct {
        FidListing listing;
        TimePoint made; // when
    } published_;
    bool* destroyed_ = nullptr;
    Timer closed_timer_;
    SubscriberTable subscribers_;
    SlowSubscribers slow_;
    std::unique_ptr<SessionListener> listener_;
};

} // namespace netio::pubsub::inline v0_2
