// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is kept for a subscriber that does not keep up and wants the newest: of each fid the last
// message, and how many before it were missed and have not been told yet. Messages in, messages and
// counts out: no I/O.
//
// It is limited in bytes. Where a message does not fit, those of the fids go that have had none for
// the longest time; one that is larger than the limit is not kept. Whatever is not kept is counted,
// and stands, as what is missed, in front of what is kept of its fid.

#include "netio/coalescing/message_parts.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/frames.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class NewestStore {
  public:
    // What a message takes beside its bytes.
    static constexpr std::size_t overhead_bytes = 128;

    explicit NewestStore(std::size_t limit_bytes) noexcept : limit_{limit_bytes} {}

    struct Message {
        Fid fid{};
        std::uint8_t status = 0;
        std::vector<std::byte> bytes;
    };
    // The newest of its fid. Returns the fid of each message that is missed for it, which may be
    // its own; good until the next call.
    std::span<const Fid> put(Fid fid, MessageParts parts, std::uint8_t status);
    // What became of a message that was published before whatever has been put of its fid and is
    // not told yet.
    enum class Older : std::uint8_t {
        kept,
        missed,  // there is no room. It is counted, so that one before it is not taken for the last
        not_last // of its fid; it is not counted here
    };
    Older put_older(Fid fid, MessageParts parts, std::uint8_t status);

    // The counts of what was missed, in the order of the fids; then messages, those of the fids
    // first that have had none for the longest time. Who takes a message has taken the counts.
    std::vector<FidCount> take_missed();
    bool has_messages() const noexcept { return !kept_.empty(); }
    const Message& front() const noexcept { return kept_.front(); }
    void pop_front();

    // These fids, a set as in fid_ranges.hpp, are not kept any more. What was missed of them, with
    // what was kept till now, in the order of the fids; `dropped` are the fids of the latter.
    struct Forgotten {
        std::vector<FidCount> missed;
        std::vector<Fid> dropped;
    };
    Forgotten forget(std::span<const FidRange> set);

    bool empty() const noexcept { return kept_.empty() && missed_.empty(); }
    std::size_t messages() const noexcept { return kept_.size(); }
    // Of the limit.
    std::size_t bytes() const noexcept { return bytes_; }

  private:
    using Kept = std::list<Message>; // the fid that has had none for the longest time first

    void drop(Kept::iterator message);
    void miss(Fid fid);

    std::size_t limit_;
    std::size_t bytes_ = 0;
    Kept kept_;
    FidMap<Kept::iterator> places_;
    FidMap<std::uint64_t> missed_;
    std::vector<Fid> dropped_; // by the last put
};

} // namespace netio::pubsub::inline v0_2
