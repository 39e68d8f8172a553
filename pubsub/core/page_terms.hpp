// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the options of a buffered publisher come to: how much memory its pages have, and how much
// of it a subscriber may hold. No I/O.

#include "pubsub/core/shares.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <cstddef>
#include <cstdint>

namespace netio::pubsub::inline v0_2 {

class PageTerms {
  public:
    struct Options {
        std::size_t page_bytes = 0;
        std::size_t page_count = 0;
        std::size_t share_bytes = 0;     // 0: as share_of() says
        std::size_t watermark_bytes = 0; // 0: page_bytes, or early_bytes() for idle subscribers
        std::size_t largest_message_bytes = 0;
    };
    // Throws std::invalid_argument naming the option and what is allowed.
    explicit PageTerms(const Options& options);

    std::size_t page_bytes() const noexcept { return page_bytes_; }
    std::size_t watermark_bytes() const noexcept { return watermark_bytes_; }
    // A page of this size leaves if its subscribers are idle, and is filled further if they are
    // busy. A whole page if the user has set a watermark.
    std::size_t early_bytes() const noexcept { return early_bytes_; }
    // The subscribers of a page count as busy when this many bytes are in flight to all of them.
    static constexpr std::size_t busy_bytes = std::size_t{1} << 20;
    // The memory of all pages.
    std::size_t pool() const noexcept { return pool_; }
    // Of the pool, for pages that are not filled yet.
    std::size_t set_aside() const noexcept;
    std::size_t message_limit() const noexcept { return message_limit_; }
    // Of the pool, by the largest message: with the heads of its pages, in gaps of a kilobyte.
    std::size_t largest() const noexcept { return message_limit_ + message_limit_ / 32; }

    // What a subscriber may hold as long as there is enough.
    std::size_t share_of(SlowPolicy policy) const noexcept;
    enum class Turn : std::uint8_t {
        takes,  // the next page, or all pages of the next message
        misses, // it, as its policy wants it
        waits,  // and publishing with it
    };
    // What it would hold besides.
    struct Offer {
        std::size_t bytes = 0;
        // It takes several pages: nobody is to have more than half of the pool with it, unless this
        // is the only one that it holds.
        bool is_large = false;
        // It would wait where there is not plenty: whoever is waited for is not to hold more then
        // than Shares::waiting_limit(), with so much free.
        bool is_confined = false;
        std::size_t free = 0;
    };
    Turn turn_of(const Holding& holding, SlowPolicy policy, const Shares& shares,
                 const Offer& offer) const noexcept;

  private:
    std::size_t page_bytes_;
    std::size_t watermark_bytes_;
    std::size_t early_bytes_;
    std::size_t share_bytes_;
    std::size_t pool_;
    std::size_t message_limit_;
};

} // namespace netio::pubsub::inline v0_2
