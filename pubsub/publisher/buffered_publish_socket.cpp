// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// What a subscriber may hold if nobody says otherwise. If the publisher waits for it, more would
// only have pages leave the processor's cache between being written and being sent; if not, it is
// the pause that a subscriber survives.
constexpr std::size_t share_waited_for_bytes = std::size_t{1} << 20;
constexpr std::size_t share_dropped_at_bytes = std::size_t{4} << 20;

std::size_t pool_of(const BufferedPublishSocket::Options& options) {
    return ByteArena::rounded(options.page_bytes) * options.page_count;
}

BufferedPublishSocket::Options checked(BufferedPublishSocket::Options options) {
    validate(options.publisher);
    require_between("page_bytes", options.page_bytes, 256, largest_message_limit);
    require_between("page_count", options.page_count, 2, std::size_t{1} << 20);
    require_option(options.share_bytes <= pool_of(options) / 2,
                   "share_bytes is " + std::to_string(options.share_bytes) +
                       "; one stopped subscriber must not keep more than half of the memory from "
                       "the others, which is page_bytes * page_count = " +
                       std::to_string(pool_of(options)) + " bytes");
    require_between("watermark_bytes", options.watermark_bytes, 0, options.page_bytes);
    require_at_least("flush_time", options.flush_time.count(), 0);
    if (options.watermark_bytes == 0) options.watermark_bytes = options.page_bytes;
    return options;
}

// All memory but a page, which other groups may hold, carries the fragments of a large message.
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
    : options_{checked(options)}, handler_{handler}, loop_{transport.loop()},
      message_limit_{limit_of_messages(options_)}, pages_{pool_of(options_)},
      open_{pages_, options_.page_bytes, std::max(options_.page_bytes, pool_of(options_) / 4)},
      flush_pace_{options_.flush_time}, flush_timer_{loop_, [this] { flush_old(); }},
      idle_timer_{loop_, [this] { flush_idle(); }},
      sessions_{transport,
                announced(options_.publisher, message_limit_),
                {.pool = pool_of(options_),
                 .required_receive_bytes =
                     options_.page_bytes + fragment_extension_bytes + frame_header_bytes},
                static_cast<SubscriberSessions::Owner&>(*this),
                {.publisher = *this, .handler = handler}} {}

BufferedPublishSocket::~BufferedPublishSocket() = default;

std::vector<Endpoint> BufferedPublishSocket::endpoints() const {
    return sessions_.endpoints();
}

Status BufferedPublishSocket::publishv(Fid fid, MessageParts parts, std::uint8_t status) {
    if (sessions_.is_closing()) return Status::closed;
    const std::size_t bytes = size_of(parts);
    if (bytes > message_limit_) return Status::too_large;

    FanOut::FidState& state = sessions_.lookup(fid);
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
        if (open_.writer(group.place).used() >= options_.watermark_bytes) flush_page(group.place);
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

// Where a message goes in the group's open page, or in a new one; nullptr: nowhere now.
std::byte* BufferedPublishSocket::reserve(Group& group, Fid fid, std::uint8_t status,
                                          std::size_t bytes) {
    if (group.place != Group::nowhere) {
        std::byte* const out = open_.writer(group.place).append(fid, status, bytes);
        if (out != nullptr) return out;
        flush_page(group.place);
    }
    if (!open_page(group, bytes + page::header_bytes)) return nullptr;
    return open_.writer(group.place).append(fid, status, bytes);
}

bool BufferedPublishSocket::open_page(Group& group, std::size_t record_bytes) {
    sessions_.make_others_give_way();
    if (block_for_slow(group)) return false;
    if (!open_.open(group, record_bytes, sessions_.shares().piece(options_.page_bytes))) {
        flush(); // what leaves makes room, sooner or later
        return false;
    }
    if (options_.flush_time.count() > 0 && !flush_timer_.armed()) {
        flush_timer_.start_at(flush_pace_.next(loop_.now()));
    }
    if (options_.flush_when_idle && !idle_timer_.armed()) idle_timer_.start(Duration::zero());
    return true;
}

std::size_t BufferedPublishSocket::share_of(SlowPolicy policy) const noexcept {
    if (options_.share_bytes > 0) return options_.share_bytes;
    const std::size_t usual =
        policy == SlowPolicy::drop ? share_dropped_at_bytes : share_waited_for_bytes;
    return std::min(pool_of(options_) / 2, std::max(4 * options_.page_bytes, usual));
}

// Who holds less gets the next page, or all pages of the next message.
bool BufferedPublishSocket::has_its_share(const Interest& member) {
    return sessions_.subscriber(member.subscriber).holding().all() >=
           std::max<std::size_t>(1, sessions_.shares().allowance(share_of(member.policy)));
}

// Whether the policy makes the publisher wait for one of these.
bool BufferedPublishSocket::block_for_slow(const Group& group) {
    bool blocked = false;
    for (const Interest& member : group.members) {
        if (member.policy == SlowPolicy::drop || !has_its_share(member)) continue;
        sessions_.note_waited_for(member);
        blocked = true;
    }
    return blocked;
}

// --- pages that leave -----------------------------------------------------------------------

void BufferedPublishSocket::flush_page(std::size_t place) {
    const OpenPages::Filled filled = open_.take(place);
    pages_.seal(filled.page, filled.bytes, PageStore::Contents::records, {}, sessions_.shares());
    bool anybody = false;
    for (const Interest& member : filled.group->members) {
        Subscriber& subscriber = sessions_.subscriber(member.subscriber);
        if (subscriber.stage() == Subscriber::Stage::gone)
            continue; // its group is about to be void
        if (member.policy == SlowPolicy::drop && has_its_share(member)) {
            drop_page(filled.page, subscriber);
        } else {
            send_page(filled.page, subscriber, member, {});
            anybody = true;
        }
    }
    if (anybody) ++counters_.pages;
    pages_.release(filled.page, sessions_.shares()); // our own use of it
}

void BufferedPublishSocket::send_page(std::uint32_t page, Subscriber& subscriber,
                                      const Interest& member,
                                      std::span<const std::byte> extension) {
    pages_.add_user(page);
    subscriber.send_frame(
        extension.empty() ? page_kind : fragment_kind, extension, pages_.slice(page),
        {.cookie = Cookie{page},
         .amount = pages_.size(page),
         .droppable = member.policy == SlowPolicy::drop,
         .continues = pages_.contents(page) == PageStore::Contents::later_fragment});
    sessions_.keep_watch();
}

// A subscriber does not get this page.
void BufferedPublishSocket::tell_missed(std::uint32_t page, GapLedger& gap) {
    const auto miss = [&](Fid fid) {
        gap.add(fid, 1);
        ++counters_.dropped;
    };
    if (pages_.contents(page) == PageStore::Contents::first_fragment) miss(pages_.fid(page));
    if (pages_.contents(page) != PageStore::Contents::records) return;
    const bool sound =
        visit_page(pages_.memory(page), [&](Fid fid, std::span<const std::byte>, std::uint8_t) {
            miss(fid);
            return true;
        });
    NETIO_CHECK(sound);
}

void BufferedPublishSocket::drop_page(std::uint32_t page, Subscriber& subscriber) {
    GapLedger gap;
    tell_missed(page, gap);
    for (const FidCount& missed : gap.take())
        subscriber.add_gap(missed.fid, missed.count);
}

Status BufferedPublishSocket::publish_large(Group& group, Fid fid, MessageParts parts,
                                            std::size_t bytes, std::uint8_t status) {
    if (group.place != Group::nowhere) flush_page(group.place); // the order of the fid
    sessions_.make_others_give_way(bytes);
    if (block_for_slow(group)) return refuse();
    const std::vector<std::uint32_t> pages = take_pages(bytes);
    if (pages.empty()) return refuse();
    const std::vector<Interest> takers = takers_of(group, fid);
    FragmentExtension fragment{.fid = fid,
                               .message_number = next_number_++,
                               .offset = 0,
                               .total = static_cast<std::uint32_t>(bytes),
                               .status = status};
    std::size_t offset = 0;
    for (const std::uint32_t page : pages) {
        const std::size_t part =
            std::min({pages_.memory(page).size(), options_.page_bytes, bytes - offset});
        copy_parts(parts, offset, pages_.memory(page).first(part));
        pages_.seal(page, part,
                    offset == 0 ? PageStore::Contents::first_fragment
                                : PageStore::Contents::later_fragment,
                    fid, sessions_.shares());
        fragment.offset = static_cast<std::uint32_t>(offset);
        std::array<std::byte, fragment_extension_bytes> extension;
        encode(fragment, extension);
        for (const Interest& member : takers)
            send_page(page, sessions_.subscriber(member.subscriber), member, extension);
        pages_.release(page, sessions_.shares());
        offset += part;
    }
    if (!takers.empty()) counters_.pages += pages.size();
    return Status::ok;
}

// All that a message needs, or none.
std::vector<std::uint32_t> BufferedPublishSocket::take_pages(std::size_t bytes) {
    constexpr std::size_t smallest = 1024; // a fragment that is worth its frame
    std::vector<std::uint32_t> pages;
    open_.shrink(0);
    for (std::size_t left = bytes; left > 0;) {
        const std::size_t most = std::min(left, options_.page_bytes);
        const auto page = pages_.open(std::min(smallest, most), most);
        if (!page) {
            for (const std::uint32_t taken : pages)
                pages_.abandon(taken);
            flush();
            return {};
        }
        pages.push_back(*page);
        left -= std::min(most, pages_.memory(*page).size());
    }
    return pages;
}

// A message is dropped whole or not at all.
std::vector<Interest> BufferedPublishSocket::takers_of(const Group& group, Fid fid) {
    std::vector<Interest> takers;
    for (const Interest& member : group.members) {
        Subscriber& subscriber = sessions_.subscriber(member.subscriber);
        if (subscriber.stage() == Subscriber::Stage::gone) continue;
        if (member.policy == SlowPolicy::drop && has_its_share(member)) {
            subscriber.add_gap(fid, 1);
            ++counters_.dropped;
        } else {
            takers.push_back(member);
        }
    }
    return takers;
}

// --- when they leave ------------------------------------------------------------------------

void BufferedPublishSocket::flush() {
    open_.for_each([this](std::size_t place) { flush_page(place); });
    flush_timer_.cancel();
}

// All that are open have been opened since the last time, so all of them are due.
void BufferedPublishSocket::flush_old() {
    if (open_.empty()) return;
    flush_pace_.on_flushed(loop_.now());
    flush();
}

void BufferedPublishSocket::flush_idle() {
    open_.for_each([this](std::size_t place) {
        if (is_idle(open_.group(place))) flush_page(place);
    });
}

// Nobody is asked who would only miss messages: if all of them are such, one that is idle will do.
bool BufferedPublishSocket::is_idle(const Group& group) {
    bool anybody_idle = false;
    for (const Interest& member : group.members) {
        const bool idle = sessions_.subscriber(member.subscriber).is_idle();
        if (!idle && member.policy != SlowPolicy::drop) return false;
        anybody_idle = anybody_idle || idle;
    }
    return anybody_idle;
}

void BufferedPublishSocket::close() {
    flush();
    sessions_.close();
}

void BufferedPublishSocket::abort() {
    flush();
    sessions_.abort();
}

const Publisher::Counters& BufferedPublishSocket::counters() noexcept {
    counters_.subscribers = sessions_.subscriber_count();
    return counters_;
}

void BufferedPublishSocket::on_returned(const SendQueue::Returned& returned) {
    pages_.release(static_cast<std::uint32_t>(returned.cookie), sessions_.shares());
    on_progress();
}

void BufferedPublishSocket::on_taken_back(const Subscriber&, Cookie cookie, GapLedger& gap) {
    const auto page = static_cast<std::uint32_t>(cookie);
    tell_missed(page, gap);
    pages_.release(page, sessions_.shares());
}

void BufferedPublishSocket::on_progress() {
    if (options_.flush_when_idle && !idle_timer_.armed()) idle_timer_.start(Duration::zero());
    if (std::exchange(capacity_wanted_, false)) handler_.on_writable(*this);
}

} // namespace netio::pubsub::inline v0_2
