// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/coalescing/message_parts.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// What a subscriber may hold if nobody says otherwise. If the publisher waits for it, more would
// only have pages leave the processor's cache between being written and being sent; if not, it is
// the pause that a subscriber survives.
constexpr std::size_t share_waited_for_bytes = std::size_t{1} << 20;
constexpr std::size_t share_dropped_at_bytes = std::size_t{4} << 20;

BufferedPublishSocket::Options checked(BufferedPublishSocket::Options options) {
    const auto require = [](bool good, const char* rule) {
        if (!good) throw std::invalid_argument{rule};
    };
    require(options.page_bytes >= 256 && options.page_bytes <= largest_message_limit,
            "page_bytes must be from 256 to 1073741823");
    require(options.page_count >= 2 && options.page_count <= (std::size_t{1} << 20),
            "page_count must be from 2 to 1048576");
    require(options.pages_per_subscriber <= options.page_count,
            "pages_per_subscriber must not exceed page_count");
    require(options.watermark_bytes <= options.page_bytes,
            "watermark_bytes must not exceed page_bytes");
    require(options.flush_time.count() >= 0, "flush_time must not be negative");
    if (options.watermark_bytes == 0) options.watermark_bytes = options.page_bytes;
    return options;
}

// All pages but one, which other groups may hold, carry the fragments of a large message.
std::size_t limit_of_messages(const BufferedPublishSocket::Options& options) {
    const std::size_t in_fragments = (options.page_count - 1) * options.page_bytes;
    return std::min(options.publisher.largest_message_bytes, in_fragments);
}

// Subscribers are told at connect what they must be able to take.
Publisher::Options announced(Publisher::Options publisher, std::size_t message_limit) {
    publisher.largest_message_bytes = message_limit;
    return publisher;
}

} // namespace

BufferedPublishSocket::BufferedPublishSocket(Transport& transport, const Options& options,
                                             Handler& handler)
    : options_{checked(options)}, handler_{handler},
      message_limit_{limit_of_messages(options_)}, pages_{options_.page_bytes, options_.page_count},
      flush_pace_{options_.flush_time}, flush_timer_{transport.loop(), [this] { flush_old(); }},
      idle_timer_{transport.loop(), [this] { flush_idle(); }},
      links_{transport,
             announced(options_.publisher, message_limit_),
             options_.page_bytes + fragment_extension_bytes + frame_header_bytes,
             static_cast<SubscriberLinks::Owner&>(*this),
             *this,
             handler} {}

BufferedPublishSocket::~BufferedPublishSocket() = default;

std::vector<SessionListener::Endpoint> BufferedPublishSocket::endpoints() const {
    return links_.endpoints();
}

Status BufferedPublishSocket::publishv(Fid fid, MessageParts parts, std::uint8_t status) {
    if (links_.is_closing()) return Status::closed;
    const std::size_t bytes = size_of(parts);
    if (bytes > message_limit_) return Status::too_large;

    SubscriberLinks::FidState& state = links_.lookup(fid);
    Group& group = *state.group;
    if (group.members.empty()) {
        ++counters_.without_subscribers;
        return Status::no_subscribers;
    }
    if (bytes + page::header_bytes > options_.page_bytes) {
        const Status outcome = publish_large(group, fid, parts, bytes, status);
        if (outcome != Status::ok) return outcome;
    } else {
        std::byte* const out = reserve(group, fid, status, bytes);
        if (out == nullptr) return refuse();
        copy_parts(parts, 0, {out, bytes});
        if (open_[group.place].writer.used() >= options_.watermark_bytes) flush_page(group.place);
    }
    count(state, bytes);
    return Status::ok;
}

Status BufferedPublishSocket::refuse() {
    ++counters_.again;
    capacity_wanted_ = true;
    return Status::again;
}

// --- pages that are being filled ------------------------------------------------------------

// Room for a message in the group's open page, or in a new one; nullptr: none now.
std::byte* BufferedPublishSocket::reserve(Group& group, Fid fid, std::uint8_t status,
                                          std::size_t bytes) {
    if (group.place != Group::nowhere) {
        std::byte* const out = open_[group.place].writer.append(fid, status, bytes);
        if (out != nullptr) return out;
        flush_page(group.place);
    }
    if (!open_page(group)) return nullptr;
    return open_[group.place].writer.append(fid, status, bytes);
}

bool BufferedPublishSocket::open_page(Group& group) {
    if (block_for_slow(group)) return false;
    std::optional<std::uint32_t> page = pages_.take();
    if (!page) {
        // Groups that are seldom published to must not keep the pages of the others.
        flush();
        page = pages_.take();
        if (!page) return false;
    }
    if (free_places_.empty()) {
        free_places_.push_back(open_.size());
        open_.emplace_back();
    }
    group.place = free_places_.back();
    free_places_.pop_back();
    const TimePoint due = flush_pace_.next(links_.loop().now());
    open_[group.place] = {
        .group = &group, .page = *page, .due = due, .writer = PageWriter{pages_.memory(*page)}};
    if (options_.flush_time.count() > 0) {
        flush_order_.emplace_back(group.place, due);
        if (!flush_timer_.armed()) arm_flush_timer();
    }
    if (options_.flush_when_idle && !idle_timer_.armed()) idle_timer_.start(Duration::zero());
    return true;
}

std::size_t BufferedPublishSocket::share_of(SlowPolicy policy) const noexcept {
    if (options_.pages_per_subscriber > 0) return options_.pages_per_subscriber;
    const std::size_t bytes =
        policy == SlowPolicy::drop ? share_dropped_at_bytes : share_waited_for_bytes;
    return std::min(options_.page_count / 2, std::max<std::size_t>(4, bytes / options_.page_bytes));
}

// Who holds less gets the next page, or all pages of the next message.
bool BufferedPublishSocket::has_its_share(const Group::Member& member) const noexcept {
    return member.subscriber->held_pages() >= share_of(member.policy);
}

// Whether the policy makes the publisher wait for one of these.
bool BufferedPublishSocket::block_for_slow(const Group& group) {
    bool blocked = false;
    for (const Group::Member& member : group.members) {
        if (member.policy == SlowPolicy::drop || !has_its_share(member)) continue;
        links_.note_slow(member);
        blocked = true;
    }
    return blocked;
}

// --- pages that leave -----------------------------------------------------------------------

void BufferedPublishSocket::flush_page(std::size_t place) {
    OpenPage& open = open_[place];
    Group& group = *std::exchange(open.group, nullptr);
    group.place = Group::nowhere;
    free_places_.push_back(place);
    send_to_group(group, open.page, open.writer.used(), {});
}

void BufferedPublishSocket::send_to_group(const Group& group, std::uint32_t page, std::size_t bytes,
                                          std::span<const std::byte> fragment_extension) {
    const Slice slice = pages_.slice(page, bytes);
    ++counters_.pages;
    for (const Group::Member& member : group.members) {
        Subscriber& subscriber = *member.subscriber;
        if (subscriber.is_gone()) continue; // its group has not been dissolved yet
        if (member.policy == SlowPolicy::drop && fragment_extension.empty() &&
            has_its_share(member)) {
            drop_page(subscriber, page, bytes);
        } else {
            pages_.add_user(page);
            subscriber.send_page(page, slice, fragment_extension);
        }
    }
    pages_.release(page); // our own use of it
}

void BufferedPublishSocket::drop_page(Subscriber& subscriber, std::uint32_t page,
                                      std::size_t bytes) {
    const bool sound = visit_page(pages_.memory(page).first(bytes),
                                  [&](Fid fid, std::span<const std::byte>, std::uint8_t) {
                                      subscriber.add_gap(fid, 1);
                                      ++counters_.dropped;
                                      return true;
                                  });
    NETIO_CHECK(sound);
}

Status BufferedPublishSocket::publish_large(Group& group, Fid fid, MessageParts parts,
                                            std::size_t bytes, std::uint8_t status) {
    if (group.place != Group::nowhere) flush_page(group.place); // the order of the fid
    const std::size_t per_page = options_.page_bytes;
    const std::size_t count = (bytes + per_page - 1) / per_page;
    if (block_for_slow(group)) return refuse();
    if (pages_.free_count() < count) {
        flush();
        if (pages_.free_count() < count) return refuse();
    }
    // A message is dropped whole or not at all.
    Group takers;
    for (const Group::Member& member : group.members) {
        if (member.policy == SlowPolicy::drop && has_its_share(member)) {
            member.subscriber->add_gap(fid, 1);
            ++counters_.dropped;
        } else {
            takers.members.push_back(member);
        }
    }
    FragmentExtension fragment{.fid = fid,
                               .message_number = next_number_++,
                               .offset = 0,
                               .total = static_cast<std::uint32_t>(bytes),
                               .status = status};
    for (std::size_t offset = 0; offset < bytes; offset += per_page) {
        const std::uint32_t page = *pages_.take();
        const std::size_t part = std::min(per_page, bytes - offset);
        copy_parts(parts, offset, pages_.memory(page).first(part));
        fragment.offset = static_cast<std::uint32_t>(offset);
        std::array<std::byte, fragment_extension_bytes> extension;
        encode(fragment, extension);
        send_to_group(takers, page, part, extension);
    }
    return Status::ok;
}

// --- when they leave ------------------------------------------------------------------------

void BufferedPublishSocket::flush() {
    for (std::size_t place = 0; place < open_.size(); ++place) {
        if (open_[place].group != nullptr) flush_page(place);
    }
    flush_order_.clear();
    flush_timer_.cancel();
}

// Those whose time is over; they are in the order of their times.
void BufferedPublishSocket::flush_old() {
    const TimePoint now = links_.loop().now();
    while (!flush_order_.empty() && flush_order_.front().second <= now) {
        const auto [place, due] = flush_order_.front();
        flush_order_.pop_front();
        // A page that has left already may have given its place to another one.
        if (open_[place].group == nullptr || open_[place].due != due) continue;
        flush_pace_.on_flushed(now);
        flush_page(place);
    }
    arm_flush_timer();
}

void BufferedPublishSocket::arm_flush_timer() {
    while (!flush_order_.empty()) {
        const auto [place, due] = flush_order_.front();
        if (open_[place].group != nullptr && open_[place].due == due) {
            return flush_timer_.start_at(due);
        }
        flush_order_.pop_front();
    }
}

void BufferedPublishSocket::flush_idle() {
    for (std::size_t place = 0; place < open_.size(); ++place) {
        const Group* group = open_[place].group;
        if (group == nullptr) continue;
        const bool idle = std::ranges::all_of(
            group->members, [](const Group::Member& each) { return each.subscriber->is_idle(); });
        if (idle) flush_page(place);
    }
}

void BufferedPublishSocket::close() {
    flush();
    links_.close();
}

void BufferedPublishSocket::abort() {
    links_.abort();
}

const Publisher::Counters& BufferedPublishSocket::counters() noexcept {
    counters_.subscribers = links_.subscriber_count();
    return counters_;
}

void BufferedPublishSocket::on_page_released(std::uint32_t page) {
    pages_.release(page);
    on_progress();
}

void BufferedPublishSocket::on_debts_settled(PublicationId, std::size_t) {
    NETIO_CHECK_MSG(false, "a buffered publisher has no publications");
}

void BufferedPublishSocket::on_progress() {
    if (options_.flush_when_idle && !idle_timer_.armed()) {
        idle_timer_.start(Duration::zero());
    }
    if (std::exchange(capacity_wanted_, false)) handler_.on_writable(*this);
}

} // namespace netio::pubsub::inline v0_2
