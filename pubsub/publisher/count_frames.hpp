// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts of fids on their way into frames: gaps, and lists such as totals, which are written when
// their turn comes. A few counts fit into a frame's extension; more lie in memory of its own, where
// a few frames may be under way. One gap or list at a time: what prepare() began is gone on with
// until posted() says that it is told.

#include "netio/memory/buffer.hpp"
#include "pubsub/core/frames.hpp"
#include "pubsub/core/gap_ledger.hpp"
#include "pubsub/publisher/lent_message.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Writes some of its counts, into the span.
using CountList = std::function<TotalsPart(std::span<FidCount>)>;

class CountFrames {
  public:
    // A bit for each frame that is under way in memory; 0: the counts lie in the extension.
    using Places = std::uint32_t;

    // The next frame of the gaps; its extension has nothing in front of them. Nothing: as much is
    // under way as may be.
    std::optional<Places> prepare(GapLedger& gaps, std::size_t body_limit, ReadyFrame& frame);
    // The same of a list, behind what stands in the frame's extension already.
    std::optional<Places> prepare(const CountList& list, std::size_t body_limit, ReadyFrame& frame);
    // What was prepared last, into this place, is under way. Whether that was the last of the list,
    // or of the gaps, if those have no more.
    bool posted(Places place, const GapLedger* gaps);
    void on_sent(Places place) noexcept { used_ &= ~place; }
    // Some of the gap or list has been taken out of it, and is not under way yet.
    bool has_begun() const noexcept { return told_ < telling_.size(); }

  private:
    std::size_t most(std::size_t body_limit, const ReadyFrame& frame) const noexcept;
    std::optional<Places> write(std::size_t at_most, ReadyFrame& frame);

    std::vector<FidCount> telling_;            // what was taken out
    std::size_t told_ = 0;                     // of it
    std::size_t part_ = 0;                     // of it, that was prepared last
    bool list_ends_ = false;                   // behind it
    std::unique_ptr<RegisteredBuffer> memory_; // made at first use
    Places used_ = 0;
};

} // namespace netio::pubsub::inline v0_2
