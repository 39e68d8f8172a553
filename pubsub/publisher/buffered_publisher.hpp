// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a BufferedPublishSocket is made of: the pages, those that are being filled, who is sent
// them, and when they leave.

#include "netio/coalescing/message_parts.hpp"
#include "pubsub/core/held_up.hpp"
#include "pubsub/core/page_terms.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/flush_clock.hpp"
#include "pubsub/publisher/open_pages.hpp"
#include "pubsub/publisher/page_delivery.hpp"
#include "pubsub/publisher/page_store.hpp"
#include "pubsub/publisher/subscriber_sessions.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class BufferedPublisher final : private SubscriberSessions::Owner {
  public:
    // The socket is the user's, and counts there.
    BufferedPublisher(Transport& transport, const BufferedPublishSocket::Options& options,
                      Publisher::Handler& handler, Publisher& socket,
                      Publisher::Counters& counters);

    Status publish(Fid fid, MessageParts parts, std::uint8_t status);
    void flush();
    void flush(Fid fid);
    void close();
    void abort();

    EventLoop& loop() const noexcept { return loop_; }
    SubscriberSessions& sessions() noexcept { return sessions_; }
    PublisherSnapshot take_snapshot(const SnapshotLimits& limits) {
        return sessions_.take_snapshot(limits, delivery_.drops(), held_up_);
    }
    std::size_t message_limit() const noexcept { return terms_.message_limit(); }

  private:
    void before_change() override { flush(); }
    void on_returned(const SendQueue::Returned& returned) override;
    std::uint64_t on_taken_back(Subscriber& subscriber,
                                const SendQueue::TakenBack& taken) override {
        return delivery_.take_back(subscriber, taken);
    }
    void on_unwanted(SubscriberId subscriber, std::span<const FidRange> fids) override;
    void on_asked(Subscriber& subscriber, std::span<const FidRange> fids,
                  std::optional<SlowPolicy> policy) override {
        delivery_.note_policy(subscriber, fids, policy);
    }
    void give_kept(Subscriber& subscriber) override { delivery_.give_kept(subscriber); }
    void on_progress() override;

    Status append(Group& group, Fid fid, MessageParts parts, std::size_t bytes,
                  std::uint8_t status);
    std::byte* reserve(Group& group, Fid fid, std::uint8_t status, std::size_t bytes);
    bool open_page(Group& group, std::size_t record_bytes);
    Status publish_large(Group& group, Fid fid, MessageParts parts, std::size_t bytes,
                         std::uint8_t status);
    template <typename Attempt>
    bool find_room(std::size_t bytes, Attempt attempt);
    // `reason`: the counter of why it leaves.
    void flush_page(std::size_t place, std::uint64_t& reason);
    void leave_or_fill_further(Group& group);
    void flush_all(std::uint64_t& reason);
    void give_what_was_stuck();
    void flush_old();
    void flush_idle();
    bool is_idle(const Group& group);
    bool is_busy(const Group& group);
    bool must_queue(const Group& group);
    Status refuse(Fid fid);

    Publisher& socket_;
    Publisher::Handler& handler_;
    Publisher::Counters& counters_;
    PageTerms terms_;
    PageStore pages_;
    OpenPages open_;
    PageDelivery delivery_;
    EventLoop& loop_;
    FlushClock clock_;
    HeldUp held_up_;
    SubscriberSessions sessions_; // last: goes first
};

} // namespace netio::pubsub::inline v0_2
