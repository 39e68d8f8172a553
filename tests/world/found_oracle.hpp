// SPDX-License-Identifier: Apache-2.0
#pragma once

// Of those who know fids only and find their publishers: each message is received, told missing, or
// belongs to a publisher said to have ended with an unknown tail. It knows nothing of the product.

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
    // It has granted them to the finder that has made this connection.
    void grants(std::uint64_t connection, std::uint64_t first, std::uint64_t last);

    // --- finders ---
    void begins(std::uint32_t finder);
    // It hears the oldest answer of the connection that it has not heard.
    void subscribed(std::uint32_t finder, std::uint64_t connection, std::uint64_t first,
                    std::uint64_t last);
    // Does not want them any more. What it is told of them until the answer, or the end of the
    // connection in which that was to come, is of what it had taken back.
    void unsubscribes(std::uint32_t finder, std::uint64_t first, std::uint64_t last);
    void unsubscribed(std::uint32_t finder, std::uint64_t first, std::uint64_t last);
    void closed(std::uint32_t finder, std::uint32_t publisher);
    void message(std::uint32_t finder, std::uint64_t fid, std::span<const std::byte> bytes);
    // A gap, or between connections.
    void missing(std::uint32_t finder, std::uint64_t fid, std::uint64_t count);
    void changed(std::uint32_t finder, std::uint32_t publisher, bool tail_known);
    // In the end: it wants the fid, whose publisher lives.
    void served(std::uint32_t finder, std::uint64_t fid);
    // Publishers whose end it says to be unknown, and those that are not there any more.
    void unknown_tails(std::uint32_t finder, std::uint64_t said, std::uint64_t gone);

    std::uint64_t delivered() const noexcept { return delivered_; }
    std::uint64_t missed() const noexcept { return missed_; }

  private:
    struct Source { // of a fid
        std::uint32_t publisher = 0;
        std::uint64_t life = 0;
        std::map<std::uint64_t, std::uint64_t> numbers; // by life: what was published
    };
    struct Place {
        std::uint64_t life = 0;
        std::uint64_t next = 0;
    };
    struct Finder {
        std::map<std::uint64_t, Place> known;           // by what it was told
        std::map<std::uint64_t, std::uint32_t> leaving; // not answered, of each fid
        std::uint64_t unknown_tails = 0;
    };

    using Grant = std::map<std::uint64_t, Place>; // by fid: where it begins

    void violate(std::uint32_t finder, std::uint64_t fid, const std::string& what);
    void forget(std::uint32_t finder, std::uint64_t first, std::uint64_t last);

    Oracle& oracle_;
    std::map<std::uint64_t, Source> fids_;
    std::map<std::uint32_t, Finder> finders_;
    std::map<std::uint64_t, std::deque<Grant>> granted_; // of a connection, and not heard
    std::uint64_t delivered_ = 0;
    std::uint64_t missed_ = 0;
};

} // namespace netio::world
