// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which publications still have to leave for somebody. A publication is begun with the user's
// cookie, gets a pending delivery for every frame that some subscriber has to be sent, and is
// sealed when it has all of them. When the last one is completed (sent, or its subscriber is gone)
// the cookie is released, exactly once, with what became of the publication. No I/O.
//
//     begin -> add_pending* -> seal -> (note, complete)* -> the cookie and the outcome

#include "netio/base/check.hpp"
#include "netio/base/cookie.hpp"
#include "pubsub/core/publication_outcome.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Names a publication from begin to its end; a later one in the same place has another id.
enum class PublicationId : std::uint64_t {};

class DeliveryTracker {
  public:
    explicit DeliveryTracker(std::size_t outstanding_limit) : entries_(outstanding_limit) {
        free_.reserve(outstanding_limit);
        for (std::size_t i = outstanding_limit; i > 0; --i)
            free_.push_back(static_cast<std::uint32_t>(i - 1));
    }

    // nullopt: as many as the limit allows are outstanding.
    std::optional<PublicationId> begin(Cookie cookie) {
        if (free_.empty()) return std::nullopt;
        const std::uint32_t place = free_.back();
        free_.pop_back();
        Entry& entry = entries_[place];
        entry.ended = {.cookie = cookie, .outcome = {}};
        entry.pending = 1; // the seal
        ++entry.generation;
        return PublicationId{(std::uint64_t{entry.generation} << 32) | place};
    }

    void add_pending(PublicationId id, std::size_t count = 1) { find(id).pending += count; }

    // What became of it for one subscriber.
    void note(PublicationId id, Fate fate) { count(find(id).ended.outcome, fate); }

    struct Ended {
        Cookie cookie{};
        PublicationOutcome outcome;
    };
    // No more deliveries follow. Its end, if none is pending (any more).
    std::optional<Ended> seal(PublicationId id) { return complete(id); }

    // So many are completed. Its end, if they were the last ones.
    std::optional<Ended> complete(PublicationId id, std::size_t count = 1) {
        Entry& entry = find(id);
        NETIO_CHECK(entry.pending >= count);
        entry.pending -= count;
        if (entry.pending > 0) return std::nullopt;
        free_.push_back(place_of(id));
        return entry.ended;
    }

    std::size_t outstanding() const noexcept { return entries_.size() - free_.size(); }
    std::size_t limit() const noexcept { return entries_.size(); }
    // Where a publication may be kept by the caller: below limit(), its own until its end.
    static std::uint32_t place_of(PublicationId id) noexcept {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
    }

  private:
    struct Entry {
        Ended ended;
        std::size_t pending = 0;
        std::uint32_t generation = 0;
    };
    Entry& find(PublicationId id) {
        NETIO_CHECK(place_of(id) < entries_.size());
        Entry& entry = entries_[place_of(id)];
        NETIO_CHECK(entry.pending > 0 && entry.generation == static_cast<std::uint64_t>(id) >> 32);
        return entry;
    }

    std::vector<Entry> entries_;
    std::vector<std::uint32_t> free_;
};

} // namespace netio::pubsub::inline v0_2
