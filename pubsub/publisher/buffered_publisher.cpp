// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/buffered_publisher.hpp"

#include "netio/base/option_check.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

PageTerms checked_terms(const BufferedPublishSocket::Options& options) {
    validate(options.publisher);
    require_at_least("flush_time", options.flush_time.count(), 0);
    require_option(options.flush_time <= longest_time, "flush_time must be at most a year");
    require_between("newest_bytes", options.newest_bytes, 1, SIZE_MAX);
    return PageTerms{{.page_bytes = options.page_bytes,
                      .page_count = options.page_count,
                      .share_bytes = options.share_bytes,
                      .watermark_bytes = options.watermark_bytes,
                      .largest_message_bytes = options.publisher.largest_message_bytes}};
}

// Subscribers are told at connect what they must be able to take.
Publisher::Options announced(Publisher::Options publisher, std::size_t message_limit) {
    publisher.largest_message_bytes = message_limit;
    return publisher;
}

} // namespace

BufferedPublisher::BufferedPublisher(Transport& transport,
                                     const BufferedPublishSocket::Options& options,
                                     Publisher::Handler& handler, Publisher& socket,
                                     Publisher::Counters& counters)
    : socket_{socket}, handler_{handler}, counters_{counters}, terms_{checked_terms(options)},
      pages_{terms_.pool()}, open_{pages_, terms_},
      delivery_{terms_,
                pages_,
                open_,
                sessions_,
                counters_,
                NewestBook{options.newest_bytes, options.publisher.ranges_per_subscriber_limit}},
      loop_{transport.loop()}, clock_{loop_,
                                      {.flush_time = options.flush_time,
                                       .when_idle = options.flush_when_idle},
                                      [this] { flush_old(); },
                                      [this] { flush_idle(); }},
      sessions_{transport,
                announced(options.publisher, terms_.message_limit()),
                {.pool = terms_.pool(),
                 .largest = terms_.largest(),
                 .required_receive_bytes =
                     terms_.page_bytes() + fragment_extension_bytes + frame_header_bytes,
                 .keeps_newest = true},
                static_cast<SubscriberSessions::Owner&>(*this),
                {.publisher = socket, .handler = handler}} {}

Status BufferedPublisher::publish(Fid fid, MessageParts parts, std::uint8_t status) {
    if (sessions_.is_closing()) return Status::closed;
    const std::size_t bytes = size_of(parts);
    if (bytes > terms_.message_limit()) return Status::too_large;

    const FanOut::Found found = sessions_.fan_out().lookup(fid);
    if (found.group->members.empty()) {
        if (sessions_.fan_out().is_elsewhere(*found.group)) return Status::not_owned;
        ++found.published;
        ++counters_.without_subscribers;
        return Status::no_subscribers;
    }
    const bool fits = bytes + page::header_bytes <= terms_.page_bytes();
    const Status outcome = fits ? append(*found.group, fid, parts, bytes, status)
                                : publish_large(*found.group, fid, parts, bytes, status);
    if (outcome != Status::ok) return outcome;
    ++found.published;
    ++counters_.messages;
    counters_.bytes += bytes;
    return Status::ok;
}

Status BufferedPublisher::refuse(Fid fid) {
    ++counters_.again;
    held_up_.refuse(fid, loop_.now());
    return Status::again;
}

// --- pages that are being filled ------------------------------------------------------------

Status BufferedPublisher::append(Group& group, Fid fid, MessageParts parts, std::size_t bytes,
                                 std::uint8_t status) {
    std::byte* const out = reserve(group, fid, status, bytes);
    if (out == nullptr) return refuse(fid);
    copy_parts(parts, 0, {out, bytes});
    if (open_.is_due(group)) leave_or_fill_further(group);
    return Status::ok;
}

// Called when the group's page is full at its present size. If its subscribers are busy, a page
// that leaves now would only wait, so it grows instead.
void BufferedPublisher::leave_or_fill_further(Group& group) {
    if (open_.is_early(group)) {
        if (!is_busy(group)) return flush_page(group.place, counters_.pages_left.idle);
        if (open_.fill_further(group)) return;
    }
    flush_page(group.place, counters_.pages_left.full);
}

// Where a message goes in the group's open page, or in a new one; nullptr: nowhere now.
std::byte* BufferedPublisher::reserve(Group& group, Fid fid, std::uint8_t status,
                                      std::size_t bytes) {
    while (group.place != Group::nowhere) {
        std::byte* const out = open_.append(group, fid, status, bytes);
        if (out != nullptr) return out;
        leave_or_fill_further(group);
    }
    if (!open_page(group, bytes + page::header_bytes)) return nullptr;
    return open_.append(group, fid, status, bytes);
}

// Whether there was memory for it in the end, of which it needs so much.
template <typename Attempt>
bool BufferedPublisher::find_room(std::size_t bytes, Attempt attempt) {
    if (attempt()) return true;
    flush_all(counters_.pages_left.full); // what leaves makes room, sooner or later
    // Where it waits for those who may miss it, or nobody is sent it, at once: nothing would
    // follow. What is free may lie in gaps that are too small: then more is taken back than it
    // needs.
    std::size_t free = 0;
    do {
        if (attempt()) return true;
        free = sessions_.shares().free();
        sessions_.make_others_give_way(free + 1);
    } while (sessions_.shares().free() > free);
    sessions_.slow().note_needed(bytes);
    return false;
}

bool BufferedPublisher::open_page(Group& group, std::size_t record_bytes) {
    sessions_.make_others_give_way();
    const std::size_t free = open_.free(sessions_.shares().free());
    if (delivery_.must_wait_for(group.members, {.bytes = record_bytes, .free = free})) return false;
    const std::size_t most = sessions_.shares().piece(terms_.page_bytes(), free);
    if (!find_room(record_bytes, [&] { return open_.open(group, record_bytes, most); }))
        return false;
    clock_.on_page_opened();
    return true;
}

Status BufferedPublisher::publish_large(Group& group, Fid fid, MessageParts parts,
                                        std::size_t bytes, std::uint8_t status) {
    // The order of the fid.
    if (group.place != Group::nowhere) flush_page(group.place, counters_.pages_left.full);
    sessions_.make_others_give_way(bytes);
    const std::size_t free = open_.free(sessions_.shares().free());
    if (delivery_.must_wait_for(group.members, {.bytes = bytes, .is_large = true, .free = free}))
        return refuse(fid);
    std::vector<std::uint32_t> pages;
    const auto take_pages = [&] {
        pages = open_.take_pages(bytes);
        return !pages.empty();
    };
    if (!find_room(bytes, take_pages)) return refuse(fid);
    delivery_.send({.fid = fid, .status = status, .parts = parts, .bytes = bytes}, pages,
                   group.members);
    return Status::ok;
}

// --- when they leave ------------------------------------------------------------------------

void BufferedPublisher::flush_page(std::size_t place, std::uint64_t& reason) {
    ++reason;
    const OpenPages::Filled filled = open_.take(place);
    delivery_.send(filled.page, filled.bytes, filled.group->members);
    give_what_was_stuck();
}

void BufferedPublisher::flush() {
    flush_all(counters_.pages_left.asked);
}

void BufferedPublisher::flush_all(std::uint64_t& reason) {
    open_.for_each([&](std::size_t place) { flush_page(place, reason); });
    clock_.on_all_flushed();
}

void BufferedPublisher::flush(Fid fid) {
    // What was published before the groups changed last has left with that change.
    if (sessions_.fan_out().fids().find_current(fid) == nullptr) return;
    const Group& group = *sessions_.fan_out().lookup(fid).group;
    if (group.place != Group::nowhere) flush_page(group.place, counters_.pages_left.asked);
}

// All that are open have been opened since the last time, or were kept then: all of them are due.
// But a page that would only wait behind others is better filled while they leave, at no message's
// cost.
void BufferedPublisher::flush_old() {
    if (open_.empty()) return;
    FlushPace::Pages pages;
    open_.for_each([&](std::size_t place) {
        const Group& group = open_.group(place);
        if (must_queue(group)) {
            ++pages.kept;
            return;
        }
        if (group.writer.used() < FlushPace::nearly_empty_bytes) ++pages.nearly_empty;
        flush_page(place, counters_.pages_left.in_time);
    });
    clock_.on_flushed_in_time(pages);
}

// Nobody would be sent it at once.
bool BufferedPublisher::must_queue(const Group& group) {
    return std::ranges::all_of(group.members, [this](const Interest& member) {
        return sessions_.subscribers()[member.subscriber].queue().holding().waiting > 0;
    });
}

void BufferedPublisher::flush_idle() {
    open_.for_each([this](std::size_t place) {
        if (is_idle(open_.group(place))) flush_page(place, counters_.pages_left.idle);
    });
}

// Nobody is asked who would only miss messages: if all of them are such, one that is idle will do.
bool BufferedPublisher::is_idle(const Group& group) {
    bool anybody_idle = false;
    for (const Interest& member : group.members) {
        const bool idle = sessions_.subscribers()[member.subscriber].is_idle();
        if (!idle && !may_miss(member.policy)) return false;
        anybody_idle = anybody_idle || idle;
    }
    return anybody_idle;
}

// Whether a page that leaves now would wait: a subscriber has queued pages, or many bytes are in
// flight to all of them. Subscribers whose policy drops messages do not count: nothing waits for
// them.
bool BufferedPublisher::is_busy(const Group& group) {
    std::size_t under_way = 0;
    for (const Interest& member : group.members) {
        if (may_miss(member.policy)) continue;
        const Holding& holding = sessions_.subscribers()[member.subscriber].queue().holding();
        under_way += holding.posted;
        if (holding.waiting > 0 || under_way >= PageTerms::busy_bytes) return true;
    }
    return false;
}

void BufferedPublisher::close() {
    flush();
    sessions_.close();
}

void BufferedPublisher::abort() {
    flush();
    sessions_.abort();
}

void BufferedPublisher::on_returned(const SendQueue::Returned& returned) {
    pages_.release(static_cast<std::uint32_t>(returned.cookie), sessions_.shares());
    on_progress();
}

void BufferedPublisher::on_unwanted(SubscriberId subscriber, std::span<const FidRange>) {
    if (sessions_.subscribers()[subscriber].stage() == Subscriber::Stage::gone)
        delivery_.forget(subscriber);
}

void BufferedPublisher::give_what_was_stuck() {
    if (delivery_.take_stuck()) sessions_.offer_what_is_kept();
}

void BufferedPublisher::on_progress() {
    clock_.on_progress();
    give_what_was_stuck();
    if (!held_up_.end(loop_.now())) return;
    sessions_.slow().note_needed(0);
    handler_.on_writable(socket_);
}

} // namespace netio::pubsub::inline v0_2
