// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pages that are being filled, one for a group at most; a group knows the place of its own.
// They share a part of the store: the more of them there are, the less is set aside for each.
//
// Whoever publishes may write through a group's lane as long as that has room. It has none for the
// record that reaches the watermark: this one comes here.

#include "netio/base/slot_pool.hpp"
#include "pubsub/core/fan_out.hpp"
#include "pubsub/core/page.hpp"
#include "pubsub/core/page_terms.hpp"
#include "pubsub/publisher/page_store.hpp"

#include <cstdint>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class OpenPages {
  public:
    OpenPages(PageStore& store, const PageTerms& terms) noexcept : store_{store}, terms_{terms} {}

    const Group& group(std::size_t place) const noexcept {
        return *pages_[static_cast<std::uint32_t>(place)].group;
    }

    // Opens a page for the group that has room for a record of `record_bytes` and may grow to
    // `most`. It begins with PageTerms::early_bytes(), so that pages that leave early lie close
    // together in memory and the same few are used again. Returns false if there is no memory.
    bool open(Group& group, std::size_t record_bytes, std::size_t most);
    // Extends the group's page, so that it need not leave now. Returns false if the page has its
    // largest size, or if too little memory is free directly after the page.
    bool fill_further(const Group& group);
    // Where a message goes in the group's open page; nullptr: there is no room for it.
    std::byte* append(Group& group, Fid fid, std::uint8_t status, std::size_t bytes);
    // The group's page is to leave now: also where it was made no larger than its first message,
    // for want of memory. Who could be sent it may not be able to later.
    bool is_due(const Group& group) const noexcept {
        const std::size_t used = group.writer.used();
        return used >= terms_.watermark_bytes() ||
               used + page::header_bytes > pages_[static_cast<std::uint32_t>(group.place)].bytes;
    }
    // Whether the group's page may still grow and no watermark has been reached.
    bool is_early(const Group& group) const noexcept {
        const Open& open = pages_[static_cast<std::uint32_t>(group.place)];
        return open.bytes < open.most && group.writer.used() < terms_.watermark_bytes();
    }
    // What nobody else will write to: the group's open page, which is not open any more.
    struct Filled {
        std::uint32_t page = 0;
        std::size_t bytes = 0;
        Group* group = nullptr;
    };
    Filled take(std::size_t place);
    // Pages of nobody's group, for a message that takes several; none: there is not so much.
    std::vector<std::uint32_t> take_pages(std::size_t bytes);
    // What is set aside beyond so many bytes of a page goes back to the store.
    void shrink(std::size_t bytes);
    // What is left of the memory, of which so much is `unsealed`, if all that is set aside is
    // filled: that can come to wait for somebody. Where little is left, what few messages would
    // need goes back first.
    std::size_t free(std::size_t unsealed);

    bool empty() const noexcept { return pages_.size() == 0; }
    // Calls visit(place) for each that was open at the beginning; it may take that one.
    template <class Visit>
    void for_each(Visit visit) {
        for (std::uint32_t place = 0; place < pages_.end(); ++place)
            if (pages_[place].group != nullptr) visit(place);
    }

  private:
    struct Open {
        Group* group = nullptr;
        std::uint32_t page = 0;
        std::size_t bytes = 0; // of the page that may be used now
        std::size_t most = 0;  // to which it may grow
    };
    void limit_lane(const Open& open) noexcept;

    PageStore& store_;
    const PageTerms& terms_;
    SlotPool<Open> pages_;
};

} // namespace netio::pubsub::inline v0_2
