// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks processes that know only fids and find their publishers: each message is received,
// reported lost, or belongs to a publisher that ended with an unknown tail. Independent of the
// product.

#include "tests/world/oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::world {

class FoundOracle {
  public:
    explicit FoundOracle(Oracle& oracle) : oracle_{oracle} {}

    // --- publishers: each fid is of one, in all of its lives ---
    void opens(std::uint32_t publisher, std::uint64_t life, std::span<const std::uint64_t> fids);
    // The bytes of the next message.
    std::vector<std::byte> next(std::uint64_t fid, std::size_t size) const;
    void published(std::uint64_t fid) { ++fids_.at(fid).numbers[fids_.at(fid).life]; }
    // The publisher has granted these fids to the finder of this connection.
    void grants(std::uint64_t connection, std::uint64_t first, std::uint64_t last);

    // --- finders ---
    void begins(std::uint32_t finder);
    // The finder receives the oldest pending answer of the connection.
    void subscribed(std::uint32_t finder, std::uint64_t connection, std::uint64_t first,
                    std::uint64_t last);
    // The finder unsubscribes. Notifications until the answer, or until the end of the connection
    // that would carry it, belong to the withdrawn subscription.
    void unsubscribes(std::uint32_t finder, std::uint64_t first, std::uint64_t last);
    void unsubscribed(std::uint32_t finder, std::uint64_t first, std::uint64_t last);
    void closed(std::uint32_t finder, std::uint32_t publisher);
    void message(std::uint32_t finder, std::uint64_t fid, std::span<const std::byte> bytes);
    // Messages reported lost, by count or between connections.
    void missing(std::uint32_t finder, std::uint64_t fid, std::uint64_t count);
    void changed(std::uint32_t finder, std::uint32_t publisher, bool tail_known);
    // At the end: it is subscribed to the fid, and the publisher lives.
    void served(std::uint32_t finder, std::uint64_t fid);
    // Publishers reported with an unknown end, and those that do not exist any more.
    void unknown_tails(std::uint32_t finder, std::uint64_t said, std::uint64_t gone);

    std::uint64_t delivered() const noexcept { return delivered_; }
    std::uint64_t lost() const noexcept { return lost_; }

  private:
    struct Source { // of a fid
        std::uint32_t publisher = 0;
        std::uint64_t life = 0;
        std::map<std::uint64_t, std::uint64_t> numbers; // numbers published in each life
    };
    struct Place {
        std::uint64_t life = 0;
        std::uint64_t next = 0;
    };
    struct Finder {
        std::map<std::uint64_t, Place> known;           // as reported to it
        std::map<std::uint64_t, std::uint32_t> leaving; // unanswered, for each fid
        std::uint64_t unknown_tails = 0;
    };

    using Grant = std::map<std::uint64_t, Place>; // where each fid begins

    void violate(std::uint32_t finder, std::uint64_t fid, const std::string& what);
    void forget(std::uint32_t finder, std::uint64_t first, std::uint64_t last);

    Oracle& oracle_;
    std::map<std::uint64_t, Source> fids_;
    std::map<std::uint32_t, Finder> finders_;
    std::map<std::uint64_t, std::deque<Grant>> granted_; // of a connection, not yet received
    std::uint64_t delivered_ = 0;
    std::uint64_t lost_ = 0;
};

} // namespace netio::world
