// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a PublishSocket is made of: publications whose memory is lent, who still has to take which
// of them, and when their cookies come back.

#include "pubsub/core/delivery_tracker.hpp"
#include "pubsub/core/held_up.hpp"
#include "pubsub/core/partial_deliveries.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/publisher/subscriber_sessions.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class LentPublisher final : private SubscriberSessions::Owner {
  public:
    // The socket is the user's.
    LentPublisher(Transport& transport, const PublishSocket::Options& options,
                  PublishSocket::Handler& handler, PublishSocket& socket);
    ~LentPublisher();
    LentPublisher(const LentPublisher&) = delete;
    LentPublisher& operator=(const LentPublisher&) = delete;

    Status publish(Fid fid, std::span<const Slice> slices, Cookie cookie,
                   const PublishSocket::Extras& extras);
    PublishSocket::Attempt try_publish(Fid fid, std::span<const Slice> slices, Cookie cookie,
                                       const PublishSocket::Extras& extras);
    Status resume(PublishTicket& ticket);
    void close();
    void abort();

    EventLoop& loop() const noexcept { return loop_; }
    SessionListener& listener() const noexcept { return sessions_.listener(); }
    const Publisher::Counters& counters() noexcept;
    PublisherSnapshot take_snapshot(const SnapshotLimits& limits) {
        return sessions_.take_snapshot(limits, drops_, held_up_);
    }
    std::size_t outstanding() const noexcept { return tracker_.outstanding(); }
    std::size_t segment_limit() noexcept { return sessions_.subscribers().segment_limit(); }

  private:
    void on_unwanted(SubscriberId subscriber, std::span<const FidRange> fids) override;
    void on_returned(const SendQueue::Returned& returned) override;
    std::uint64_t on_taken_back(Subscriber& subscriber, const SendQueue::TakenBack& taken) override;
    void on_progress() override;

    Status check(std::span<const Slice> slices, const PublishSocket::Extras& extras,
                 std::size_t& total_bytes) const;
    bool takes(const Interest& member) noexcept;
    bool may_wait(const Subscriber& subscriber) noexcept;
    template <typename Takes>
    bool must_wait_for(std::span<const Interest> members, Takes takes_more);
    Status refuse(Fid fid);
    std::optional<PublicationId> begin(Cookie cookie);
    void keep(PublicationId id, Fid fid, std::span<const Slice> slices, std::size_t total_bytes,
              const PublishSocket::Extras& extras);
    enum class Leaving : std::uint8_t { at_once, maybe_with_others };
    void hand_over(PublicationId id, Subscriber& subscriber, SlowPolicy policy, Leaving leaving);
    bool offer(PublicationId id, const Interest& member);
    void miss(PublicationId id, Subscriber& subscriber, Fid fid);
    void seal(PublicationId id, std::size_t frames = 1);
    void finish_rest(const PartialDeliveries::Rest& rest);
    void do_what_is_due();

    PublishSocket& socket_;
    PublishSocket::Options options_;
    PublishSocket::Handler& handler_;
    DeliveryTracker tracker_;
    std::vector<LentMessage> publications_; // by the tracker's place
    std::uint32_t next_number_ = 0;
    Publisher::Counters counters_;
    FidTally drops_;
    HeldUp held_up_;
    bool* destroyed_ = nullptr;
    // They end without anything having been sent last.
    std::deque<DeliveryTracker::Ended> undelivered_;
    EventLoop& loop_;
    Timer due_timer_; // what a call has left to the loop
    PartialDeliveries partial_;
    SubscriberSessions sessions_; // last: goes first
};

} // namespace netio::pubsub::inline v0_2
