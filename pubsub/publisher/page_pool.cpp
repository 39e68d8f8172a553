// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/page_pool.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace netio::pubsub::inline v0_3 {
namespace {

// The defaults of limit_of(). If the publisher waits for a subscriber, with a larger queue pages
// would only leave the processor's cache between being written and being sent. If it drops, the
// queue is the pause that a subscriber survives without loss.
constexpr std::size_t blocking_limit_bytes = std::size_t{1} << 20;
constexpr std::size_t dropping_limit_bytes = std::size_t{4} << 20;

// A subscriber receives the first part of a large page while the rest is filled. The page and its
// headers fit into one segment of the kernel's, which has 65,483 bytes on loopback: a second
// segment, however short, wakes the subscriber once more.
constexpr std::size_t early_page_bytes = 65'408;

} // namespace

PageBudget::PageBudget(const Options& options)
    : page_bytes_{options.page_size_bytes}, watermark_bytes_{options.watermark_bytes == 0
                                                                 ? page_bytes_
                                                                 : options.watermark_bytes},
      early_bytes_{options.watermark_bytes == 0 ? std::min(page_bytes_, early_page_bytes)
                                                : page_bytes_},
      queue_limit_bytes_{options.queue_limit_bytes} {
    require_between("page_size_bytes", options.page_size_bytes, 256, netio::page::message_limit);
    require_between("page_count", options.page_count, 2, std::size_t{1} << 20);
    pool_ = ByteArena::rounded(page_bytes_) * options.page_count;
    require_option(queue_limit_bytes_ <= pool_ / 2,
                   "queue_limit_bytes is " + std::to_string(queue_limit_bytes_) +
                       "; one stopped subscriber must not keep more than half of the memory from "
                       "the others, which is page_size_bytes * page_count = " +
                       std::to_string(pool_) + " bytes");
    require_between("watermark_bytes", options.watermark_bytes, 0, page_bytes_);
    // The fragments of a large message may use all memory except one page, which other groups may
    // hold.
    message_limit_ =
        std::min(options.largest_message_bytes, (options.page_count - 1) * page_bytes_);
}

std::size_t PageBudget::set_aside() const noexcept {
    return std::max(page_bytes_, pool_ / 4);
}

std::size_t PageBudget::limit_of(SlowPolicy policy) const noexcept {
    if (queue_limit_bytes_ > 0) return queue_limit_bytes_;
    const std::size_t usual =
        policy == SlowPolicy::drop ? dropping_limit_bytes : blocking_limit_bytes;
    return std::min(pool_ / 2, std::max(4 * page_bytes_, usual));
}

Admit PageBudget::admit(const QueueUsage& usage, SlowPolicy policy, const MemoryBudget& budget,
                        const Offer& offer) const noexcept {
    const std::size_t held = usage.all();
    const std::size_t most = std::max<std::size_t>(1, budget.allowance(limit_of(policy)));
    const bool has_room =
        held < most && (!offer.is_large || held == 0 || held + offer.bytes <= pool_ / 2);
    if (may_drop(policy)) return has_room ? Admit::enqueue : Admit::drop;
    const bool may_wait =
        !offer.is_confined || held + offer.bytes <= budget.waiting_limit(offer.free);
    return has_room && may_wait ? Admit::enqueue : Admit::block;
}

// --- ByteArena --------------------------------------------------------------------------------

ByteArena::ByteArena(std::size_t bytes) : free_bytes_{bytes / grain * grain} {
    if (free_bytes_ > 0) holes_.push_back({.offset = 0, .size = free_bytes_});
}

std::optional<ByteArena::Piece> ByteArena::take(std::size_t least, std::size_t most) {
    least = rounded(least);
    most = std::max(least, rounded(most));
    auto best = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
        if (hole->size >= most) {
            best = hole;
            break;
        }
        if (hole->size >= least && (best == holes_.end() || hole->size > best->size)) best = hole;
    }
    if (best == holes_.end()) return std::nullopt;
    const Piece piece{.offset = best->offset, .size = std::min(most, best->size)};
    best->offset += piece.size;
    best->size -= piece.size;
    if (best->size == 0) holes_.erase(best);
    free_bytes_ -= piece.size;
    return piece;
}

void ByteArena::shorten(Piece& piece, std::size_t size) {
    size = rounded(size);
    if (size >= piece.size) return;
    release({.offset = piece.offset + size, .size = piece.size - size});
    piece.size = size;
}

bool ByteArena::extend(Piece& piece, std::size_t size) {
    size = rounded(size);
    if (size <= piece.size) return true;
    const std::size_t more = size - piece.size;
    const std::size_t end = piece.offset + piece.size;
    const auto hole = std::ranges::lower_bound(holes_, end, {}, &Piece::offset);
    if (hole == holes_.end() || hole->offset != end || hole->size < more) return false;
    hole->offset += more;
    hole->size -= more;
    if (hole->size == 0) holes_.erase(hole);
    piece.size = size;
    free_bytes_ -= more;
    return true;
}

void ByteArena::release(const Piece& piece) {
    if (piece.size == 0) return;
    const auto next = std::ranges::lower_bound(holes_, piece.offset, {}, &Piece::offset);
    const std::size_t end = piece.offset + piece.size;
    NETIO_CHECK(next == holes_.end() || end <= next->offset);
    free_bytes_ += piece.size;
    const bool joins_next = next != holes_.end() && next->offset == end;
    const bool joins_last =
        next != holes_.begin() && std::prev(next)->offset + std::prev(next)->size == piece.offset;
    if (joins_last) {
        std::prev(next)->size += piece.size + (joins_next ? next->size : 0);
        if (joins_next) holes_.erase(next);
    } else if (joins_next) {
        next->offset = piece.offset;
        next->size += piece.size;
    } else {
        holes_.insert(next, piece);
    }
}

// --- PageStore --------------------------------------------------------------------------------

std::optional<std::uint32_t> PageStore::open(std::size_t least, std::size_t most) {
    const auto piece = arena_.take(least, most);
    if (!piece) return std::nullopt;
    return pages_.take({.piece = *piece, .users = 1});
}

std::vector<std::uint32_t> PageStore::open_for(std::size_t bytes, std::size_t least,
                                               std::size_t most) {
    std::vector<std::uint32_t> pages;
    while (bytes > 0) {
        const std::size_t part = std::min(bytes, most);
        const auto page = open(std::min(least, part), part);
        if (!page) {
            for (const std::uint32_t taken : pages)
                abandon(taken);
            return {};
        }
        pages.push_back(*page);
        bytes -= std::min(part, memory(*page).size());
    }
    return pages;
}

void PageStore::seal(std::uint32_t page, std::size_t bytes, Contents contents,
                     const Fragment& fragment, MemoryBudget& budget) {
    Page& it = pages_[page];
    arena_.shorten(it.piece, bytes);
    it.bytes = bytes;
    it.contents = contents;
    it.fragment = fragment;
    budget.use(it.piece.size);
}

void PageStore::release(std::uint32_t page, MemoryBudget& budget) {
    Page& it = pages_[page];
    NETIO_CHECK(it.users > 0);
    if (--it.users > 0) return;
    budget.release(it.piece.size);
    arena_.release(pages_.release(page).piece);
}

// --- OpenPages --------------------------------------------------------------------------------

bool OpenPages::open(Group& group, std::size_t record_bytes, std::size_t most) {
    const std::size_t part = limits_.set_aside() / (pages_.size() + 1);
    const std::size_t whole =
        std::max(record_bytes, std::min({limits_.page_size_bytes(), most, part}));
    const std::size_t bytes = std::max(record_bytes, std::min(whole, limits_.early_bytes()));
    auto page = store_.open(record_bytes, bytes);
    if (!page) {
        // Groups with few messages must not occupy memory that others need.
        shrink(part);
        page = store_.open(record_bytes, bytes);
    }
    if (!page) {
        shrink(0);
        page = store_.open(record_bytes, bytes);
    }
    if (!page) return false;
    const std::size_t room = std::min(store_.memory(*page).size(), bytes);
    group.place =
        pages_.take({.group = &group, .page = *page, .bytes = room, .most = std::max(room, whole)});
    group.writer = PageWriter{store_.memory(*page)};
    return true;
}

bool OpenPages::fill_further(const Group& group) {
    Open& open = pages_[static_cast<std::uint32_t>(group.place)];
    // open() has limited `most` by the memory that was free then.
    const std::size_t bytes = std::min(open.most, open.bytes + limits_.early_bytes());
    if (bytes == open.bytes || !store_.extend(open.page, bytes)) return false;
    open.bytes = bytes;
    limit_writer(open);
    return true;
}

std::byte* OpenPages::append(Group& group, Fid fid, std::uint8_t status, std::size_t bytes) {
    const Open& open = pages_[static_cast<std::uint32_t>(group.place)];
    group.writer.resize(open.bytes);
    std::byte* const out = group.writer.append(fid, status, bytes);
    limit_writer(open);
    return out;
}

// The record that reaches the watermark must go through append(), after which the page is sent.
void OpenPages::limit_writer(const Open& open) noexcept {
    open.group->writer.resize(std::min(open.bytes, limits_.watermark_bytes() - 1));
}

OpenPages::Filled OpenPages::take(std::size_t place) {
    const Open open = pages_.release(static_cast<std::uint32_t>(place));
    Group& group = *open.group;
    group.place = Group::nowhere;
    const std::size_t used = group.writer.used();
    group.writer = PageWriter{};
    return {.page = open.page, .bytes = used, .group = &group};
}

std::vector<std::uint32_t> OpenPages::take_pages(std::size_t bytes) {
    shrink(0);
    // Free memory may be fragmented into pieces that are too small for a frame.
    for (const std::size_t smallest : {std::size_t{1024}, std::size_t{64}}) {
        std::vector<std::uint32_t> pages =
            store_.open_for(bytes, smallest, limits_.page_size_bytes());
        if (!pages.empty()) return pages;
    }
    return {};
}

std::size_t OpenPages::free(std::size_t unsealed) {
    // To half of their part, so that the next pages have space and do not all come here again.
    if (store_.free() < limits_.pool() / 2 && store_.free() + limits_.set_aside() < unsealed)
        shrink(limits_.set_aside() / (2 * pages_.size()));
    return store_.free();
}

void OpenPages::shrink(std::size_t bytes) {
    for_each([&](std::uint32_t place) {
        Open& open = pages_[place];
        const std::size_t kept = ByteArena::rounded(std::max(bytes, open.group->writer.used()));
        if (kept >= store_.size(open.page)) return;
        store_.shorten(open.page, kept);
        open.bytes = std::min(open.bytes, kept);
        open.most = open.bytes;
        limit_writer(open);
    });
}

} // namespace netio::pubsub::inline v0_3
