// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscriber.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "pubsub/core/frames.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// Answers that may wait for a subscriber that does not take them: one that asks faster than it
// listens is misbehaving.
constexpr std::size_t answer_limit = 4096;

// What a cookie stands for: the kind in the top two bits, a number below.
constexpr unsigned kind_shift = 62;
constexpr std::uint64_t number_mask = (std::uint64_t{1} << kind_shift) - 1;

template <typename Kind>
Cookie make_cookie(Kind kind, std::uint64_t number) {
    return Cookie{(static_cast<std::uint64_t>(kind) << kind_shift) | (number & number_mask)};
}

} // namespace

Subscriber::Subscriber(SubscriberId id, IncomingSession& incoming, const Hello& hello,
                       const SessionOptions& options, Owner& owner)
    : id_{id}, owner_{owner}, session_{incoming.accept(hello, options, *this)} {}

Subscriber::~Subscriber() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

// --- entering the queue ---------------------------------------------------------------------

void Subscriber::send_page(std::uint32_t page, const Slice& slice,
                           std::span<const std::byte> fragment_extension) {
    NETIO_CHECK(!gone_);
    send_gaps();
    ++held_pages_;
    Item item;
    item.kind = Kind::page;
    item.frame_kind = fragment_extension.empty() ? page_kind : fragment_kind;
    item.extension_bytes = static_cast<std::uint8_t>(fragment_extension.size());
    std::ranges::copy(fragment_extension, item.extension.begin());
    item.page = page;
    item.slice = slice;
    enqueue(std::move(item));
}

std::size_t Subscriber::frames_for(const Publication& publication,
                                   std::size_t offset) const noexcept {
    const std::size_t limit = session_->body_limit();
    if (publication.total_bytes + message_extension_bytes <= limit) return 1;
    const std::size_t per_frame = limit - fragment_extension_bytes;
    return (publication.total_bytes - offset + per_frame - 1) / per_frame;
}

void Subscriber::send_publication(const Publication& publication) {
    NETIO_CHECK(!gone_);
    send_gaps();
    ++remainders_;
    Item item;
    item.kind = Kind::publication;
    item.publication = &publication;
    enqueue(std::move(item));
}

void Subscriber::send_answer(std::uint8_t kind, std::uint8_t flags,
                             std::span<const std::byte> body) {
    if (gone_) return;
    if (answers_queued_ >= answer_limit) {
        return session_->fail(CloseReason::protocol_error,
                              peer_address() + " asks and does not take the answers");
    }
    ++answers_queued_;
    Item item;
    item.kind = Kind::answer;
    item.frame_kind = kind;
    item.frame_flags = flags;
    if (body.size() <= item.extension.size()) {
        item.extension_bytes = static_cast<std::uint8_t>(body.size());
        std::ranges::copy(body, item.extension.begin());
    } else {
        item.body = std::make_unique<RegisteredBuffer>(body.size());
        std::ranges::copy(body, item.body->data());
    }
    enqueue(std::move(item));
}

void Subscriber::add_gap(Fid fid, std::uint64_t count) {
    gaps_.add(fid, count);
}

void Subscriber::send_gaps() {
    if (gaps_.empty()) return;
    const std::vector<FidCount> counts = gaps_.take();
    std::array<std::byte, 4096> body;
    const std::size_t limit = std::min(body.size(), session_->body_limit()) / fid_count_bytes;
    for (std::span<const FidCount> left{counts}; !left.empty();) {
        const auto part = left.first(std::min(limit, left.size()));
        const std::size_t bytes = encode(part, body);
        send_answer(gap_kind, 0, std::span{body}.first(bytes));
        left = left.subspan(part.size());
    }
}

void Subscriber::enqueue(Item item) {
    // The usual case pays for no queue: nothing waits and the session has room.
    if (queue_.empty()) {
        const Status status = send_item(item);
        if (status == Status::ok) return;
    }
    queue_.push_back(std::move(item));
}

// --- leaving it -----------------------------------------------------------------------------

void Subscriber::pump() {
    while (!queue_.empty() && send_item(queue_.front()) == Status::ok)
        queue_.pop_front();
}

// ok: the item is wholly in the fabric's hands. Anything else: it stays, and on_writable or
// on_closed follows.
Status Subscriber::send_item(Item& item) {
    switch (item.kind) {
    case Kind::page:
        return session_->send({.kind = item.frame_kind,
                               .flags = 0,
                               .extension = std::span{item.extension}.first(item.extension_bytes),
                               .slices = {&item.slice, 1}},
                              make_cookie(Kind::page, item.page));
    case Kind::publication: {
        Status status = Status::ok;
        do {
            status = send_part(item);
        } while (status == Status::ok && item.offset < item.publication->total_bytes);
        if (status == Status::ok) --remainders_;
        return status;
    }
    case Kind::answer: {
        const Slice slice = item.body ? item.body->slice() : Slice{};
        const Status status =
            session_->send({.kind = item.frame_kind,
                            .flags = item.frame_flags,
                            .extension = std::span{item.extension}.first(item.extension_bytes),
                            .slices = {&slice, item.body ? std::size_t{1} : 0}},
                           make_cookie(Kind::answer, next_answer_));
        if (status == Status::ok) {
            --answers_queued_;
            if (item.body) answers_in_flight_.emplace(next_answer_, std::move(item.body));
            ++next_answer_;
        }
        return status;
    }
    }
    return Status::closed;
}

// One frame of a publication: all of it, or the next fragment.
Status Subscriber::send_part(Item& item) {
    const Publication& publication = *item.publication;
    std::array<std::byte, std::max(message_extension_bytes, fragment_extension_bytes) + 8>
        extension;
    const std::size_t limit = session_->body_limit();
    const bool whole = publication.total_bytes + message_extension_bytes <= limit;
    std::size_t extension_bytes = 0;
    std::size_t part_bytes = publication.total_bytes;
    if (whole) {
        extension_bytes = encode(
            MessageExtension{.fid = publication.fid, .status = publication.status}, extension);
    } else {
        part_bytes =
            std::min(limit - fragment_extension_bytes, publication.total_bytes - item.offset);
        extension_bytes =
            encode(FragmentExtension{.fid = publication.fid,
                                     .message_number = publication.number,
                                     .offset = static_cast<std::uint32_t>(item.offset),
                                     .total = static_cast<std::uint32_t>(publication.total_bytes),
                                     .status = publication.status},
                   extension);
    }
    // The user header is the beginning of the message; it is copied, all else is lent.
    std::size_t skip = item.offset;
    std::size_t left = part_bytes;
    if (skip < publication.header_bytes) {
        const std::size_t bytes = std::min<std::size_t>(publication.header_bytes - skip, left);
        std::copy_n(publication.header.begin() + static_cast<std::ptrdiff_t>(skip), bytes,
                    extension.begin() + static_cast<std::ptrdiff_t>(extension_bytes));
        extension_bytes += bytes;
        left -= bytes;
        skip = 0;
    } else {
        skip -= publication.header_bytes;
    }
    std::array<Slice, slice_limit> slices;
    std::size_t count = 0;
    for (std::size_t i = 0; i < publication.slice_count && left > 0; ++i) {
        Slice slice = publication.slices[i];
        if (skip >= slice.size) {
            skip -= slice.size;
            continue;
        }
        slice.data += skip;
        slice.size = std::min(slice.size - skip, left);
        skip = 0;
        left -= slice.size;
        slices[count++] = slice;
    }
    const Status status =
        session_->send({.kind = whole ? message_kind : fragment_kind,
                        .flags = 0,
                        .extension = std::span{extension}.first(extension_bytes),
                        .slices = {slices.data(), count}},
                       make_cookie(Kind::publication, static_cast<std::uint64_t>(publication.id)));
    if (status == Status::ok) item.offset += part_bytes;
    return status;
}

void Subscriber::give_back(Item& item) {
    switch (item.kind) {
    case Kind::page:
        --held_pages_;
        return owner_.on_page_released(*this, item.page);
    case Kind::publication: {
        --remainders_;
        const PublicationId id = item.publication->id;
        const std::size_t left = frames_for(*item.publication, item.offset);
        return owner_.on_debts_settled(*this, id, left);
    }
    case Kind::answer:
        --answers_queued_;
        return;
    }
}

// --- the session's events ----------------------------------------------------------------------

void Subscriber::on_open(Session&) {
    owner_.on_subscriber_open(*this);
}

void Subscriber::on_frame(Session&, const IncomingFrame& frame) {
    owner_.on_subscriber_frame(*this, frame);
}

void Subscriber::on_sent(Session&, Cookie cookie, Completion::Outcome) {
    // Whatever the outcome, the memory is free; a failed session says so by on_closed.
    const auto number = static_cast<std::uint64_t>(cookie) & number_mask;
    if (queue_.empty() && !gone_) send_gaps();
    switch (static_cast<Kind>(static_cast<std::uint64_t>(cookie) >> kind_shift)) {
    case Kind::page:
        --held_pages_;
        owner_.on_page_released(*this, static_cast<std::uint32_t>(number));
        break;
    case Kind::publication:
        owner_.on_debts_settled(*this, PublicationId{number}, 1);
        break;
    case Kind::answer:
        answers_in_flight_.erase(number);
        break;
    }
}

void Subscriber::on_writable(Session&) {
    pump();
    owner_.on_progress(*this);
}

void Subscriber::on_closed(Session&, const Closed& closed) {
    gone_ = true;
    owner_.on_subscriber_gone(*this);
    const DestructionWatch watch{destroyed_};
    for (Item& item : std::exchange(queue_, {})) {
        give_back(item);
        if (watch.destroyed()) return;
    }
    owner_.on_subscriber_closed(*this, closed);
}

} // namespace netio::pubsub::inline v0_2
