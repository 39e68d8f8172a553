// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends the pages of a buffered publisher to those who want them, by their policies: who has its
// share misses the page or makes the publisher wait.

#include "pubsub/core/drop_account.hpp"
#include "pubsub/core/gap_ledger.hpp"
#include "pubsub/core/page_terms.hpp"
#include "pubsub/publisher/page_store.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/publisher/subscriber_sessions.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class PageDelivery {
  public:
    // The sessions may be made later, but before the first call.
    PageDelivery(const PageTerms& terms, PageStore& pages, SubscriberSessions& sessions,
                 Publisher::Counters& counters) noexcept
        : terms_{terms}, pages_{pages}, sessions_{sessions}, counters_{counters} {}

    // Whether publishing to these has to wait for one of them.
    // `message_bytes`: of one that takes several pages.
    bool must_wait_for(std::span<const Interest> members, std::size_t message_bytes = 0);
    // A page of records, which is the caller's, to all of them. The caller's use of it ends.
    void send(std::uint32_t page, std::size_t bytes, std::span<const Interest> members);
    // A message in pages of its own, of which the caller's use ends; who does not get all of it
    // gets none.
    struct Large {
        Fid fid{};
        std::uint32_t number = 0; // differs between one and the next
        std::uint8_t status = 0;
        std::span<const std::span<const std::byte>> parts;
        std::size_t bytes = 0;
    };
    void send(const Large& message, std::span<const std::uint32_t> pages,
              std::span<const Interest> members);
    // A subscriber does not get this page. How many messages it misses.
    std::uint64_t tell_missed(std::uint32_t page, GapLedger& gap);
    const DropAccount& drops() const noexcept { return drops_; }

  private:
    PageTerms::Turn turn_of(const Interest& member, std::size_t message_bytes = 0);
    std::vector<Interest> takers_of(std::span<const Interest> members, const Large& message);
    void send_page(std::uint32_t page, const Interest& member,
                   std::span<const std::byte> extension);
    void drop_page(std::uint32_t page, Subscriber& subscriber);
    void count_dropped(Fid fid);

    const PageTerms& terms_;
    PageStore& pages_;
    SubscriberSessions& sessions_;
    Publisher::Counters& counters_;
    DropAccount drops_;
};

} // namespace netio::pubsub::inline v0_2
