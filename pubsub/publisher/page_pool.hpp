// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pages of a buffered publisher: how much memory they have (PageBudget), the memory itself
// (ByteArena, PageStore), the pages that are being filled (OpenPages), and when these are sent
// although they are not full (FlushClock).

#include "netio/base/slot_pool.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/memory/buffer.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/wire.hpp"
#include "pubsub/publisher/backpressure.hpp"
#include "pubsub/publisher/subscription_table.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// The decision about the next page, or all pages of the next message, for a subscriber.
enum class Admit : std::uint8_t {
    enqueue,
    drop,  // not sent to the subscriber, by its policy
    block, // publishing waits
};

// The limits that follow from the options of a buffered publisher. No I/O.
class PageBudget {
  public:
    struct Options {
        std::size_t page_size_bytes = 0;
        std::size_t page_count = 0;
        std::size_t queue_limit_bytes = 0; // 0: limit_of() has defaults
        std::size_t watermark_bytes =
            0; // 0: page_size_bytes, or early_bytes() for idle subscribers
        std::size_t largest_message_bytes = 0;
    };
    // Throws std::invalid_argument, which names the option and the allowed values.
    explicit PageBudget(const Options& options);

    std::size_t page_size_bytes() const noexcept { return page_bytes_; }
    std::size_t watermark_bytes() const noexcept { return watermark_bytes_; }
    // A page with this many bytes is sent while its subscribers are idle, and filled further while
    // they are busy. If the user has set a watermark: a whole page.
    std::size_t early_bytes() const noexcept { return early_bytes_; }
    // The subscribers of a page are busy from this many bytes in flight to all of them together.
    static constexpr std::size_t busy_bytes = std::size_t{1} << 20;
    // The memory of all pages.
    std::size_t pool() const noexcept { return pool_; }
    // The part of the pool for pages that are being filled.
    std::size_t set_aside() const noexcept;
    std::size_t message_limit() const noexcept { return message_limit_; }
    // The pool memory of the largest message: with the headers of its pages, in pieces of at least
    // a kilobyte.
    std::size_t largest() const noexcept { return message_limit_ + message_limit_ / 32; }

    // What a subscriber may hold while the pool is not short.
    std::size_t limit_of(SlowPolicy policy) const noexcept;
    // The memory that the subscriber would hold in addition.
    struct Offer {
        std::size_t bytes = 0;
        // It needs several pages: with it a subscriber may hold at most half of the pool, unless it
        // holds nothing else.
        bool is_large = false;
        // It would wait while the pool is not plentiful: a subscriber that publishing waits for may
        // then hold at most MemoryBudget::waiting_limit(free).
        bool is_confined = false;
        std::size_t free = 0;
    };
    Admit admit(const QueueUsage& usage, SlowPolicy policy, const MemoryBudget& budget,
                const Offer& offer) const noexcept;

  private:
    std::size_t page_bytes_;
    std::size_t watermark_bytes_;
    std::size_t early_bytes_;
    std::size_t queue_limit_bytes_;
    std::size_t pool_;
    std::size_t message_limit_;
};

// Cuts pieces of any size from one block of memory. No I/O: it works with offsets.
//
// The lowest hole that is large enough is used first, so that the memory stays within a processor's
// cache while little is in use. A piece can be shortened when its content is known. The holes are
// one sorted array: there are few, unless many pieces are held for long, and they are searched once
// per piece, not per message.
class ByteArena {
  public:
    // All offsets and sizes are multiples of a cache line.
    static constexpr std::size_t grain = 64;
    static constexpr std::size_t rounded(std::size_t bytes) noexcept {
        return (bytes + grain - 1) / grain * grain;
    }

    explicit ByteArena(std::size_t bytes);

    struct Piece {
        std::size_t offset = 0;
        std::size_t size = 0;
    };
    // The lowest piece of `most` bytes. If there is none, the largest of at least `least` bytes.
    std::optional<Piece> take(std::size_t least, std::size_t most);
    // Frees all after the first `size` bytes of a piece.
    void shorten(Piece& piece, std::size_t size);
    // Extends a piece to `size` bytes with the free memory that follows it. Returns false if there
    // is too little; the piece is unchanged.
    bool extend(Piece& piece, std::size_t size);
    void release(const Piece& piece);

    std::size_t free_bytes() const noexcept { return free_bytes_; }
    std::size_t hole_count() const noexcept { return holes_.size(); }

  private:
    std::size_t free_bytes_;
    std::vector<Piece> holes_; // by offset; no two are adjacent
};

// Pages are pieces of one registered buffer, as large as their content. A page is encoded once and
// sent to any number of subscribers; it is freed when the last of these has been sent it.
class PageStore {
  public:
    explicit PageStore(std::size_t bytes) : memory_{bytes}, arena_{memory_.size()} {}

    enum class Contents : std::uint8_t {
        records,
        first_fragment, // of a message that needs several pages
        later_fragment,
    };
    // Opens a page with space for `most` bytes, or, if there is no such piece, for as many as there
    // are but at least `least`. The caller is its only user. Returns nullopt if no piece has
    // `least` bytes.
    std::optional<std::uint32_t> open(std::size_t least, std::size_t most);
    // Keeps only the first `bytes` bytes.
    void shorten(std::uint32_t page, std::size_t bytes) {
        arena_.shorten(pages_[page].piece, bytes);
    }
    // Extends the page to `bytes` bytes. Returns false if too little free memory follows the page.
    bool extend(std::uint32_t page, std::size_t bytes) {
        return arena_.extend(pages_[page].piece, bytes);
    }
    // Opens several pages with space for `bytes` together; each has space for `most` bytes, or at
    // least `least`. Returns an empty list if there is not enough memory.
    std::vector<std::uint32_t> open_for(std::size_t bytes, std::size_t least, std::size_t most);
    // The message that a fragment belongs to.
    struct Fragment {
        Fid fid{};
        std::uint8_t status = 0;
    };
    // Ends the writing to a page, which has `bytes` bytes of content.
    void seal(std::uint32_t page, std::size_t bytes, Contents contents, const Fragment& fragment,
              MemoryBudget& budget);

    void add_user(std::uint32_t page) noexcept { ++pages_[page].users; }
    // Ends the use by one user. Frees the page after its last user.
    void release(std::uint32_t page, MemoryBudget& budget);
    // Frees a page that was never sealed.
    void abandon(std::uint32_t page) { arena_.release(pages_.release(page).piece); }

    std::span<std::byte> memory(std::uint32_t page) const noexcept {
        const Page& it = pages_[page];
        return memory_.memory().subspan(it.piece.offset, it.bytes > 0 ? it.bytes : it.piece.size);
    }
    Slice slice(std::uint32_t page) noexcept {
        return memory_.slice(pages_[page].piece.offset, pages_[page].bytes);
    }
    // The free memory of the pool, without what open pages may still fill.
    std::size_t free() const noexcept { return arena_.free_bytes(); }
    // The pool memory of a page.
    std::size_t size(std::uint32_t page) const noexcept { return pages_[page].piece.size; }
    Contents contents(std::uint32_t page) const noexcept { return pages_[page].contents; }
    const Fragment& fragment(std::uint32_t page) const noexcept { return pages_[page].fragment; }

  private:
    struct Page {
        ByteArena::Piece piece;
        std::size_t bytes = 0; // 0 until it is sealed
        std::uint32_t users = 0;
        Contents contents = Contents::records;
        Fragment fragment;
    };

    RegisteredBuffer memory_;
    ByteArena arena_;
    SlotPool<Page> pages_;
};

// The pages that are being filled, at most one per group; a group knows the place of its own. They
// share a part of the store: the more there are, the smaller is each.
//
// The socket's inline publish() writes through a group's writer while that has room. The writer has
// no room for the record that reaches the watermark, so that this record comes here.
class OpenPages {
  public:
    OpenPages(PageStore& store, const PageBudget& limits) noexcept
        : store_{store}, limits_{limits} {}

    const Group& group(std::size_t place) const noexcept {
        return *pages_[static_cast<std::uint32_t>(place)].group;
    }

    // Opens a page for the group with room for a record of `record_bytes`, and for `most` if there
    // is as much memory; at first only for PageBudget::early_bytes(), so that pages that are sent
    // early use the same little memory again. Returns false if there is not enough.
    bool open(Group& group, std::size_t record_bytes, std::size_t most);
    // Extends the group's page, so that it need not be sent now. Returns false if the page has its
    // largest size, or the memory that follows it is in use.
    bool fill_further(const Group& group);
    // Where a message goes in the group's open page; nullptr if it does not fit.
    std::byte* append(Group& group, Fid fid, std::uint8_t status, std::size_t bytes);
    // Whether the group's page must be sent now. This includes a page that, for lack of memory, has
    // space for its first message only: a subscriber that can receive it now may not be able to
    // later.
    bool is_due(const Group& group) const noexcept {
        const std::size_t used = group.writer.used();
        return used >= limits_.watermark_bytes() ||
               used + page::header_bytes > pages_[static_cast<std::uint32_t>(group.place)].bytes;
    }
    // Whether the page may still be extended, and is below the watermark.
    bool is_early(const Group& group) const noexcept {
        const Open& open = pages_[static_cast<std::uint32_t>(group.place)];
        return open.bytes < open.most && group.writer.used() < limits_.watermark_bytes();
    }
    struct Filled {
        std::uint32_t page = 0;
        std::size_t bytes = 0;
        Group* group = nullptr;
    };
    // Removes the page at `place` from the open pages, and gives it to the caller.
    Filled take(std::size_t place);
    // Opens pages without a group, for a message that needs several. Returns an empty list if there
    // is not enough memory.
    std::vector<std::uint32_t> take_pages(std::size_t bytes);
    // Shortens every open page to `bytes`, or to the size of its content.
    void shrink(std::size_t bytes);
    // Returns the memory that is left when all open pages are full. `unsealed`: the free memory of
    // the budget. If little is left, first shortens the open pages.
    std::size_t free(std::size_t unsealed);

    bool empty() const noexcept { return pages_.size() == 0; }
    // Calls visit(place) for each page that was open at the beginning; it may take that one.
    template <class Visit>
    void for_each(Visit visit) {
        for (std::uint32_t place = 0; place < pages_.end(); ++place)
            if (pages_[place].group != nullptr) visit(place);
    }

  private:
    struct Open {
        Group* group = nullptr;
        std::uint32_t page = 0;
        std::size_t bytes = 0; // that may be filled
        std::size_t most = 0;  // to which it may be extended
    };
    void limit_writer(const Open& open) noexcept;

    PageStore& store_;
    const PageBudget& limits_;
    SlotPool<Open> pages_;
};

// When pages are sent that are not full: after the flush time, and with `when_idle` as soon as the
// sessions of their subscribers have nothing to send.
class FlushClock {
  public:
    struct Options {
        std::chrono::microseconds flush_time{}; // 0: no timer
        bool when_idle = false;
    };
    // `flush_old` sends all pages. `flush_idle` sends those of idle sessions.
    FlushClock(EventLoop& loop, const Options& options, std::function<void()> flush_old,
               std::function<void()> flush_idle)
        : loop_{loop}, options_{options}, pace_{options.flush_time},
          old_timer_{loop, std::move(flush_old)}, idle_timer_{loop, std::move(flush_idle)} {}

    void on_page_opened() {
        if (options_.flush_time.count() > 0 && !old_timer_.armed()) {
            old_timer_.start_at(pace_.next(loop_.now(), is_busy()));
        }
        on_progress();
    }
    // Call it when a session may have become idle.
    void on_progress() {
        if (options_.when_idle && !idle_timer_.armed()) idle_timer_.start(Duration::zero());
    }
    // Call it when flush_old() has sent some pages, and perhaps kept others for the next time.
    void on_flushed_in_time(const FlushPace::Pages& pages) {
        pace_.on_flushed(loop_.now(), pages);
        sleeps_ = loop_.wait_count();
        turns_ = loop_.turns().count();
        if (pages.kept > 0) old_timer_.start(pace_.check_interval());
    }
    // Call it when no page is open any more.
    void on_all_flushed() noexcept { old_timer_.cancel(); }

  private:
    // flush_old() has sent pages in the previous turn, and the loop has not slept since.
    bool is_busy() const noexcept {
        return loop_.wait_count() == sleeps_ && loop_.turns().count() <= turns_ + 1;
    }

    EventLoop& loop_;
    Options options_;
    FlushPace pace_;
    std::uint64_t sleeps_ = 0; // of the loop, at the last on_flushed_in_time()
    std::uint64_t turns_ = 0;
    Timer old_timer_;
    Timer idle_timer_;
};

} // namespace netio::pubsub::inline v0_3
