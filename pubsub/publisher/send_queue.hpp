// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one peer still has to be sent, in order: frames, messages whose memory is lent, answers, and
// what is due to be told (gaps, totals), which becomes frames only when it reaches the head. It
// calls nobody: prepare() says what is to be sent next, posted() that it was, and what is not
// needed any more comes back as the cookie that it was queued with.
//
//     while (queue.prepare(room, frame) &&
//            session.send(frame.outgoing(), frame.cookie) == Status::ok)
//         queue.posted();
//
// Small messages that wait behind one another are gathered into one frame; so are pages, which lie
// side by side in it, where they are, and are one page to the peer. Every cookie comes back exactly
// as often as frames_for() says: from on_sent(), take_back() or take_rest().

#include "netio/base/slot_pool.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/frames.hpp"
#include "pubsub/core/gap_ledger.hpp"
#include "pubsub/core/publication_outcome.hpp"
#include "pubsub/core/shares.hpp"
#include "pubsub/publisher/count_frames.hpp"
#include "pubsub/publisher/droppable_queue.hpp"
#include "pubsub/publisher/gathering.hpp"
#include "pubsub/publisher/lent_message.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class SendQueue {
    struct Item;

  public:
    // How a queued item is to be treated; `amount`: what it takes of the pool that is shared.
    struct Handling {
        Cookie cookie{};
        std::size_t amount = 0;
        bool droppable = false; // may be taken back
        bool limited = false;   // waits for so long only as its policy allows
        bool continues = false; // the rest of what the item before it begins
        bool begun = false;     // was droppable until the first of it left
        bool prompt = false;    // does not wait for others to leave with
        std::uint32_t mark = 0; // the caller's; 0: none
        TimePoint since{};      // when it entered, for the caller
    };
    void add_frame(std::uint8_t kind, std::span<const std::byte> extension, const Slice& slice,
                   const Handling& handling);
    void add_message(const LentMessage& message, const Handling& handling);
    // An answer to a request: at most 8 bytes.
    void add_answer(std::uint8_t kind, std::span<const std::byte> body);
    // The peer misses messages here. Gaps that follow one another are told together.
    void add_gap(Fid fid, std::uint64_t count);
    // Counts of fids in all gaps that wait, apart from those already being sent.
    std::size_t gap_counts() const noexcept { return owed_.gap_counts; }
    // The gaps that wait need as much memory as they may. The caller must not queue more messages,
    // so that no new gap begins after them: the last gap has one count per fid at most.
    static constexpr std::size_t gap_counts_limit = 65536;
    bool gaps_are_full() const noexcept { return owed_.gap_counts >= gap_counts_limit; }
    void add_totals(CountList totals);
    struct Positions {
        PositionsExtension extension;
        std::vector<FidCount> counts;
    };
    void add_positions(Positions positions);
    // An answer to a FidsQuestion. Its ranges count among the positions that wait.
    void add_fids(std::uint32_t question, std::span<const FidRange> ranges);

    struct Room {
        std::size_t post_limit = 0;  // of what the fabric may have, in the items' amounts
        std::size_t body_limit = 0;  // of a frame
        std::size_t slice_limit = 0; // of those that leave from where they lie
        bool by_device = false;      // a device reads them there: no kernel copies
    };
    // The frame that is to be sent next; false: none, as nothing waits, or the fabric has as much
    // as it may. Without posted() the next call prepares the same one.
    bool prepare(const Room& room, ReadyFrame& frame);
    void posted();

    struct Returned {
        Cookie cookie{};
        std::size_t frames = 0;
        std::optional<Fate> fate; // of the item, with its last frame; as those end in order
    };
    // The frame that was sent with this cookie, or never will be: appends what comes back with it,
    // one or several; nothing if it was the queue's own. When the first of it entered.
    TimePoint on_sent(Cookie cookie, Fate fate, std::vector<Returned>& returned);
    // Takes out what entered last of what may be taken back: an item and what continues it. A gap
    // has its place, for the caller to fill with `gap`; settle() must follow. Gaps that come to
    // follow one another become one, so there are never more gaps than other items and one.
    struct TakenBack {
        std::vector<Cookie> cookies; // none: there is nothing to take back
        std::uint32_t mark = 0;      // that the first of them came with
        GapLedger* gap = nullptr;
        DroppableQueue<Item>::Place place; // of the gap
    };
    TakenBack take_back();
    // The caller has filled the gap of what was taken back last. An empty gap is removed.
    void settle(const TakenBack& taken);
    // Everything that is not posted; for a peer that is gone.
    std::vector<Returned> take_rest(std::size_t body_limit);

    const Holding& holding() const noexcept { return holding_; }
    bool has_drained() const noexcept { return items_.empty(); }
    // Entries that wait, of all kinds.
    std::size_t size() const noexcept { return items_.size(); }
    // A small message waits for others to leave with while enough is under way: when some of that
    // is sent, prepare() is due again, and is in vain before. So nothing waits at low load, and at
    // high load few cost a frame each.
    bool waits_for_company(const Room& room) const noexcept {
        const std::size_t under_way = posted_.size() - (slot_ ? 1 : 0);
        const std::size_t enough = std::min(Gathering::enough_bytes, room.body_limit);
        if (under_way < Gathering::frames_ahead || message_bytes_ >= enough) return false;
        if (items_.empty() || items_.front().handling.prompt) return false;
        return items_.front().kind == Kind::message &&
               Gathering::takes(*items_.front().message, room.body_limit, room.by_device);
    }
    // Items with a mark that wait.
    std::size_t marked() const noexcept { return marked_; }
    std::size_t answers() const noexcept { return owed_.answers; }
    // Positions that wait, of all requests.
    std::size_t positions() const noexcept { return owed_.positions; }
    // As many positions wait as may before those of one more request are added.
    static constexpr std::size_t positions_limit = 65536;
    bool positions_are_full() const noexcept { return owed_.positions >= positions_limit; }
    // Changes whenever the peer has taken something.
    std::uint64_t progress() const noexcept { return progress_; }
    // Calls visit(cookie, amount) for each item that nothing can bring back: it is posted, or,
    // where the rest may be dropped, belongs to a message that has begun to leave.
    template <class Visit>
    void for_each_kept(Visit visit) const {
        for (std::uint32_t i = 0; i < posted_.end(); ++i) {
            const Posted& posted = posted_[i];
            if (posted.amount == 0) continue;
            if (!posted.is_several()) visit(posted.cookie, posted.amount);
            for (const Gathering::Held& held : several(posted))
                visit(held.cookie, held.amount);
        }
        for (const Item& item : items_) {
            if (!item.handling.begun) break;
            visit(item.handling.cookie, item.handling.amount);
        }
    }
    // The sum of it.
    std::size_t kept() const {
        std::size_t sum = 0;
        for_each_kept([&](Cookie, std::size_t amount) { sum += amount; });
        return sum;
    }
    // What else waits of a message that has begun to leave: nobody may take it back.
    std::size_t rest_of_begun() const noexcept {
        std::size_t sum = 0;
        for (const Item& item : items_) {
            const bool has_begun = &item == &items_.front() && item.offset > 0;
            if (item.handling.begun || !(item.handling.continues || has_begun)) break;
            sum += item.handling.amount;
        }
        return sum;
    }

    // Pages that leave together.
    static constexpr std::size_t joined_limit = 8;

  private:
    enum class Kind : std::uint8_t { frame, message, answer, gap, list };
    struct Item {
        Kind kind = Kind::frame;
        std::uint8_t frame_kind = 0;
        std::uint8_t extension_bytes = 0;
        std::array<std::byte, fragment_extension_bytes> extension{};
        Slice slice;
        const LentMessage* message = nullptr;
        std::size_t offset = 0; // of the message: what has been sent
        Handling handling;
        std::unique_ptr<GapLedger> gap;
        std::size_t gap_counts = 0; // of the gap, as included in Owed
        CountList list;             // totals or positions
        std::size_t positions = 0;  // of those
    };
    struct Posted {
        Cookie cookie{};
        std::size_t amount = 0;
        std::size_t frames = 0;           // 0: the queue's own
        bool is_last = true;              // of what is sent with this cookie
        TimePoint since{};                // when the first of it entered
        CountFrames::Places counts = 0;   // where its counts lie
        std::optional<std::uint8_t> page; // several messages, gathered
        std::uint8_t joined = 0;          // or so many pages
        std::array<Gathering::Held, joined_limit> pages{};

        bool is_several() const noexcept { return page || joined > 0; }
    };

    struct Owed { // of what waits
        std::size_t answers = 0;
        std::size_t positions = 0;
        std::size_t gap_counts = 0;
    };

    Item& add(Kind kind);
    void add_list(Item& item, std::vector<FidCount> list);
    void hold(Item& item, const Handling& handling);
    bool prepare_page(const Room& room, ReadyFrame& frame);
    void join_pages(const Room& room, ReadyFrame& frame);
    std::span<const Gathering::Held> several(const Posted& posted) const noexcept {
        if (posted.page) return gathering_.messages(*posted.page);
        return std::span{posted.pages}.first(posted.joined);
    }
    bool prepare_counts(Item& item, std::size_t body_limit, ReadyFrame& frame);
    void count_gap(Item& gap);
    void remove_gap(DroppableQueue<Item>::Place gap);
    void keep_head_for_good();
    void on_head_posted();

    DroppableQueue<Item> items_;
    Gathering gathering_;
    std::size_t message_bytes_ = 0; // of all that wait
    std::size_t marked_ = 0;
    Holding holding_;
    Owed owed_;
    std::uint64_t progress_ = 0;
    SlotPool<Posted> posted_;
    // The frame that was prepared last: what it will be when it is posted, how many bytes of a
    // message it has, how many messages or pages are together in it, and its number.
    Posted next_;
    std::size_t part_ = 0;
    std::size_t together_ = 0; // 0: one alone
    std::optional<std::uint32_t> slot_;
    CountFrames telling_;
};

} // namespace netio::pubsub::inline v0_2
