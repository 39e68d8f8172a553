// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends the pages of a buffered publisher to those who want them, by their policies: who has its
// share misses the page, or makes the publisher wait, or has the newest message of each fid kept
// until it has taken everything else.

#include "pubsub/core/fid_tally.hpp"
#include "pubsub/core/gap_ledger.hpp"
#include "pubsub/core/newest_book.hpp"
#include "pubsub/core/page_terms.hpp"
#include "pubsub/publisher/open_pages.hpp"
#include "pubsub/publisher/page_store.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/publisher/subscriber_sessions.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class PageDelivery {
  public:
    // The sessions may be made later, but before the first call.
    // `newest`: how much is kept for each subscriber.
    PageDelivery(const PageTerms& terms, PageStore& pages, OpenPages& open,
                 SubscriberSessions& sessions, Publisher::Counters& counters,
                 NewestBook newest) noexcept
        : terms_{terms}, pages_{pages}, open_{open}, sessions_{sessions}, counters_{counters},
          newest_{std::move(newest)} {}

    // Whether publishing to these has to wait for one of them; if so, something follows that makes
    // it worth trying again.
    bool must_wait_for(std::span<const Interest> members, PageTerms::Offer offer);
    // A page of records, which is the caller's, to all of them. The caller's use of it ends.
    void send(std::uint32_t page, std::size_t bytes, std::span<const Interest> members);
    // A message in pages of its own, of which the caller's use ends; who does not get all of it
    // gets none.
    struct Large {
        Fid fid{};
        std::uint8_t status = 0;
        MessageParts parts;
        std::size_t bytes = 0;
    };
    void send(const Large& message, std::span<const std::uint32_t> pages,
              std::span<const Interest> members);
    // A subscriber does not get these pages: they are the caller's, and it misses what is not kept.
    // How many messages.
    std::uint64_t take_back(Subscriber& subscriber, const SendQueue::TakenBack& taken);

    // As SubscriberSessions::Owner has it.
    void note_policy(Subscriber& subscriber, std::span<const FidRange> fids,
                     std::optional<SlowPolicy> policy);
    void give_kept(Subscriber& subscriber);
    void forget(SubscriberId subscriber) { newest_.remove(subscriber); }
    // Since the last time there was no memory for what is kept.
    bool take_stuck() noexcept { return std::exchange(stuck_, false); }

    const FidTally& drops() const noexcept { return drops_; }

  private:
    PageTerms::Turn turn_of(const Interest& member, const PageTerms::Offer& offer);
    std::vector<Interest> takers_of(std::span<const Interest> members, const Large& message);
    void send_to(std::span<const Interest> takers, const Large& message,
                 std::span<const std::uint32_t> pages);
    void send_page(std::uint32_t page, const Interest& member,
                   std::span<const std::byte> extension);
    void drop_page(std::uint32_t page, Subscriber& subscriber);
    void keep_page(std::uint32_t page, Subscriber& subscriber);
    void keep(Subscriber& subscriber, Fid fid, MessageParts parts, std::uint8_t status);
    bool send_kept(NewestStore& store, Subscriber& subscriber);
    bool send_large_kept(NewestStore& store, Subscriber& subscriber);
    void tell_missed(std::uint32_t page, GapLedger& gap);
    void count_dropped(Fid fid);

    const PageTerms& terms_;
    PageStore& pages_;
    OpenPages& open_;
    SubscriberSessions& sessions_;
    Publisher::Counters& counters_;
    FidTally drops_;
    NewestBook newest_;
    std::uint32_t next_number_ = 0; // differs between one large message and the next
    bool stuck_ = false;
};

} // namespace netio::pubsub::inline v0_2
