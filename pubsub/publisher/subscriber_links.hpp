// SPDX-License-Identifier: Apache-2.0
#pragma once

// What both publish sockets are built on: the listener, a Subscriber per connected peer, who wants
// which fid, and the orderly end with its totals. It does not know pages or publications; the
// socket above is told when they are free.

#include "netio/loop/event_loop.hpp"
#include "netio/session/session_listener.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/frames.hpp"
#include "pubsub/core/subscription_table.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/publisher/subscriber.hpp"

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Fids with equal sets of subscribers, and equal policies for them, share a group, and with it the
// open page.
struct Group {
    static constexpr std::size_t nowhere = SIZE_MAX;
    struct Member {
        Subscriber* subscriber = nullptr;
        SlowPolicy policy = SlowPolicy::block;
    };

    std::vector<Member> members;
    std::size_t place = nowhere; // for the owner: where it keeps what belongs to this group
};

class SubscriberLinks final : private SessionListener::Handler, private Subscriber::Owner {
  public:
    // The publish socket. Each of these is the last thing that SubscriberLinks does in its own
    // event, so the socket may be destroyed by the user's handler that it calls; except
    // before_change and on_unwanted, which must not call the user.
    class Owner {
      public:
        // The sets of subscribers are about to change, and all groups with them: send what is
        // coalesced for the old ones.
        virtual void before_change() = 0;
        // The session is gone, or does not want these fids any more. Must not call the user.
        virtual void on_unwanted(SubscriberId session, const FidRange& fids) = 0;
        virtual void on_page_released(std::uint32_t page) = 0;
        virtual void on_debts_settled(PublicationId publication, std::size_t count) = 0;
        // A session has room again.
        virtual void on_progress() = 0;

      protected:
        ~Owner() = default;
    };

    SubscriberLinks(Transport& transport, const Publisher::Options& options,
                    std::size_t required_receive_bytes, Owner& owner, Publisher& publisher,
                    Publisher::Handler& handler);
    ~SubscriberLinks();
    SubscriberLinks(const SubscriberLinks&) = delete;
    SubscriberLinks& operator=(const SubscriberLinks&) = delete;

    std::vector<SessionListener::Endpoint> endpoints() const { return listener_->endpoints(); }
    std::size_t subscriber_count() const noexcept { return announced_count_; }
    const Publisher::Options& options() const noexcept { return options_; }
    EventLoop& loop() noexcept { return loop_; }

    struct FidState {
        std::uint64_t published = 0; // messages accepted for at least one subscriber
        std::uint64_t generation = 0;
        Group* group = nullptr; // of that generation
    };
    // The state of a fid with its group looked up; group->members is empty if nobody wants it.
    // Good until the next lookup or event.
    FidState& lookup(Fid fid) {
        FidState& state = fids_[fid];
        if (state.generation != generation_) refresh(fid, state);
        return state;
    }

    // The same, or null where it has to be looked up first: all that is inlined into users' code.
    FidState* find_current(Fid fid) {
        FidState& state = fids_[fid];
        return state.generation == generation_ ? &state : nullptr;
    }

    Subscriber& subscriber(SubscriberId id) { return *subscribers_.at(id); }

    // Publishing finds that a subscriber is beyond its share: with policy disconnect its time runs
    // from here until it makes progress.
    void note_slow(const Group::Member& member);
    SlowPolicy policy_of(const Subscriber& subscriber, Fid fid) const {
        return subscriber.policies.find(fid).value_or(options_.slow_policy);
    }

    // Totals to every subscriber behind what they still have to be sent, then goodbye.
    void close();
    // Every session ends at once.
    void abort();
    bool is_closing() const noexcept { return closing_; }

  private:
    void on_incoming(IncomingSession& incoming) override;
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override;
    void on_subscriber_open(Subscriber& subscriber) override;
    void on_subscriber_frame(Subscriber& subscriber, const IncomingFrame& frame) override;
    void on_page_released(Subscriber& subscriber, std::uint32_t page) override;
    void on_debts_settled(Subscriber& subscriber, PublicationId publication,
                          std::size_t count) override;
    void on_progress(Subscriber& subscriber) override;
    void on_subscriber_gone(Subscriber& subscriber) override;
    void on_subscriber_closed(Subscriber& subscriber, const Closed& closed) override;

    void refresh(Fid fid, FidState& state);
    void begin_change();
    void take_subscribe(Subscriber& subscriber, const SubscriptionRequest& request);
    void take_unsubscribe(Subscriber& subscriber, const SubscriptionRequest& request);
    SubscriptionResult subscribe(Subscriber& subscriber, const SubscriptionRequest& request,
                                 std::vector<FidRange>& added);
    bool add_all(Subscriber& subscriber, std::span<const FidRange> ranges,
                 std::vector<FidRange>& added);
    bool remove_all(Subscriber& subscriber, std::span<const FidRange> ranges,
                    std::vector<FidRange>& removed);
    void note_published_before(Subscriber& subscriber, const FidRange& range);
    void note_moving(Subscriber& subscriber) noexcept;
    void send_totals(Subscriber& subscriber);
    static void leave_when_drained(Subscriber& subscriber);
    void disconnect_slow();
    void end_the_stuck();
    void check_closed();
    void tell_closed();

    Publisher::Options options_;
    Owner& owner_;
    Publisher& publisher_;
    Publisher::Handler& handler_;
    EventLoop& loop_;
    SubscriptionTable table_;
    std::uint64_t generation_ = 1; // of the groups below
    FidMap<FidState> fids_;
    bool policies_asked_ = false; // some subscriber has some of its own
    std::map<std::pair<GroupId, std::vector<SlowPolicy>>, std::unique_ptr<Group>> groups_;
    std::size_t announced_count_ = 0;
    std::uint64_t next_link_ = 1;
    bool closing_ = false;
    bool aborted_ = false;
    std::size_t unconfirmed_ = 0; // subscribers that are gone without having answered the totals
    TimePoint close_limit_;
    bool* destroyed_ = nullptr;
    Timer slow_timer_;
    Timer close_timer_;
    Timer closed_timer_;
    std::unordered_map<SubscriberId, std::unique_ptr<Subscriber>> subscribers_;
    std::unique_ptr<SessionListener> listener_;
};

} // namespace netio::pubsub::inline v0_2
