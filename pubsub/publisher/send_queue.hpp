// SPDX-License-Identifier: Apache-2.0
#pragma once

// The queue of one subscriber: pages, messages whose memory is borrowed, replies, and counts (gaps,
// totals, positions), in order. Counts are written into frames only when they reach the head.
//
//     while (queue.prepare(room, frame) &&
//            session.send(frame.outgoing(), frame.cookie) == Status::ok)
//         queue.posted();
//
// The queue makes no calls. prepare() returns the next frame and posted() removes it; an item that
// is not needed any more is returned by the cookie it was queued with. Small messages that wait one
// after another are copied into one frame; pages share a frame without a copy, and are one page to
// the peer. Every cookie is returned exactly as often as frames_for() reports: by on_sent(),
// take_back() or take_rest().

#include "netio/base/check.hpp"
#include "netio/base/ring_queue.hpp"
#include "netio/base/slot_pool.hpp"
#include "netio/base/time.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/session/frames.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/publication_outcome.hpp"
#include "pubsub/core/wire.hpp"
#include "pubsub/publisher/backpressure.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// --- messages whose memory is borrowed ------------------------------------------------------

// Borrowed until every queue that holds it has returned its cookie.
struct ZeroCopyMessage {
    Fid fid{};
    std::uint8_t status = 0;
    std::uint8_t header_bytes = 0; // time stamp and user header: the first bytes of the message
    std::array<std::byte, 16> header{};
    std::uint32_t number = 0; // distinguishes consecutive fragmented messages
    std::size_t slice_count = 0;
    std::array<Slice, slice_limit> slices;
    std::size_t total_bytes = 0; // header and slices
};

// A frame that is ready to be sent.
struct ReadyFrame {
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::size_t extension_bytes = 0;
    std::size_t slice_count = 0;
    std::optional<Cookie> cookie;
    std::array<std::byte, frame_extension_limit> extension;
    std::array<Slice, slice_limit> slices;

    OutgoingFrame outgoing() const {
        return {.kind = kind,
                .flags = flags,
                .extension = std::span{extension}.first(extension_bytes),
                .slices = std::span{slices}.first(slice_count)};
    }
};

// Whether the message fits into one frame to a peer whose frames have `body_limit` bytes.
bool fits_one_frame(const ZeroCopyMessage& message, std::size_t body_limit) noexcept;
// The number of frames from `offset` on.
std::size_t frames_for(const ZeroCopyMessage& message, std::size_t body_limit,
                       std::size_t offset = 0) noexcept;
// Fills the frame with the whole message, or with the fragment from `offset` on. Returns the number
// of message bytes in it.
std::size_t fill_frame(const ZeroCopyMessage& message, std::size_t body_limit, std::size_t offset,
                       ReadyFrame& frame);
// Copies total_bytes.
void copy_message(const ZeroCopyMessage& message, std::byte* out) noexcept;

// Copies small messages that wait for the same peer into one page: for these a frame costs more
// than the copy, and a peer has a limited number of receive buffers. A message that need not wait
// is not copied.
//
//     if (batcher.begin(body_limit)) {
//         while (there is one && batcher.append(message, held)) ...
//         send batcher.page(); number = batcher.posted();
//         ... // sent: batcher.messages(number) are free
//         batcher.release(number);
//     }
//
// Without posted() the next begin() starts the same page again.
class SmallMessageBatcher {
  public:
    // Larger messages get separate frames. The kernel copies what is sent anyway; if a device reads
    // the memory itself, the copy here would be the only one.
    static constexpr std::size_t message_limit = 49152;
    static constexpr std::size_t device_message_limit = 8192;
    // Memory for one peer: at most this many pages of at most this size, allocated at first use.
    static constexpr std::size_t page_limit = 4;
    static constexpr std::size_t page_bytes = 131072;

    // While this many frames of the peer are in flight, a message waits for others until there are
    // enough bytes for a frame, even if the peer has capacity: so a burst needs few frames from its
    // beginning. try_publish() is prompt and does not wait.
    static constexpr std::size_t frames_ahead = 1;
    static constexpr std::size_t enough_bytes = 32768;

    // Whether a frame of the peer has room for several such messages.
    static bool takes(const ZeroCopyMessage& message, std::size_t body_limit,
                      bool by_device) noexcept {
        const std::size_t limit = by_device ? device_message_limit : message_limit;
        return message.total_bytes <= std::min(limit, body_limit / 3);
    }

    // What the queue keeps of a message in a page.
    struct Held {
        Cookie cookie{};
        std::size_t amount = 0;
    };

    // Returns false if all pages are in flight.
    bool begin(std::size_t body_limit);
    // Returns false if the message does not fit.
    bool append(const ZeroCopyMessage& message, const Held& held);
    std::size_t count() const noexcept { return pages_[filling_].messages.size(); }
    Slice page();
    // Call it when the page is in flight. Returns its number, which is valid until release().
    std::uint8_t posted() noexcept;
    std::span<const Held> messages(std::uint8_t number) const noexcept {
        return pages_[number].messages;
    }
    void release(std::uint8_t number) noexcept { pages_[number].in_flight = false; }

  private:
    struct Page {
        std::unique_ptr<RegisteredBuffer> memory;
        std::vector<Held> messages;
        bool in_flight = false;
    };
    std::vector<Page> pages_;
    std::uint8_t filling_ = 0;
    PageWriter writer_; // of the page that is being filled
};

// --- counts ---------------------------------------------------------------------------------

// The numbers of messages per fid that were dropped for a subscriber and not reported to it yet.
class PendingGaps {
  public:
    void add(Fid fid, std::uint64_t count) { counts_[fid] += count; }
    // Adds all counts of `other` and empties it. Costs the smaller of the two.
    void merge(PendingGaps& other) {
        if (counts_.size() < other.counts_.size()) std::swap(counts_, other.counts_);
        other.counts_.for_each([this](Fid fid, std::uint64_t count) { add(fid, count); });
        other.counts_.clear();
    }
    bool empty() const noexcept { return counts_.empty(); }
    std::size_t size() const noexcept { return counts_.size(); }

    // Removes all entries and returns them in the order of the fids.
    std::vector<FidCount> take() {
        std::vector<FidCount> counts;
        counts.reserve(counts_.size());
        counts_.for_each(
            [&](Fid fid, std::uint64_t count) { counts.push_back({.fid = fid, .count = count}); });
        counts_.clear();
        std::ranges::sort(counts, {}, &FidCount::fid);
        return counts;
    }

  private:
    FidMap<std::uint64_t> counts_;
};

// Writes some of its counts into the span.
using CountList = std::function<TotalsPart(std::span<FidCount>)>;

// Writes counts of fids into frames: gaps, and lists such as totals. A few counts fit into a
// frame's extension; more need memory of the encoder's, where a few frames may be in flight. One
// gap or list at a time: prepare() continues the one it began until posted() reports that it is
// complete.
class CountListEncoder {
  public:
    // A bit for each frame in flight that uses the memory; 0: the counts are in the extension.
    using Places = std::uint32_t;

    // Writes the next frame of the gaps; nothing precedes them in its extension. Returns nullopt if
    // the limit of frames in flight is reached.
    std::optional<Places> prepare(PendingGaps& gaps, std::size_t body_limit, ReadyFrame& frame);
    // As above, for a list, which follows the existing content of the frame's extension.
    std::optional<Places> prepare(const CountList& list, std::size_t body_limit, ReadyFrame& frame);
    // Call it when the frame of the last prepare(), which returned `place`, is in flight. Returns
    // whether it was the last frame of the list, or of the gaps if they have no new counts.
    bool posted(Places place, const PendingGaps* gaps);
    void on_sent(Places place) noexcept { used_ &= ~place; }
    // Whether some counts were taken out of the gap or list and are not in flight yet.
    bool has_begun() const noexcept { return encoded_ < counts_.size(); }

  private:
    std::size_t most(std::size_t body_limit, const ReadyFrame& frame) const noexcept;
    std::optional<Places> write(std::size_t at_most, ReadyFrame& frame);

    std::vector<FidCount> counts_;             // taken out of the gap or list
    std::size_t encoded_ = 0;                  // of these, posted
    std::size_t part_ = 0;                     // of these, prepared last
    bool list_ends_ = false;                   // after them
    std::unique_ptr<RegisteredBuffer> memory_; // allocated at first use
    Places used_ = 0;
};

// --- the order of items ---------------------------------------------------------------------

// A queue whose droppable items can be removed from anywhere, the last one first, without looking
// at or moving the items around them: memory is reclaimed in a call of the user's, however long the
// queues are. The memory of a few items is used again. An item reports in `handling` whether it
// continues the item before it.
template <class Item>
class DroppableQueue {
  public:
    static constexpr std::size_t kept_count = 64; // unused items that keep their memory
    // Stays valid until its item is removed, whatever else enters or leaves.
    using Place = typename std::list<Item>::iterator;

    std::size_t size() const noexcept { return items_.size(); }
    bool empty() const noexcept { return items_.empty(); }
    Place begin() noexcept { return items_.begin(); }
    Place end() noexcept { return items_.end(); }
    auto begin() const noexcept { return items_.begin(); }
    auto end() const noexcept { return items_.end(); }
    Item& front() noexcept { return items_.front(); }
    const Item& front() const noexcept { return items_.front(); }
    Item& back() noexcept { return items_.back(); }

    // Appends an Item{}.
    Item& emplace_back() {
        if (spare_.empty()) return items_.emplace_back();
        items_.splice(items_.end(), spare_, spare_.begin());
        return items_.back();
    }
    // Marks the last item as droppable, with the later ones that continue it.
    void mark_back() { droppable_.emplace_back() = std::prev(items_.end()); }
    // Removes the mark of the first item, which must have one.
    void unmark_front() {
        NETIO_CHECK(!droppable_.empty() && droppable_.front() == items_.begin());
        droppable_.pop_front();
    }
    // The result of unmark_last(): the item that was marked last and those that continue it; an
    // empty range if no item is marked.
    struct Taken {
        Place first;
        Place end;
    };
    Taken unmark_last() {
        if (droppable_.empty()) return {.first = items_.end(), .end = items_.end()};
        const Place first = droppable_.back();
        droppable_.pop_back();
        Place end = std::next(first);
        while (end != items_.end() && end->handling.continues)
            ++end;
        return {.first = first, .end = end};
    }
    // Removes the first item, which must not be marked. The items of erase() must not be marked
    // either.
    void pop_front() {
        NETIO_CHECK(!items_.empty());
        erase(items_.begin(), std::next(items_.begin()));
    }
    void erase(Place first, Place end) {
        while (first != end) {
            *first = Item{};
            spare_.splice(spare_.begin(), items_, first++);
            if (spare_.size() > kept_count) spare_.pop_front();
        }
    }
    void clear() { *this = {}; }

  private:
    std::list<Item> items_;
    std::list<Item> spare_;
    RingQueue<Place> droppable_; // the first item of each message, in order
};

// --- the queue ------------------------------------------------------------------------------

class SendQueue {
    struct Item;

  public:
    // How a queued item is treated; `amount`: its size in the shared pool.
    struct Handling {
        Cookie cookie{};
        std::size_t amount = 0;
        bool droppable = false; // may be taken back
        bool limited = false;   // its policy is to disconnect
        bool continues = false; // the rest of the message that an earlier item begins
        bool begun = false;     // was droppable until the first part of it was posted
        bool prompt = false;    // does not wait to share a frame
        std::uint32_t mark = 0; // the caller's; 0: none
        TimePoint since{};      // when it was queued, for the caller
    };
    void add_frame(std::uint8_t kind, std::span<const std::byte> extension, const Slice& slice,
                   const Handling& handling);
    void add_message(const ZeroCopyMessage& message, const Handling& handling);
    // Queues a reply to a request: at most 8 bytes.
    void add_answer(std::uint8_t kind, std::span<const std::byte> body);
    // Queues a gap: the peer does not get `count` messages of the fid at this position. Adjacent
    // gaps are reported together.
    void add_gap(Fid fid, std::uint64_t count);
    // Counts of fids in all gaps that wait, without those that are being sent.
    std::size_t gap_counts() const noexcept { return owed_.gap_counts; }
    // gaps_are_full(): whether the waiting gaps have reached their memory limit. Then the caller
    // must not queue more messages, so that no new gap begins after them: the last gap has at most
    // one count per fid.
    static constexpr std::size_t gap_counts_limit = 65536;
    bool gaps_are_full() const noexcept { return owed_.gap_counts >= gap_counts_limit; }
    void add_totals(CountList totals);
    struct Positions {
        PositionsExtension extension;
        std::vector<FidCount> counts;
    };
    void add_positions(Positions positions);
    // Queues a reply to a FidsQuestion. Its ranges count as waiting positions.
    void add_fids(std::uint32_t question, std::span<const FidRange> ranges);

    struct Room {
        std::size_t post_limit = 0;  // of the amounts that may be posted
        std::size_t body_limit = 0;  // of a frame
        std::size_t slice_limit = 0; // slices that are sent without a copy
        bool by_device = false;      // a device reads them: the kernel does not copy
    };
    // Writes the next frame to be sent into `frame`. Returns false if nothing waits, or if
    // Room::post_limit is reached. If posted() is not called, the next call prepares the same
    // frame.
    bool prepare(const Room& room, ReadyFrame& frame);
    void posted();

    struct Returned {
        Cookie cookie{};
        std::size_t frames = 0;
        std::optional<Fate> fate; // of the item, with its last frame; frames end in order
    };
    // Call it when the frame with this cookie was sent, or will not be sent any more. Appends the
    // items that are returned with the frame: one or several, or none if the frame was the queue's
    // own. Returns the time at which the first of these was queued.
    TimePoint on_sent(Cookie cookie, Fate fate, std::vector<Returned>& returned);
    struct TakenBack {
        std::vector<Cookie> cookies; // empty: nothing is droppable
        std::uint32_t mark = 0;      // of the first item
        PendingGaps* gap = nullptr;
        DroppableQueue<Item>::Place place; // of the gap
    };
    // Removes the droppable item that was queued last and those that continue it. A gap takes its
    // place: the caller fills `gap` and calls settle(). Gaps that become adjacent are merged, so
    // there is at most one gap more than other items.
    TakenBack take_back();
    // Call it when the gap of the last take_back() is filled. Removes the gap if it is empty.
    void settle(const TakenBack& taken);
    // Removes and returns everything that is not posted, for a peer that is gone.
    std::vector<Returned> take_rest(std::size_t body_limit);

    const QueueUsage& usage() const noexcept { return usage_; }
    bool has_drained() const noexcept { return items_.empty(); }
    // Waiting items of all kinds.
    std::size_t size() const noexcept { return items_.size(); }
    // Whether the next message waits to share a frame: a small message does while enough frames are
    // in flight. prepare() returns false until one of these is sent. So at low load nothing waits,
    // and at high load few messages need a frame of their own.
    bool should_batch(const Room& room) const noexcept {
        const std::size_t in_flight = posted_.size() - (slot_ ? 1 : 0);
        const std::size_t enough = std::min(SmallMessageBatcher::enough_bytes, room.body_limit);
        if (in_flight < SmallMessageBatcher::frames_ahead || message_bytes_ >= enough) return false;
        if (items_.empty() || items_.front().handling.prompt) return false;
        return items_.front().kind == Kind::message &&
               SmallMessageBatcher::takes(*items_.front().message, room.body_limit, room.by_device);
    }
    // Waiting items with a mark.
    std::size_t marked() const noexcept { return marked_; }
    std::size_t answers() const noexcept { return owed_.answers; }
    // Waiting positions of all requests.
    std::size_t positions() const noexcept { return owed_.positions; }
    // No further request is processed while this many positions wait.
    static constexpr std::size_t positions_limit = 65536;
    bool positions_are_full() const noexcept { return owed_.positions >= positions_limit; }
    // Changes whenever something was sent to the peer.
    std::uint64_t progress() const noexcept { return progress_; }
    // Calls visit(cookie, amount) for each item that cannot be taken back: it is posted, or belongs
    // to a droppable message that is partly posted.
    template <class Visit>
    void for_each_kept(Visit visit) const {
        for (std::uint32_t i = 0; i < posted_.end(); ++i) {
            const Posted& posted = posted_[i];
            if (posted.amount == 0) continue;
            if (!posted.is_several()) visit(posted.cookie, posted.amount);
            for (const SmallMessageBatcher::Held& held : several(posted))
                visit(held.cookie, held.amount);
        }
        for (const Item& item : items_) {
            if (!item.handling.begun) break;
            visit(item.handling.cookie, item.handling.amount);
        }
    }
    // The sum of these amounts.
    std::size_t kept() const {
        std::size_t sum = 0;
        for_each_kept([&](Cookie, std::size_t amount) { sum += amount; });
        return sum;
    }
    // The waiting rest of a message that was never droppable and is partly posted.
    std::size_t rest_of_begun() const noexcept {
        std::size_t sum = 0;
        for (const Item& item : items_) {
            const bool has_begun = &item == &items_.front() && item.offset > 0;
            if (item.handling.begun || !(item.handling.continues || has_begun)) break;
            sum += item.handling.amount;
        }
        return sum;
    }

    // Pages that share a frame.
    static constexpr std::size_t joined_limit = 8;

  private:
    enum class Kind : std::uint8_t { frame, message, answer, gap, list };
    struct Item {
        Kind kind = Kind::frame;
        std::uint8_t frame_kind = 0;
        std::uint8_t extension_bytes = 0;
        std::array<std::byte, fragment_extension_bytes> extension{};
        Slice slice;
        const ZeroCopyMessage* message = nullptr;
        std::size_t offset = 0; // bytes of the message that are posted
        Handling handling;
        std::unique_ptr<PendingGaps> gap;
        std::size_t gap_counts = 0; // of the gap, as included in Owed
        CountList list;             // totals or positions
        std::size_t positions = 0;  // in the list
    };
    struct Posted {
        Cookie cookie{};
        std::size_t amount = 0;
        std::size_t frames = 0;              // 0: the queue's own frame
        bool is_last = true;                 // of the item with this cookie
        TimePoint since{};                   // when the first item was queued
        CountListEncoder::Places counts = 0; // where its counts are
        std::optional<std::uint8_t> page;    // of several small messages
        std::uint8_t joined = 0;             // number of pages, if there are several
        std::array<SmallMessageBatcher::Held, joined_limit> pages{};

        bool is_several() const noexcept { return page || joined > 0; }
    };

    struct Owed { // waiting items that are limited
        std::size_t answers = 0;
        std::size_t positions = 0;
        std::size_t gap_counts = 0;
    };

    Item& add(Kind kind);
    void add_list(Item& item, std::vector<FidCount> list);
    void hold(Item& item, const Handling& handling);
    bool prepare_page(const Room& room, ReadyFrame& frame);
    void join_pages(const Room& room, ReadyFrame& frame);
    std::span<const SmallMessageBatcher::Held> several(const Posted& posted) const noexcept {
        if (posted.page) return batcher_.messages(*posted.page);
        return std::span{posted.pages}.first(posted.joined);
    }
    bool prepare_counts(Item& item, std::size_t body_limit, ReadyFrame& frame);
    void count_gap(Item& gap);
    void remove_gap(DroppableQueue<Item>::Place gap);
    void keep_head_for_good();
    void on_head_posted();

    DroppableQueue<Item> items_;
    SmallMessageBatcher batcher_;
    std::size_t message_bytes_ = 0; // of all waiting messages
    std::size_t marked_ = 0;
    QueueUsage usage_;
    Owed owed_;
    std::uint64_t progress_ = 0;
    SlotPool<Posted> posted_;
    // The frame that was prepared last: its record if it is posted, its bytes of a message, the
    // number of messages or pages in it, and its slot in posted_.
    Posted next_;
    std::size_t part_ = 0;
    std::size_t together_ = 0; // 0: one item alone
    std::optional<std::uint32_t> slot_;
    CountListEncoder encoder_;
};

} // namespace netio::pubsub::inline v0_3
