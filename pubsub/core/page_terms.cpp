// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/page_terms.hpp"

#include "netio/base/option_check.hpp"
#include "pubsub/core/byte_arena.hpp"
#include "pubsub/core/page.hpp"

#include <algorithm>
#include <string>

namespace netio::pubsub::inline v0_2 {
namespace {

// What a subscriber may hold if nobody says otherwise. If the publisher waits for it, more would
// only have pages leave the processor's cache between being written and being sent; if not, it is
// the pause that a subscriber survives.
constexpr std::size_t share_waited_for_bytes = std::size_t{1} << 20;
constexpr std::size_t share_dropped_at_bytes = std::size_t{4} << 20;

// A subscriber takes the first part of a large page while the rest is filled. The page and its
// headers fit one segment of the kernel's, which has 65,483 bytes on loopback: a second segment,
// however short, wakes the subscriber once more.
constexpr std::size_t early_page_bytes = 65'408;

} // namespace

PageTerms::PageTerms(const Options& options)
    : page_bytes_{options.page_bytes}, watermark_bytes_{options.watermark_bytes == 0
                                                            ? page_bytes_
                                                            : options.watermark_bytes},
      early_bytes_{options.watermark_bytes == 0 ? std::min(page_bytes_, early_page_bytes)
                                                : page_bytes_},
      share_bytes_{options.share_bytes} {
    require_between("page_bytes", options.page_bytes, 256, netio::page::message_limit);
    require_between("page_count", options.page_count, 2, std::size_t{1} << 20);
    pool_ = ByteArena::rounded(page_bytes_) * options.page_count;
    require_option(share_bytes_ <= pool_ / 2,
                   "share_bytes is " + std::to_string(share_bytes_) +
                       "; one stopped subscriber must not keep more than half of the memory from "
                       "the others, which is page_bytes * page_count = " +
                       std::to_string(pool_) + " bytes");
    require_between("watermark_bytes", options.watermark_bytes, 0, page_bytes_);
    // All memory but a page, which other groups may hold, carries the fragments of a large message.
    message_limit_ =
        std::min(options.largest_message_bytes, (options.page_count - 1) * page_bytes_);
}

std::size_t PageTerms::set_aside() const noexcept {
    return std::max(page_bytes_, pool_ / 4);
}

std::size_t PageTerms::share_of(SlowPolicy policy) const noexcept {
    if (share_bytes_ > 0) return share_bytes_;
    const std::size_t usual =
        policy == SlowPolicy::drop ? share_dropped_at_bytes : share_waited_for_bytes;
    return std::min(pool_ / 2, std::max(4 * page_bytes_, usual));
}

PageTerms::Turn PageTerms::turn_of(const Holding& holding, SlowPolicy policy, const Shares& shares,
                                   const Offer& offer) const noexcept {
    const std::size_t held = holding.all();
    const std::size_t most = std::max<std::size_t>(1, shares.allowance(share_of(policy)));
    const bool takes =
        held < most && (!offer.is_large || held == 0 || held + offer.bytes <= pool_ / 2);
    if (may_miss(policy)) return takes ? Turn::takes : Turn::misses;
    const bool may_wait =
        !offer.is_confined || held + offer.bytes <= shares.waiting_limit(offer.free);
    return takes && may_wait ? Turn::takes : Turn::waits;
}

} // namespace netio::pubsub::inline v0_2
