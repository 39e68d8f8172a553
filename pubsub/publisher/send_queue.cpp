// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/send_queue.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_2 {

// --- entering the queue ---------------------------------------------------------------------

SendQueue::Item& SendQueue::add(Kind kind) {
    Item& item = items_.emplace_back();
    item.kind = kind;
    return item;
}

void SendQueue::hold(Item& item, const Handling& handling) {
    item.handling = handling;
    // A message is dropped whole or not at all, and the head of this one may have left already.
    const bool head_waits = items_.size() > 1 && std::prev(items_.end(), 2)->handling.droppable;
    item.handling.begun = handling.droppable && handling.continues && !head_waits;
    if (item.handling.begun) item.handling.droppable = false;
    holding_.waiting += handling.amount;
    if (handling.mark != 0) ++marked_;
    if (handling.limited) holding_.limited += handling.amount;
    if (!item.handling.droppable) return;
    holding_.droppable += handling.amount;
    if (!handling.continues) items_.mark_back();
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
    message_bytes_ += message.total_bytes;
    hold(item, handling);
}

void SendQueue::add_answer(std::uint8_t kind, std::span<const std::byte> body) {
    Item& item = add(Kind::answer);
    NETIO_CHECK(body.size() <= item.extension.size());
    item.frame_kind = kind;
    item.extension_bytes = static_cast<std::uint8_t>(body.size());
    std::ranges::copy(body, item.extension.begin());
    ++owed_.answers;
}

void SendQueue::add_gap(Fid fid, std::uint64_t count) {
    if (items_.empty() || items_.back().kind != Kind::gap) {
        add(Kind::gap).gap = std::make_unique<GapLedger>();
    }
    items_.back().gap->add(fid, count);
    count_gap(items_.back());
}

// The counts of this gap have changed.
void SendQueue::count_gap(Item& gap) {
    const std::size_t before = std::exchange(gap.gap_counts, gap.gap->size());
    owed_.gap_counts += gap.gap_counts - before;
}

void SendQueue::remove_gap(DroppableQueue<Item>::Place gap) {
    owed_.gap_counts -= gap->gap_counts;
    items_.erase(gap, std::next(gap));
}

void SendQueue::add_totals(CountList totals) {
    Item& item = add(Kind::list);
    item.frame_kind = totals_kind;
    item.list = std::move(totals);
}

void SendQueue::add_positions(Positions positions) {
    Item& item = add(Kind::list);
    item.frame_kind = positions_kind;
    item.extension_bytes = static_cast<std::uint8_t>(encode(positions.extension, item.extension));
    add_list(item, std::move(positions.counts));
}

// A range of fids is laid out as a fid and a count are.
void SendQueue::add_fids(std::uint32_t question, std::span<const FidRange> ranges) {
    Item& item = add(Kind::list);
    item.frame_kind = fids_answer_kind;
    item.extension_bytes = static_cast<std::uint8_t>(encode_fids_answer(question, item.extension));
    std::vector<FidCount> list;
    for (const FidRange& range : ranges)
        list.push_back({.fid = range.first, .count = to_integer(range.last)});
    add_list(item, std::move(list));
}

void SendQueue::add_list(Item& item, std::vector<FidCount> list) {
    item.positions = list.size();
    owed_.positions += item.positions;
    item.list = [counts = std::move(list),
                 next = std::size_t{0}](std::span<FidCount> out) mutable -> TotalsPart {
        const std::size_t count = std::min(out.size(), counts.size() - next);
        std::copy_n(counts.begin() + static_cast<std::ptrdiff_t>(next), count, out.begin());
        next += count;
        return {.count = count, .last = next == counts.size()};
    };
}

// --- leaving it -----------------------------------------------------------------------------

bool SendQueue::prepare(const Room& room, ReadyFrame& frame) {
    if (items_.empty()) return false;
    Item& item = items_.front();
    const Handling& handling = item.handling;
    const bool first_of_all = holding_.posted == 0;
    if (!first_of_all && handling.amount > 0 &&
        holding_.posted + handling.amount > room.post_limit) {
        return false;
    }
    next_ = {
        .cookie = handling.cookie, .amount = handling.amount, .frames = 1, .since = handling.since};
    together_ = 0;
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
        join_pages(room, frame);
        break;
    case Kind::message:
        if (waits_for_company(room)) return false;
        if (prepare_page(room, frame)) break;
        together_ = 0;
        part_ = fill_frame(*item.message, room.body_limit, item.offset, frame);
        next_.is_last = item.offset + part_ >= item.message->total_bytes;
        if (!next_.is_last) next_.amount = 0;
        break;
    case Kind::gap:
    case Kind::list:
        if (!prepare_counts(item, room.body_limit, frame)) return false;
        break;
    }
    const bool ours = item.kind != Kind::frame && item.kind != Kind::message;
    if (ours && next_.counts == 0) return true; // nobody asks what became of it
    if (ours) next_.frames = 0;
    if (!slot_) slot_ = posted_.take({});
    frame.cookie = Cookie{*slot_};
    return true;
}

// Several small messages in one frame, if they wait behind one another. None of them is one that is
// sent in fragments: of those no frame has place for several.
bool SendQueue::prepare_page(const Room& room, ReadyFrame& frame) {
    const auto is_small = [&](const Item& item) {
        return item.kind == Kind::message &&
               Gathering::takes(*item.message, room.body_limit, room.by_device);
    };
    if (items_.size() < 2 || !is_small(items_.front())) return false;
    if (!is_small(*std::next(items_.begin()))) return false;
    if (!gathering_.begin(room.body_limit)) return false;
    std::size_t amount = 0;
    for (const Item& item : items_) {
        const Handling& handling = item.handling;
        const bool may_be_posted = holding_.posted + amount + handling.amount <= room.post_limit;
        if (!is_small(item) || !(may_be_posted || gathering_.count() == 0)) break;
        if (!gathering_.append(*item.message, {handling.cookie, handling.amount})) break;
        amount += handling.amount;
    }
    together_ = gathering_.count();
    if (together_ < 2) return false;
    next_.amount = amount;
    frame.kind = page_kind;
    frame.flags = gathered_flag;
    frame.extension_bytes = 0;
    frame.slices[0] = gathering_.page();
    frame.slice_count = 1;
    return true;
}

// Pages that wait behind one another share a frame: each begins with the fid of its first record,
// so side by side they are a page. As many as leave from where they lie; what is kept of the newest
// has its turn behind each page with a mark, so that one leaves alone.
void SendQueue::join_pages(const Room& room, ReadyFrame& frame) {
    const auto is_plain_page = [](const Item& item) {
        const bool is_page = item.kind == Kind::frame && item.frame_kind == page_kind;
        return is_page && item.handling.mark == 0;
    };
    const std::size_t most = std::min(joined_limit, room.slice_limit);
    std::size_t bytes = 0;
    std::size_t count = 0;
    std::size_t amount = 0;
    for (const Item& item : items_) {
        if (count == most || !is_plain_page(item)) break;
        const std::size_t next = item.handling.amount;
        if (bytes + item.slice.size > room.body_limit) break;
        if (count > 0 && holding_.posted + amount + next > room.post_limit) break;
        bytes += item.slice.size;
        amount += next;
        frame.slices[count] = item.slice;
        next_.pages[count++] = {.cookie = item.handling.cookie, .amount = next};
    }
    if (count < 2) return;
    together_ = frame.slice_count = count;
    next_.joined = static_cast<std::uint8_t>(count);
    next_.amount = amount;
}

// One frame of gaps, totals or positions. False: all that may be under way are.
bool SendQueue::prepare_counts(Item& item, std::size_t body_limit, ReadyFrame& frame) {
    frame.kind = item.gap ? gap_kind : item.frame_kind;
    frame.extension_bytes = item.extension_bytes;
    std::copy_n(item.extension.begin(), item.extension_bytes, frame.extension.begin());
    const auto place = item.gap ? telling_.prepare(*item.gap, body_limit, frame)
                                : telling_.prepare(item.list, body_limit, frame);
    if (item.gap) count_gap(item);
    next_.counts = place.value_or(0);
    return place.has_value();
}

void SendQueue::posted() {
    Item& item = items_.front();
    const bool ours = item.kind != Kind::frame && item.kind != Kind::message;
    if (item.kind == Kind::message && together_ > 0) next_.page = gathering_.posted();
    if (!ours || next_.counts != 0) posted_[*std::exchange(slot_, std::nullopt)] = next_;
    if (together_ > 0) {
        for (std::size_t i = 0; i < together_; ++i)
            on_head_posted();
        return;
    }
    bool done = true;
    switch (item.kind) {
    case Kind::answer:
        --owed_.answers;
        break;
    case Kind::gap:
    case Kind::list:
        done = telling_.posted(next_.counts, item.gap.get());
        if (done) owed_.positions -= item.positions;
        break;
    case Kind::frame:
    case Kind::message:
        item.offset += part_;
        done = item.kind == Kind::frame || item.offset >= item.message->total_bytes;
        if (done) return on_head_posted();
        keep_head_for_good();
        break;
    }
    if (done) items_.pop_front();
}

// The last of it.
void SendQueue::on_head_posted() {
    keep_head_for_good();
    const Item& item = items_.front();
    holding_.waiting -= item.handling.amount;
    holding_.posted += item.handling.amount;
    if (item.handling.limited) holding_.limited -= item.handling.amount;
    if (item.handling.mark != 0) --marked_;
    if (item.message != nullptr) message_bytes_ -= item.message->total_bytes;
    items_.pop_front();
}

// An item that has begun to leave, and what continues it, is not taken back any more.
void SendQueue::keep_head_for_good() {
    if (!items_.front().handling.droppable) return;
    items_.unmark_front();
    auto each = items_.begin();
    do {
        Handling& handling = each->handling;
        handling.droppable = false;
        handling.begun = true;
        holding_.droppable -= handling.amount;
    } while (++each != items_.end() && each->handling.continues);
}

// --- coming back ----------------------------------------------------------------------------

TimePoint SendQueue::on_sent(Cookie cookie, Fate fate, std::vector<Returned>& returned) {
    const Posted posted = posted_.release(static_cast<std::uint32_t>(cookie));
    ++progress_;
    telling_.on_sent(posted.counts);
    holding_.posted -= posted.amount;
    for (const Gathering::Held& held : several(posted))
        returned.push_back({.cookie = held.cookie, .frames = 1, .fate = fate});
    if (posted.page) gathering_.release(*posted.page);
    if (!posted.is_several() && posted.frames > 0) {
        returned.push_back({.cookie = posted.cookie,
                            .frames = posted.frames,
                            .fate = posted.is_last ? std::optional{fate} : std::nullopt});
    }
    return posted.since;
}

SendQueue::TakenBack SendQueue::take_back() {
    TakenBack taken;
    const auto [first, end] = items_.unmark_last();
    if (first == end) return taken;
    taken.mark = first->handling.mark;
    for (auto each = first; each != end; ++each) {
        const Handling& handling = each->handling;
        taken.cookies.push_back(handling.cookie);
        holding_.waiting -= handling.amount;
        holding_.droppable -= handling.amount;
        if (handling.mark != 0) --marked_;
        if (each->message != nullptr) message_bytes_ -= each->message->total_bytes;
    }
    const bool gap_before = first != items_.begin() && std::prev(first)->kind == Kind::gap;
    const bool gap_after = end != items_.end() && end->kind == Kind::gap;
    if (gap_before) {
        taken.place = std::prev(first);
        items_.erase(first, end);
    } else if (gap_after) {
        taken.place = end;
        items_.erase(first, end);
    } else {
        taken.place = first;
        items_.erase(std::next(first), end);
        *first = {};
        first->kind = Kind::gap;
        first->gap = std::make_unique<GapLedger>();
    }
    if (gap_before && gap_after) {
        taken.place->gap->merge(*end->gap);
        remove_gap(end);
        count_gap(*taken.place);
    }
    taken.gap = taken.place->gap.get();
    return taken;
}

void SendQueue::settle(const TakenBack& taken) {
    const bool is_being_told = taken.place == items_.begin() && telling_.has_begun();
    count_gap(*taken.place);
    if (!taken.gap->empty() || is_being_told) return;
    remove_gap(taken.place);
}

std::vector<SendQueue::Returned> SendQueue::take_rest(std::size_t body_limit) {
    std::vector<Returned> rest;
    for (const Item& item : items_) {
        if (item.kind == Kind::frame) {
            rest.push_back({.cookie = item.handling.cookie, .frames = 1, .fate = Fate::lost});
        }
        if (item.kind == Kind::message) {
            rest.push_back({.cookie = item.handling.cookie,
                            .frames = frames_for(*item.message, body_limit, item.offset),
                            .fate = Fate::lost});
        }
    }
    items_.clear();
    holding_.waiting = holding_.droppable = holding_.limited = message_bytes_ = marked_ = 0;
    owed_ = {};
    return rest;
}

} // namespace netio::pubsub::inline v0_2
