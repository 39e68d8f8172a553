// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pages of a buffered publisher: pieces of one registered buffer, as large as what they hold,
// counted by the subscribers that still have to be sent them. A page is encoded once and sent to
// any number of them.

#include "netio/base/slot_pool.hpp"
#include "netio/memory/buffer.hpp"
#include "pubsub/core/byte_arena.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/shares.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class PageStore {
  public:
    explicit PageStore(std::size_t bytes) : memory_{bytes}, arena_{memory_.size()} {}

    enum class Contents : std::uint8_t {
        records,
        first_fragment, // of a message that needs several pages
        later_fragment,
    };
    // A page with one user, the caller, and room for `most` bytes, or `least` at least; nullopt:
    // there is no such piece.
    std::optional<std::uint32_t> open(std::size_t least, std::size_t most);
    // It keeps so many bytes.
    void shorten(std::uint32_t page, std::size_t bytes) {
        arena_.shorten(pages_[page].piece, bytes);
    }
    // Extends the page to `bytes`. Returns false if too little memory is free directly after it.
    bool extend(std::uint32_t page, std::size_t bytes) {
        return arena_.extend(pages_[page].piece, bytes);
    }
    // Several, with room for so many bytes together, in each `most` or `least` at least; none:
    // there is not so much.
    std::vector<std::uint32_t> open_for(std::size_t bytes, std::size_t least, std::size_t most);
    // What a page is of that a message takes several of.
    struct Fragment {
        Fid fid{};
        std::uint8_t status = 0;
    };
    // Nothing more is written to it.
    void seal(std::uint32_t page, std::size_t bytes, Contents contents, const Fragment& fragment,
              Shares& shares);

    void add_user(std::uint32_t page) noexcept { ++pages_[page].users; }
    // The last user's release frees the page.
    void release(std::uint32_t page, Shares& shares);
    // Frees a page that was never sealed.
    void abandon(std::uint32_t page) { arena_.give_back(pages_.release(page).piece); }

    std::span<std::byte> memory(std::uint32_t page) const noexcept {
        const Page& it = pages_[page];
        return memory_.memory().subspan(it.piece.offset, it.bytes > 0 ? it.bytes : it.piece.size);
    }
    Slice slice(std::uint32_t page) noexcept {
        return memory_.slice(pages_[page].piece.offset, pages_[page].bytes);
    }
    // Of the pool: with what pages that are not sealed yet may still be filled with taken off.
    std::size_t free() const noexcept { return arena_.free_bytes(); }
    // What it takes of the pool.
    std::size_t size(std::uint32_t page) const noexcept { return pages_[page].piece.size; }
    Contents contents(std::uint32_t page) const noexcept { return pages_[page].contents; }
    const Fragment& fragment(std::uint32_t page) const noexcept { return pages_[page].fragment; }

  private:
    struct Page {
        ByteArena::Piece piece;
        std::size_t bytes = 0; // once it is sealed
        std::uint32_t users = 0;
        Contents contents = Contents::records;
        Fragment fragment;
    };

    RegisteredBuffer memory_;
    ByteArena arena_;
    SlotPool<Page> pages_;
};

} // namespace netio::pubsub::inline v0_2
