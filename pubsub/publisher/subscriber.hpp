// SPDX-License-Identifier: Apache-2.0
#pragma once

// One connected subscriber as its publisher sees it: the session, and the queue of what it still
// has to be sent, in order. The queue is bounded by its owner's limits: pages by the session's
// share of the pool, publications by the remainder limit, answers by the answer limit.
//
// What enters the queue leaves it exactly once: sent and completed, or given back when the session
// ends; either way the owner is told, so that pages are freed and publications complete.

#include "netio/session/session_listener.hpp"
#include "pubsub/core/delivery_tracker.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/gap_ledger.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// A message whose memory is lent until the last session has sent it.
struct Publication {
    PublicationId id{};
    Fid fid{};
    std::uint8_t status = 0;
    std::uint8_t header_bytes = 0; // user header: the first bytes of the message
    std::array<std::byte, 8> header{};
    std::uint32_t number = 0; // distinguishes consecutive fragmented messages
    std::size_t slice_count = 0;
    std::array<Slice, slice_limit> slices;
    std::size_t total_bytes = 0; // header and slices
};

class Subscriber final : private Session::Handler {
  public:
    class Owner {
      public:
        virtual void on_subscriber_open(Subscriber& subscriber) = 0;
        // A frame from the subscriber that is not the session's own.
        virtual void on_subscriber_frame(Subscriber& subscriber, const IncomingFrame& frame) = 0;
        // A page is sent or given back; not used by this subscriber any more.
        virtual void on_page_released(Subscriber& subscriber, std::uint32_t page) = 0;
        // So many frames of a publication are sent or given back.
        virtual void on_debts_settled(Subscriber& subscriber, PublicationId publication,
                                      std::size_t count) = 0;
        // Some of the queue has left.
        virtual void on_progress(Subscriber& subscriber) = 0;
        // Nothing may be sent to it any more; what is queued is given back after this. Must not
        // call the user.
        virtual void on_subscriber_gone(Subscriber& subscriber) = 0;
        // It has nothing any more; it may be destroyed.
        virtual void on_subscriber_closed(Subscriber& subscriber, const Closed& closed) = 0;

      protected:
        ~Owner() = default;
    };

    Subscriber(SubscriberId id, IncomingSession& incoming, const Hello& hello,
               const SessionOptions& options, Owner& owner);
    ~Subscriber();

    SubscriberId id() const noexcept { return id_; }
    Session& session() noexcept { return *session_; }
    std::string peer_address() const { return session_->peer_address(); }

    // Each of these sends at once if nothing is waiting and the session has room, and queues else.
    // A page of messages, or with an extension a page that holds a fragment of a large one.
    void send_page(std::uint32_t page, const Slice& slice,
                   std::span<const std::byte> fragment_extension = {});
    // How many frames it takes from `offset` on; each is one settled debt.
    std::size_t frames_for(const Publication& publication, std::size_t offset = 0) const noexcept;
    void send_publication(const Publication& publication);
    void send_answer(std::uint8_t kind, std::uint8_t flags, std::span<const std::byte> body);

    // Pages held, in the queue or in the fabric's hands.
    std::size_t held_pages() const noexcept { return held_pages_; }
    // Publications in the queue that are not wholly in the fabric's hands.
    std::size_t remainder_count() const noexcept { return remainders_; }
    // It has everything, and the network too: the next page would leave at once.
    bool is_idle() const noexcept { return queue_.empty() && held_pages_ == 0; }
    bool can_send_now() const noexcept { return queue_.empty() && session_->has_capacity(); }
    // It cannot send now: the owner's on_progress follows when it can.
    void request_capacity() { static_cast<void>(session_->request_capacity()); }
    bool has_drained() const noexcept { return queue_.empty(); }
    // Its last word has been said; nothing may be sent to it any more.
    bool is_gone() const noexcept { return gone_; }

    // Messages that a slow session misses (policy drop). They are told in order: before the next
    // page or publication that does go to the session, or as soon as nothing waits for it.
    void add_gap(Fid fid, std::uint64_t count);
    void send_gaps();

    // Where it asked for another policy than the publisher's.
    SlowPolicies policies;
    // For the owner's accounting of totals: messages published before this subscription.
    FidMap<std::uint64_t> published_before;
    // Since when the session has been beyond its share; max(): it is not.
    TimePoint slow_since = TimePoint::max();
    // The user has been told of it.
    bool announced = false;
    bool moving = false; // something has left since the owner last looked
    bool totals_sent = false;
    bool leaving = false; // it has unsubscribed from everything, or answered the totals

  private:
    enum class Kind : std::uint8_t { page, publication, answer };
    struct Item {
        Kind kind = Kind::answer;
        std::uint8_t frame_kind = 0;
        std::uint8_t frame_flags = 0;
        std::uint8_t extension_bytes = 0;
        std::uint32_t page = 0;
        std::array<std::byte, frame_extension_limit> extension{}; // page, answer
        Slice slice;                                              // page
        const Publication* publication = nullptr;
        std::size_t offset = 0;                 // of the publication: what has been sent
        std::unique_ptr<RegisteredBuffer> body; // of an answer larger than the extension
    };

    void enqueue(Item item);
    void pump();
    Status send_item(Item& item);
    Status send_part(Item& item);
    void give_back(Item& item);

    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    SubscriberId id_;
    Owner& owner_;
    std::deque<Item> queue_;
    std::size_t held_pages_ = 0;
    std::size_t remainders_ = 0;
    std::size_t answers_queued_ = 0;
    GapLedger gaps_;
    std::uint64_t next_answer_ = 0;
    std::unordered_map<std::uint64_t, std::unique_ptr<RegisteredBuffer>> answers_in_flight_;
    bool gone_ = false;
    bool* destroyed_ = nullptr;
    std::unique_ptr<Session> session_; // last: goes first
};

} // namespace netio::pubsub::inline v0_2
