// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/send_queue.hpp"

#include "netio/base/copy.hpp"
#include "netio/coalescing/page.hpp"

#include <bit>

namespace netio::pubsub::inline v0_3 {
namespace {

// Frames of counts that one peer may have in flight in memory, and the most bytes of each.
constexpr unsigned frame_limit = 4;
constexpr std::size_t counts_bytes = 4096;

} // namespace

// --- messages whose memory is borrowed --------------------------------------------------------

bool fits_one_frame(const ZeroCopyMessage& message, std::size_t body_limit) noexcept {
    return message.total_bytes + message_extension_bytes <= body_limit;
}

std::size_t frames_for(const ZeroCopyMessage& message, std::size_t body_limit,
                       std::size_t offset) noexcept {
    if (fits_one_frame(message, body_limit)) return 1;
    const std::size_t per_frame = body_limit - fragment_extension_bytes;
    return (message.total_bytes - offset + per_frame - 1) / per_frame;
}

std::size_t fill_frame(const ZeroCopyMessage& message, std::size_t body_limit, std::size_t offset,
                       ReadyFrame& frame) {
    std::size_t part = message.total_bytes;
    if (fits_one_frame(message, body_limit)) {
        frame.kind = message_kind;
        frame.extension_bytes =
            encode(MessageExtension{.fid = message.fid, .status = message.status}, frame.extension);
    } else {
        part = std::min(body_limit - fragment_extension_bytes, message.total_bytes - offset);
        frame.kind = fragment_kind;
        frame.extension_bytes =
            encode(FragmentExtension{.fid = message.fid,
                                     .message_number = message.number,
                                     .offset = static_cast<std::uint32_t>(offset),
                                     .total = static_cast<std::uint32_t>(message.total_bytes),
                                     .status = message.status},
                   frame.extension);
    }
    // The user header begins the message. It is copied; all other bytes are borrowed.
    std::size_t skip = offset;
    std::size_t left = part;
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
    return part;
}

void copy_message(const ZeroCopyMessage& message, std::byte* out) noexcept {
    out = std::copy_n(message.header.begin(), message.header_bytes, out);
    for (std::size_t i = 0; i < message.slice_count; ++i) {
        const Slice& slice = message.slices[i];
        copy_bytes(out, {slice.data, slice.size});
        out += slice.size;
    }
}

bool SmallMessageBatcher::begin(std::size_t body_limit) {
    const auto free = std::ranges::find(pages_, false, &Page::in_flight);
    filling_ = static_cast<std::uint8_t>(free - pages_.begin());
    if (free == pages_.end()) {
        if (pages_.size() == page_limit) return false;
        pages_.emplace_back().memory =
            std::make_unique<RegisteredBuffer>(std::min(page_bytes, body_limit), Access::send);
    }
    Page& page = pages_[filling_];
    page.messages.clear();
    writer_ = PageWriter{page.memory->memory()};
    return true;
}

bool SmallMessageBatcher::append(const ZeroCopyMessage& message, const Held& held) {
    std::byte* const out = writer_.append(message.fid, message.status, message.total_bytes);
    if (out == nullptr) return false;
    copy_message(message, out);
    pages_[filling_].messages.push_back(held);
    return true;
}

Slice SmallMessageBatcher::page() {
    return pages_[filling_].memory->slice(0, writer_.used());
}

std::uint8_t SmallMessageBatcher::posted() noexcept {
    pages_[filling_].in_flight = true;
    return filling_;
}

// --- counts -----------------------------------------------------------------------------------

std::size_t CountListEncoder::most(std::size_t body_limit, const ReadyFrame& frame) const noexcept {
    return std::min(counts_bytes, body_limit - frame.extension_bytes) / fid_count_bytes;
}

std::optional<CountListEncoder::Places>
CountListEncoder::prepare(PendingGaps& gaps, std::size_t body_limit, ReadyFrame& frame) {
    if (!has_begun()) {
        counts_ = gaps.take();
        encoded_ = 0;
    }
    return write(most(body_limit, frame), frame);
}

std::optional<CountListEncoder::Places>
CountListEncoder::prepare(const CountList& list, std::size_t body_limit, ReadyFrame& frame) {
    const std::size_t at_most = most(body_limit, frame);
    if (!has_begun() && !list_ends_) {
        counts_.resize(at_most);
        const TotalsPart part = list(counts_);
        counts_.resize(part.count);
        list_ends_ = part.last;
        encoded_ = 0;
    }
    const auto place = write(at_most, frame);
    if (encoded_ + part_ < counts_.size() || !list_ends_) frame.flags = more_flag;
    return place;
}

std::optional<CountListEncoder::Places> CountListEncoder::write(std::size_t at_most,
                                                                ReadyFrame& frame) {
    part_ = std::min(at_most, counts_.size() - encoded_);
    const auto counts = std::span{counts_}.subspan(encoded_, part_);
    frame.slice_count = 0;
    const auto behind = std::span{frame.extension}.subspan(frame.extension_bytes);
    if (counts.size_bytes() <= behind.size()) {
        frame.extension_bytes += encode(counts, behind);
        return Places{0};
    }
    const auto free = static_cast<unsigned>(std::countr_one(used_));
    if (free >= frame_limit) return std::nullopt;
    if (!memory_)
        memory_ = std::make_unique<RegisteredBuffer>(frame_limit * counts_bytes, Access::send);
    const Slice memory = memory_->slice(free * counts_bytes, counts_bytes);
    frame.slices[0] = {memory.buffer, memory.data, encode(counts, {memory.data, memory.size})};
    frame.slice_count = 1;
    return Places{1} << free;
}

bool CountListEncoder::posted(Places place, const PendingGaps* gaps) {
    used_ |= place;
    encoded_ += part_;
    const bool complete = !has_begun() && (gaps != nullptr ? gaps->empty() : list_ends_);
    if (complete) list_ends_ = false;
    return complete;
}

// --- queueing -------------------------------------------------------------------------------

SendQueue::Item& SendQueue::add(Kind kind) {
    Item& item = items_.emplace_back();
    item.kind = kind;
    return item;
}

void SendQueue::hold(Item& item, const Handling& handling) {
    item.handling = handling;
    // A message is dropped as a whole or not at all, and its first part may be posted already.
    const bool head_waits = items_.size() > 1 && std::prev(items_.end(), 2)->handling.droppable;
    item.handling.begun = handling.droppable && handling.continues && !head_waits;
    if (item.handling.begun) item.handling.droppable = false;
    usage_.waiting += handling.amount;
    if (handling.mark != 0) ++marked_;
    if (handling.limited) usage_.limited += handling.amount;
    if (!item.handling.droppable) return;
    usage_.droppable += handling.amount;
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

void SendQueue::add_message(const ZeroCopyMessage& message, const Handling& handling) {
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
        add(Kind::gap).gap = std::make_unique<PendingGaps>();
    }
    items_.back().gap->add(fid, count);
    count_gap(items_.back());
}

// After the counts of this gap have changed.
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

// On the wire a range of fids has the layout of a fid and a count.
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

// --- sending --------------------------------------------------------------------------------

bool SendQueue::prepare(const Room& room, ReadyFrame& frame) {
    if (items_.empty()) return false;
    Item& item = items_.front();
    const Handling& handling = item.handling;
    const bool first_of_all = usage_.posted == 0;
    if (!first_of_all && handling.amount > 0 && usage_.posted + handling.amount > room.post_limit) {
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
        if (should_batch(room)) return false;
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
    if (ours && next_.counts == 0) return true; // no record is needed
    if (ours) next_.frames = 0;
    if (!slot_) slot_ = posted_.take({});
    frame.cookie = Cookie{*slot_};
    return true;
}

// Several small messages in one frame, if they follow one another. Messages that need fragments are
// never small.
bool SendQueue::prepare_page(const Room& room, ReadyFrame& frame) {
    const auto is_small = [&](const Item& item) {
        return item.kind == Kind::message &&
               SmallMessageBatcher::takes(*item.message, room.body_limit, room.by_device);
    };
    if (items_.size() < 2 || !is_small(items_.front())) return false;
    if (!is_small(*std::next(items_.begin()))) return false;
    if (!batcher_.begin(room.body_limit)) return false;
    std::size_t amount = 0;
    for (const Item& item : items_) {
        const Handling& handling = item.handling;
        const bool may_be_posted = usage_.posted + amount + handling.amount <= room.post_limit;
        if (!is_small(item) || !(may_be_posted || batcher_.count() == 0)) break;
        if (!batcher_.append(*item.message, {handling.cookie, handling.amount})) break;
        amount += handling.amount;
    }
    together_ = batcher_.count();
    if (together_ < 2) return false;
    next_.amount = amount;
    frame.kind = page_kind;
    frame.flags = gathered_flag;
    frame.extension_bytes = 0;
    frame.slices[0] = batcher_.page();
    frame.slice_count = 1;
    return true;
}

// Pages that follow one another share a frame: each begins with the fid of its first record, so
// together they are one page. The number is limited by the slices that are sent without a copy. A
// page with a mark is sent alone, because conflated messages may follow it.
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
        if (count > 0 && usage_.posted + amount + next > room.post_limit) break;
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

// One frame of gaps, totals or positions. Returns false if as many as may be are in flight.
bool SendQueue::prepare_counts(Item& item, std::size_t body_limit, ReadyFrame& frame) {
    frame.kind = item.gap ? gap_kind : item.frame_kind;
    frame.extension_bytes = item.extension_bytes;
    std::copy_n(item.extension.begin(), item.extension_bytes, frame.extension.begin());
    const auto place = item.gap ? encoder_.prepare(*item.gap, body_limit, frame)
                                : encoder_.prepare(item.list, body_limit, frame);
    if (item.gap) count_gap(item);
    next_.counts = place.value_or(0);
    return place.has_value();
}

void SendQueue::posted() {
    Item& item = items_.front();
    const bool ours = item.kind != Kind::frame && item.kind != Kind::message;
    if (item.kind == Kind::message && together_ > 0) next_.page = batcher_.posted();
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
        done = encoder_.posted(next_.counts, item.gap.get());
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

// All of the head is posted.
void SendQueue::on_head_posted() {
    keep_head_for_good();
    const Item& item = items_.front();
    usage_.waiting -= item.handling.amount;
    usage_.posted += item.handling.amount;
    if (item.handling.limited) usage_.limited -= item.handling.amount;
    if (item.handling.mark != 0) --marked_;
    if (item.message != nullptr) message_bytes_ -= item.message->total_bytes;
    items_.pop_front();
}

// A message that is partly posted cannot be dropped any more.
void SendQueue::keep_head_for_good() {
    if (!items_.front().handling.droppable) return;
    items_.unmark_front();
    auto each = items_.begin();
    do {
        Handling& handling = each->handling;
        handling.droppable = false;
        handling.begun = true;
        usage_.droppable -= handling.amount;
    } while (++each != items_.end() && each->handling.continues);
}

// --- returning ------------------------------------------------------------------------------

TimePoint SendQueue::on_sent(Cookie cookie, Fate fate, std::vector<Returned>& returned) {
    const Posted posted = posted_.release(static_cast<std::uint32_t>(cookie));
    ++progress_;
    encoder_.on_sent(posted.counts);
    usage_.posted -= posted.amount;
    for (const SmallMessageBatcher::Held& held : several(posted))
        returned.push_back({.cookie = held.cookie, .frames = 1, .fate = fate});
    if (posted.page) batcher_.release(*posted.page);
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
        usage_.waiting -= handling.amount;
        usage_.droppable -= handling.amount;
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
        first->gap = std::make_unique<PendingGaps>();
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
    const bool is_being_sent = taken.place == items_.begin() && encoder_.has_begun();
    count_gap(*taken.place);
    if (!taken.gap->empty() || is_being_sent) return;
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
    usage_.waiting = usage_.droppable = usage_.limited = message_bytes_ = marked_ = 0;
    owed_ = {};
    return rest;
}

} // namespace netio::pubsub::inline v0_3
