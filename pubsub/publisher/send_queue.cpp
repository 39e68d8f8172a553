// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/send_queue.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// Lists of counts that one peer may have under way, and their size.
constexpr unsigned counts_lists = 4;
constexpr std::size_t counts_bytes = 4096;

} // namespace

// --- entering the queue ---------------------------------------------------------------------

SendQueue::Item& SendQueue::add(Kind kind) {
    Item& item = items_.emplace_back();
    item.kind = kind;
    return item;
}

void SendQueue::hold(Item& item, const Handling& handling) {
    item.handling = handling;
    // A message is dropped whole or not at all, and the head of this one may have left already.
    const bool head_waits = items_.size() > 1 && items_[items_.size() - 2].handling.droppable;
    item.handling.begun = handling.droppable && handling.continues && !head_waits;
    if (item.handling.begun) item.handling.droppable = false;
    holding_.waiting += handling.amount;
    if (item.handling.droppable) holding_.droppable += handling.amount;
}

void SendQueue::add_frame(std::uint8_t kind, std::span<const std::byte> extension,
                          const Slice& slice, const Handling& handling) {
    Item& item = add(Kind::frame);
    item.frame_kind = kind;
    item.extension_bytes = static_cast<std::uint8_t>(extension.size());
    std::ranges::copy(extension, item.extension.begin());
    item.slice = slice;
    hold(item, handling);
}

void SendQueue::add_message(const LentMessage& message, const Handling& handling) {
    Item& item = add(Kind::message);
    item.message = &message;
    hold(item, handling);
}

void SendQueue::add_answer(std::uint8_t kind, std::span<const std::byte> body) {
    Item& item = add(Kind::answer);
    NETIO_CHECK(body.size() <= item.extension.size());
    item.frame_kind = kind;
    item.extension_bytes = static_cast<std::uint8_t>(body.size());
    std::ranges::copy(body, item.extension.begin());
    ++answers_;
}

void SendQueue::add_gap(Fid fid, std::uint64_t count) {
    if (items_.empty() || items_.back().kind != Kind::gap) {
        add(Kind::gap).gap = std::make_unique<GapLedger>();
    }
    items_.back().gap->add(fid, count);
}

void SendQueue::add_totals(Totals totals) {
    add(Kind::totals).totals = std::move(totals);
}

// --- leaving it -----------------------------------------------------------------------------

std::size_t SendQueue::frames_for(const LentMessage& message, std::size_t body_limit,
                                  std::size_t offset) noexcept {
    if (message.total_bytes + message_extension_bytes <= body_limit) return 1;
    const std::size_t per_frame = body_limit - fragment_extension_bytes;
    return (message.total_bytes - offset + per_frame - 1) / per_frame;
}

bool SendQueue::prepare(std::size_t post_limit, std::size_t body_limit, ReadyFrame& frame) {
    if (items_.empty()) return false;
    Item& item = items_.front();
    const Handling& handling = item.handling;
    const bool first_of_all = holding_.posted == 0;
    if (!first_of_all && handling.amount > 0 && holding_.posted + handling.amount > post_limit) {
        return false;
    }
    next_ = {.cookie = handling.cookie, .amount = handling.amount, .frames = 1};
    frame.flags = 0;
    frame.cookie.reset();
    switch (item.kind) {
    case Kind::frame:
    case Kind::answer:
        frame.kind = item.frame_kind;
        frame.extension_bytes = item.extension_bytes;
        std::copy_n(item.extension.begin(), item.extension_bytes, frame.extension.begin());
        frame.slice_count = item.kind == Kind::frame ? 1 : 0;
        frame.slices[0] = item.slice;
        break;
    case Kind::message:
        prepare_message(item, body_limit, frame);
        break;
    case Kind::gap:
    case Kind::totals:
        if (!prepare_counts(item, body_limit, frame)) return false;
        break;
    }
    const bool ours = item.kind != Kind::frame && item.kind != Kind::message;
    if (ours && next_.counts == 0) return true; // nobody asks what became of it
    if (ours) next_.frames = 0;
    if (!slot_) slot_ = posted_.take({});
    frame.cookie = Cookie{*slot_};
    return true;
}

// One frame of a message: all of it, or the next fragment.
void SendQueue::prepare_message(const Item& item, std::size_t body_limit, ReadyFrame& frame) {
    const LentMessage& message = *item.message;
    const bool whole = message.total_bytes + message_extension_bytes <= body_limit;
    if (whole) {
        part_ = message.total_bytes;
        frame.kind = message_kind;
        frame.extension_bytes =
            encode(MessageExtension{.fid = message.fid, .status = message.status}, frame.extension);
    } else {
        part_ = std::min(body_limit - fragment_extension_bytes, message.total_bytes - item.offset);
        frame.kind = fragment_kind;
        frame.extension_bytes =
            encode(FragmentExtension{.fid = message.fid,
                                     .message_number = message.number,
                                     .offset = static_cast<std::uint32_t>(item.offset),
                                     .total = static_cast<std::uint32_t>(message.total_bytes),
                                     .status = message.status},
                   frame.extension);
    }
    if (item.offset + part_ < message.total_bytes) next_.amount = 0; // that of the last one
    // The user header is the beginning of the message; it is copied, all else is lent.
    std::size_t skip = item.offset;
    std::size_t left = part_;
    if (skip < message.header_bytes) {
        const std::size_t bytes = std::min<std::size_t>(message.header_bytes - skip, left);
        std::copy_n(message.header.begin() + static_cast<std::ptrdiff_t>(skip), bytes,
                    frame.extension.begin() + static_cast<std::ptrdiff_t>(frame.extension_bytes));
        frame.extension_bytes += bytes;
        left -= bytes;
        skip = 0;
    } else {
        skip -= message.header_bytes;
    }
    frame.slice_count = 0;
    for (std::size_t i = 0; i < message.slice_count && left > 0; ++i) {
        Slice slice = message.slices[i];
        if (skip >= slice.size) {
            skip -= slice.size;
            continue;
        }
        slice.data += skip;
        slice.size = std::min(slice.size - skip, left);
        skip = 0;
        left -= slice.size;
        frame.slices[frame.slice_count++] = slice;
    }
}

// What is to be told next, if nothing is left of what was taken out last.
void SendQueue::fill_telling(Item& item, std::size_t at_most) {
    if (told_ < telling_.size() || last_totals_) return;
    told_ = 0;
    if (item.kind == Kind::gap) {
        telling_ = item.gap->take();
        return;
    }
    telling_.resize(at_most);
    const TotalsPart part = item.totals(telling_);
    telling_.resize(part.count);
    last_totals_ = part.last;
}

// One frame of gaps or totals. False: all lists that may be under way are.
bool SendQueue::prepare_counts(Item& item, std::size_t body_limit, ReadyFrame& frame) {
    const std::size_t most = std::min(counts_bytes, body_limit) / fid_count_bytes;
    fill_telling(item, most);
    part_ = std::min(most, telling_.size() - told_);
    const auto list = std::span{telling_}.subspan(told_, part_);
    const bool last = told_ + part_ == telling_.size();
    frame.kind = item.kind == Kind::gap ? gap_kind : totals_kind;
    if (item.kind == Kind::totals && !(last && last_totals_)) frame.flags = more_flag;
    frame.extension_bytes = 0;
    frame.slice_count = 0;
    if (list.size_bytes() <= frame.extension.size()) {
        frame.extension_bytes = encode(list, frame.extension);
        return true;
    }
    const auto free = static_cast<unsigned>(std::countr_one(counts_used_));
    if (free >= counts_lists) return false;
    if (!counts_memory_) {
        counts_memory_ =
            std::make_unique<RegisteredBuffer>(counts_lists * counts_bytes, Access::send);
    }
    const Slice memory = counts_memory_->slice(free * counts_bytes, counts_bytes);
    const std::size_t bytes = encode(list, {memory.data, memory.size});
    frame.slices[0] = {memory.buffer, memory.data, bytes};
    frame.slice_count = 1;
    next_.counts = 1U << free;
    return true;
}

bool SendQueue::is_told(const Item& item) const noexcept {
    return told_ == telling_.size() && (item.gap ? item.gap->empty() : last_totals_);
}

void SendQueue::posted() {
    Item& item = items_.front();
    const bool ours = item.kind != Kind::frame && item.kind != Kind::message;
    if (!ours || next_.counts != 0) posted_[*std::exchange(slot_, std::nullopt)] = next_;
    bool done = true;
    switch (item.kind) {
    case Kind::answer:
        --answers_;
        break;
    case Kind::gap:
    case Kind::totals:
        counts_used_ |= next_.counts;
        told_ += part_;
        done = is_told(item);
        if (done) last_totals_ = false;
        break;
    case Kind::frame:
    case Kind::message:
        keep_head_for_good();
        item.offset += part_;
        done = item.kind == Kind::frame || item.offset >= item.message->total_bytes;
        if (!done) break;
        holding_.waiting -= item.handling.amount;
        holding_.posted += item.handling.amount;
        break;
    }
    if (done) items_.pop_front();
}

// An item that has begun to leave, and what continues it, is not taken back any more.
void SendQueue::keep_head_for_good() {
    std::size_t i = 0;
    do {
        Handling& handling = items_[i].handling;
        if (!handling.droppable) return;
        handling.droppable = false;
        handling.begun = true;
        holding_.droppable -= handling.amount;
        ++i;
    } while (i < items_.size() && items_[i].handling.continues);
}

// --- coming back ----------------------------------------------------------------------------

SendQueue::Returned SendQueue::on_sent(Cookie cookie) {
    const Posted posted = posted_.release(static_cast<std::uint32_t>(cookie));
    ++progress_;
    counts_used_ &= ~posted.counts;
    holding_.posted -= posted.amount;
    return {.cookie = posted.cookie, .frames = posted.frames};
}

SendQueue::TakenBack SendQueue::take_back() {
    TakenBack taken;
    std::size_t end = items_.size();
    std::size_t first = 0;
    for (;; end = first) {
        if (end == 0) return taken;
        for (first = end - 1; first > 0 && items_[first].handling.continues;)
            --first;
        if (items_[first].handling.droppable) break;
    }
    for (std::size_t i = first; i < end; ++i) {
        const Handling& handling = items_[i].handling;
        taken.cookies.push_back(handling.cookie);
        holding_.waiting -= handling.amount;
        holding_.droppable -= handling.amount;
    }
    const auto is_gap = [&](std::size_t i) {
        return i < items_.size() && items_[i].kind == Kind::gap;
    };
    const auto at = items_.begin() + static_cast<std::ptrdiff_t>(first);
    if (is_gap(end)) {
        taken.gap = items_[end].gap.get();
        items_.erase(at, items_.begin() + static_cast<std::ptrdiff_t>(end));
        return taken;
    }
    items_.erase(at + 1, items_.begin() + static_cast<std::ptrdiff_t>(end));
    if (first > 0 && is_gap(first - 1)) {
        taken.gap = items_[first - 1].gap.get();
        items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(first));
        return taken;
    }
    Item gap;
    gap.kind = Kind::gap;
    gap.gap = std::make_unique<GapLedger>();
    taken.gap = gap.gap.get();
    items_[first] = std::move(gap);
    return taken;
}

std::vector<SendQueue::Returned> SendQueue::take_rest(std::size_t body_limit) {
    std::vector<Returned> rest;
    for (const Item& item : std::exchange(items_, {})) {
        if (item.kind == Kind::frame) rest.push_back({.cookie = item.handling.cookie, .frames = 1});
        if (item.kind == Kind::message) {
            rest.push_back({.cookie = item.handling.cookie,
                            .frames = frames_for(*item.message, body_limit, item.offset)});
        }
    }
    holding_.waiting = holding_.droppable = 0;
    answers_ = 0;
    return rest;
}

} // namespace netio::pubsub::inline v0_2
