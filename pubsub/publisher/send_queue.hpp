// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one peer still has to be sent, in order: frames, messages whose memory is lent, answers, and
// what is due to be told (gaps, totals), which becomes frames only when it reaches the head. It
// calls nobody: prepare() says what is to be sent next, posted() that it was, and what is not
// needed any more comes back as the cookie that it was queued with.
//
//     while (queue.prepare(limit, session.body_limit(), frame) &&
//            session.send(frame.outgoing(), frame.cookie) == Status::ok)
//         queue.posted();
//
// Every cookie comes back exactly as often as frames_for() says: from on_sent(), take_back() or
// take_rest().

#include "netio/base/slot_pool.hpp"
#include "netio/session/session.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/frames.hpp"
#include "pubsub/core/gap_ledger.hpp"
#include "pubsub/core/shares.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// A message whose memory is lent until every queue that has it gave its cookie back.
struct LentMessage {
    Fid fid{};
    std::uint8_t status = 0;
    std::uint8_t header_bytes = 0; // user header: the first bytes of the message
    std::array<std::byte, 8> header{};
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

class SendQueue {
  public:
    // How a queued item is to be treated; `amount`: what it takes of the pool that is shared.
    struct Handling {
        Cookie cookie{};
        std::size_t amount = 0;
        bool droppable = false; // may be taken back
        bool continues = false; // the rest of what the item before it begins
        bool begun = false;     // was droppable until the first of it left
    };
    void add_frame(std::uint8_t kind, std::span<const std::byte> extension, const Slice& slice,
                   const Handling& handling);
    void add_message(const LentMessage& message, const Handling& handling);
    // An answer to a request: at most 8 bytes.
    void add_answer(std::uint8_t kind, std::span<const std::byte> body);
    // The peer misses messages here. Gaps that follow one another are told together.
    void add_gap(Fid fid, std::uint64_t count);
    // Writes some of them, into the span.
    using Totals = std::function<TotalsPart(std::span<FidCount>)>;
    void add_totals(Totals totals);

    // How many frames a message takes from `offset` on.
    static std::size_t frames_for(const LentMessage& message, std::size_t body_limit,
                                  std::size_t offset = 0) noexcept;

    // The frame that is to be sent next; false: none, as nothing waits, or the fabric has as much
    // as `post_limit` allows. Without posted() the next call prepares the same one.
    bool prepare(std::size_t post_limit, std::size_t body_limit, ReadyFrame& frame);
    void posted();

    struct Returned {
        Cookie cookie{};
        std::size_t frames = 0;
    };
    // Of the frame that was sent with this cookie; frames = 0: it was the queue's own.
    Returned on_sent(Cookie cookie);
    // Takes out what entered last of what may be taken back: an item and what continues it. A gap
    // has its place, for the caller to fill with `gap`.
    struct TakenBack {
        std::vector<Cookie> cookies; // none: there is nothing to take back
        GapLedger* gap = nullptr;
    };
    TakenBack take_back();
    // Everything that is not posted; for a peer that is gone.
    std::vector<Returned> take_rest(std::size_t body_limit);

    const Holding& holding() const noexcept { return holding_; }
    bool has_drained() const noexcept { return items_.empty(); }
    std::size_t answers() const noexcept { return answers_; }
    // Changes whenever the peer has taken something.
    std::uint64_t progress() const noexcept { return progress_; }
    // Calls visit(cookie, amount) for each item that nothing can bring back: it is posted, or,
    // where the rest may be dropped, belongs to a message that has begun to leave.
    template <class Visit>
    void for_each_kept(Visit visit) const {
        for (std::uint32_t i = 0; i < posted_.end(); ++i)
            if (posted_[i].amount > 0) visit(posted_[i].cookie, posted_[i].amount);
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

  private:
    enum class Kind : std::uint8_t { frame, message, answer, gap, totals };
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
        Totals totals;
    };
    struct Posted {
        Cookie cookie{};
        std::size_t amount = 0;
        std::size_t frames = 0;   // 0: the queue's own
        std::uint32_t counts = 0; // the bit of its list of counts
    };

    Item& add(Kind kind);
    void hold(Item& item, const Handling& handling);
    void prepare_message(const Item& item, std::size_t body_limit, ReadyFrame& frame);
    bool prepare_counts(Item& item, std::size_t body_limit, ReadyFrame& frame);
    void fill_telling(Item& item, std::size_t at_most);
    bool is_told(const Item& item) const noexcept;
    void keep_head_for_good();

    std::deque<Item> items_;
    Holding holding_;
    std::size_t answers_ = 0;
    std::uint64_t progress_ = 0;
    SlotPool<Posted> posted_;
    // The frame that was prepared last: what it will be when it is posted, how many bytes of a
    // message or counts of a list it has, and its number.
    Posted next_;
    std::size_t part_ = 0;
    std::optional<std::uint32_t> slot_;
    // The list that is being told: gaps, or some of the totals.
    std::vector<FidCount> telling_;
    std::size_t told_ = 0;
    bool last_totals_ = false;                        // telling_ are the last of them
    std::unique_ptr<RegisteredBuffer> counts_memory_; // of a few lists under way, made at first use
    std::uint32_t counts_used_ = 0;                   // a bit for each
};

} // namespace netio::pubsub::inline v0_2
