// SPDX-License-Identifier: Apache-2.0
#pragma once

// A subscriber's account of what has arrived, per fid, held against the publisher's totals at the
// orderly end. No I/O.

#include "pubsub/core/fid_map.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Which kinds of frames have brought messages. A fragment may be of either kind of publishing.
struct FramesSeen {
    bool pages = false;    // of a buffered publisher
    bool messages = false; // of an unbuffered one
    bool gathered = false; // of an unbuffered one too: small ones that had to wait
    bool fragments = false;
};
inline void merge(FramesSeen& all, const FramesSeen& seen) noexcept {
    all.pages = all.pages || seen.pages;
    all.messages = all.messages || seen.messages;
    all.gathered = all.gathered || seen.gathered;
    all.fragments = all.fragments || seen.fragments;
}

// Of one fid since its subscription was accepted.
struct Arrivals {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
};

class ArrivalCounter {
  public:
    // The account of a fid, good until another one is asked for.
    Arrivals& of(Fid fid) { return fids_[fid]; }
    Arrivals* find(Fid fid) noexcept { // nullptr: it has none
        Arrivals* const account = fids_.find_or_vacant(fid);
        return account == nullptr || account->messages > 0 ? account : fids_.find(fid);
    }
    void add(Arrivals& account, std::size_t bytes) noexcept {
        ++account.messages;
        account.bytes += bytes;
        ++messages_;
        bytes_ += bytes;
    }
    void add(Fid fid, std::size_t bytes) { add(of(fid), bytes); }
    // Told by the publisher: this subscriber was too slow for them.
    void add_missed(Fid fid, std::uint64_t count) {
        of(fid);
        Claim& claim = claims_[fid];
        claim.missed = added(claim.missed, count);
        missed_ = added(missed_, count);
    }
    // The publisher's totals, at the orderly end: of each fid, and then there are no more.
    void expect(const FidCount& total) {
        of(total.fid);
        claims_[total.fid].expected = total.count;
    }
    void complete_books() noexcept { complete_ = true; }
    // The subscription of a range has ended, or a new connection has begun: its account is closed
    // and will not be held against totals. messages(), bytes() and missed() go on.
    void forget(const FidRange& range) {
        fids_.erase(range);
        claims_.erase(range);
    }
    void forget_all() {
        fids_.clear();
        claims_.clear();
        complete_ = false;
    }

    std::uint64_t messages() const noexcept { return messages_; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    const FidMap<Arrivals>& fids() const noexcept { return fids_; }

    // Whether the publisher has told its totals.
    bool complete() const noexcept { return complete_; }
    // What the publisher has said it left out, so far.
    std::uint64_t missed() const noexcept { return missed_; }
    std::uint64_t missed(Fid fid) const {
        const Claim* const claim = claims_.find(fid);
        return claim != nullptr ? claim->missed : 0;
    }
    // Held against the totals; nothing until those are known, and so for ever behind a publisher
    // that was lost, or one's own close().
    struct Books {
        std::uint64_t lost = 0;    // published to this subscriber, and did not arrive
        std::uint64_t surplus = 0; // arrived, and was not published to it
        friend bool operator==(const Books&, const Books&) = default;
    };
    // Neither side makes up for the other, or another fid's.
    std::optional<Books> books() const {
        if (!complete_) return std::nullopt;
        Books sum;
        fids_.for_each([&](Fid fid, const Arrivals& arrived) {
            const Books books = books_of(fid, arrived);
            sum.lost = added(sum.lost, books.lost);
            sum.surplus = added(sum.surplus, books.surplus);
        });
        return sum;
    }
    std::optional<Books> books(Fid fid) const {
        if (!complete_) return std::nullopt;
        const Arrivals* const arrived = fids_.find(fid);
        return arrived != nullptr ? books_of(fid, *arrived) : Books{};
    }

  private:
    // What the publisher says of a fid. Apart from the accounts, to keep those small: every message
    // needs one of them, and the more of them a cache holds the better.
    struct Claim {
        std::uint64_t missed = 0;
        std::uint64_t expected = 0;
    };

    // What a peer says may be anything: a sum that is too large stays at the largest number.
    static constexpr std::uint64_t added(std::uint64_t a, std::uint64_t b) noexcept {
        return a + b < a ? UINT64_MAX : a + b;
    }
    // A message that arrived twice does not make up for one that the publisher has said is missing.
    Books books_of(Fid fid, const Arrivals& arrived) const {
        const Claim* const found = claims_.find(fid);
        const Claim claim = found != nullptr ? *found : Claim{};
        const std::uint64_t absent =
            claim.expected > arrived.messages ? claim.expected - arrived.messages : 0;
        const std::uint64_t lost = std::max(absent, claim.missed);
        const std::uint64_t seen = added(arrived.messages, lost);
        return {.lost = lost, .surplus = seen > claim.expected ? seen - claim.expected : 0};
    }

    FidMap<Arrivals> fids_; // also of each fid that has a claim
    FidMap<Claim> claims_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t missed_ = 0;
    bool complete_ = false;
};

} // namespace netio::pubsub::inline v0_2
