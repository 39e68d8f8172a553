// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/copy.hpp"
#include "netio/base/option_check.hpp"
#include "pubsub/core/conflation.hpp"
#include "pubsub/publisher/history.hpp"
#include "pubsub/publisher/page_pool.hpp"
#include "pubsub/publisher/publisher_core.hpp"
#include "pubsub/publisher/stamp_clock.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

// Of kept messages, queued for a subscriber or in flight to it, and at most an eighth of the pool:
// beyond it only if that is nothing.
constexpr std::size_t late_limit_bytes = std::size_t{1} << 20;
// Kept messages that are examined for a late subscription in one turn.
constexpr std::size_t late_steps = 32768;

PageBudget checked_budget(const BufferedPublishSocket::Options& options) {
    validate(options.publisher);
    require_at_least("flush_time", options.flush_time.count(), 0);
    require_option(options.flush_time <= longest_time, "flush_time must be at most a year");
    require_between("newest_bytes", options.newest_bytes, 1, SIZE_MAX);
    History::check(options.history_limit_bytes, options.history_time);
    return PageBudget{
        {.page_size_bytes = options.page_size_bytes,
         .page_count = options.page_count,
         .queue_limit_bytes = options.queue_limit_bytes,
         .watermark_bytes = options.watermark_bytes,
         // Time stamps are parts of messages here: the first bytes.
         .largest_message_bytes = options.publisher.largest_message_bytes +
                                  time_stamp::bytes_of(options.publisher.time_stamps)}};
}

// Subscribers learn at connect how large a message they must be able to receive.
Publisher::Options announced(Publisher::Options publisher, std::size_t message_limit) {
    publisher.largest_message_bytes = message_limit;
    return publisher;
}

struct Record {
    Fid fid{};
    std::span<const std::byte> message;
    std::uint8_t status = 0;
};

std::vector<Record> reversed_records(std::span<const std::byte> page) {
    std::vector<Record> records;
    const bool sound =
        visit_page(page, [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
            records.push_back({.fid = fid, .message = message, .status = status});
            return true;
        });
    NETIO_CHECK(sound);
    std::ranges::reverse(records);
    return records;
}

} // namespace

// Fills pages, sends them to the subscribers by their policies, and decides when a page is sent.
// For a subscriber that holds its limit the policy decides: it does not get the page, publishing
// waits, or the newest message of each fid is stored until the subscriber has been sent everything
// else.
class BufferedPublisher final : public PublisherCore {
  public:
    BufferedPublisher(Transport& transport, const BufferedPublishSocket::Options& options,
                      const User& user)
        : BufferedPublisher{transport, options, checked_budget(options), user} {}
    ~BufferedPublisher() override { destroy_sessions(); }

    Status publish(Fid fid, MessageParts parts, std::uint8_t status, std::int64_t time);
    const HistoryLog* history() override;
    void flush();
    void flush(Fid fid);
    std::size_t message_limit() const noexcept {
        return limits_.message_limit() - time_stamp::bytes_of(stamps());
    }
    PublisherSnapshot take_snapshot(const SnapshotLimits& limits) {
        PublisherSnapshot snapshot = PublisherCore::take_snapshot(limits);
        if (history_) snapshot.history = history_->snapshot();
        return snapshot;
    }

  private:
    BufferedPublisher(Transport& transport, const BufferedPublishSocket::Options& options,
                      const PageBudget& limits, const User& user);

    void before_change() override { flush(); }
    void before_end() override { flush(); }
    void on_unwanted(SubscriberId subscriber, std::span<const FidRange> fids) override;
    void on_asked(Subscriber& subscriber, std::span<const FidRange> fids,
                  std::optional<SlowPolicy> policy) override;
    void send_conflated(Subscriber& subscriber) override;
    void on_returned(const SendQueue::Returned& returned) override;
    std::uint64_t on_taken_back(Subscriber& subscriber, const SendQueue::TakenBack& taken) override;
    void on_progress() override;
    void on_late(Subscriber& subscriber, std::vector<FidRange> fids) override;

    // A message that needs several pages of its own.
    struct Large {
        Fid fid{};
        std::uint8_t status = 0;
        MessageParts parts;
        std::size_t bytes = 0;
    };

    Status publish_whole(Fid fid, MessageParts parts, std::size_t bytes, std::uint8_t status);
    Status append(Group& group, Fid fid, MessageParts parts, std::size_t bytes,
                  std::uint8_t status);
    std::byte* reserve(Group& group, Fid fid, std::uint8_t status, std::size_t bytes);
    bool open_page(Group& group, std::size_t record_bytes);
    Status publish_large(Group& group, const Large& message);
    template <typename Attempt>
    bool make_room(std::size_t bytes, Attempt attempt);
    bool must_wait_for(std::span<const Interest> members, PageBudget::Offer offer);

    // `reason`: the counter of why the page is sent.
    void flush_page(std::size_t place, std::uint64_t& reason);
    void leave_or_fill_further(Group& group);
    void flush_all(std::uint64_t& reason);
    void flush_old();
    void flush_idle();
    bool is_idle(const Group& group);
    bool is_busy(const Group& group);
    bool must_queue(const Group& group);

    Admit admit(const Interest& member, const PageBudget::Offer& offer);
    void send(std::uint32_t page, std::size_t bytes, std::span<const Interest> members);
    std::vector<Interest> takers_of(std::span<const Interest> members, const Large& message);
    void send_large(std::span<const Interest> takers, const Large& message,
                    std::span<const std::uint32_t> pages);
    void send_page(std::uint32_t page, const Interest& member,
                   std::span<const std::byte> extension);
    void add_dropped(std::uint32_t page, PendingGaps& gap);
    void drop_page(std::uint32_t page, Subscriber& subscriber);

    void conflate_page(std::uint32_t page, Subscriber& subscriber);
    void conflate(Subscriber& subscriber, Fid fid, MessageParts parts, std::uint8_t status);
    bool send_conflated_page(ConflationStore& store, Subscriber& subscriber);
    std::optional<std::uint32_t> take_page(std::size_t least, std::size_t most);
    bool send_conflated_large(ConflationStore& store, Subscriber& subscriber);
    void retry_conflated_if_needed();

    bool must_wait_for_late(Fid fid, std::size_t bytes);
    void keep(const HistoryLog::Head& head, MessageParts parts);
    void start_late();
    void serve_late();
    void serve(History::CatchUp& late);
    bool send_kept_page(History::CatchUp& late, std::size_t& steps);
    bool send_kept_large(const Interest& taker, const HistoryLog::Message& message);
    void go_live(std::size_t at);

    Publisher::Counters& counters_;
    PageBudget limits_;
    PageStore pages_;
    OpenPages open_;
    ConflationTable conflation_;
    FlushClock clock_;
    std::uint32_t next_number_ = 0;    // distinguishes consecutive large messages
    bool conflated_waits_ = false;     // for memory
    std::unique_ptr<History> history_; // null: no messages are kept
    std::vector<SubscriberId> waited_for_;
    bool late_waits_ = false; // for memory
    Timer late_timer_;        // late subscriptions can be sent more
};

BufferedPublisher::BufferedPublisher(Transport& transport,
                                     const BufferedPublishSocket::Options& options,
                                     const PageBudget& limits, const User& user)
    : PublisherCore{transport,
                    announced(options.publisher, limits.message_limit()),
                    {.pool = limits.pool(),
                     .largest = limits.largest(),
                     .required_receive_bytes =
                         limits.page_size_bytes() + fragment_extension_bytes + frame_header_bytes,
                     .keeps_newest = true},
                    user},
      counters_{user.counters}, limits_{limits}, pages_{limits_.pool()}, open_{pages_, limits_},
      conflation_{options.newest_bytes, options.publisher.ranges_per_subscriber_limit},
      clock_{loop(),
             {.flush_time = options.flush_time, .when_idle = options.flush_when_idle},
             [this] { flush_old(); },
             [this] { flush_idle(); }},
      late_timer_{loop(), [this] {
                      serve_late();
                      notify_writable();
                  }} {
    history_ = History::make(options.history_limit_bytes, options.history_time);
}

Status BufferedPublisher::publish(Fid fid, MessageParts parts, std::uint8_t status,
                                  std::int64_t time) {
    const std::size_t bytes = size_of(parts);
    if (stamps().clock == StampClock::none) return publish_whole(fid, parts, bytes, status);
    std::array<std::byte, time_stamp::bytes> stamp;
    wire::store(stamp.data(), time);
    std::array<std::span<const std::byte>, 8> few{stamp};
    std::vector<std::span<const std::byte>> many;
    std::span<std::span<const std::byte>> all{few};
    if (parts.size() >= few.size()) {
        many.assign(parts.size() + 1, stamp);
        all = many;
    }
    std::ranges::copy(parts, all.begin() + 1);
    const MessageParts stamped = all.first(parts.size() + 1);
    return publish_whole(fid, stamped, bytes + stamp.size(), status);
}

// `parts` have the time stamp.
Status BufferedPublisher::publish_whole(Fid fid, MessageParts parts, std::size_t bytes,
                                        std::uint8_t status) {
    if (is_closing()) return Status::closed;
    if (bytes > limits_.message_limit()) return Status::too_large;

    const FanOut::Found found = fan_out().lookup(fid);
    const bool is_wanted = !found.group->members.empty() || found.group->has_late;
    if (!is_wanted && fan_out().is_owned_elsewhere(*found.group)) return Status::not_owned;
    if (history_ && must_wait_for_late(fid, bytes)) return refuse(fid);
    if (!found.group->members.empty()) {
        const bool fits = bytes + page::header_bytes <= limits_.page_size_bytes();
        const Status outcome =
            fits ? append(*found.group, fid, parts, bytes, status)
                 : publish_large(*found.group,
                                 {.fid = fid, .status = status, .parts = parts, .bytes = bytes});
        if (outcome != Status::ok) return outcome;
    }
    const std::uint64_t number = found.published++;
    if (history_)
        keep({.fid = fid, .status = status, .number = number, .time = loop().now()}, parts);
    if (!is_wanted) {
        ++counters_.without_subscribers;
        return Status::no_subscribers;
    }
    ++counters_.messages;
    counters_.bytes += bytes - time_stamp::bytes_of(stamps());
    return Status::ok;
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

// The group's page has reached its first size. While its subscribers are busy it is filled further,
// which delays no message.
void BufferedPublisher::leave_or_fill_further(Group& group) {
    if (open_.is_early(group)) {
        if (!is_busy(group)) return flush_page(group.place, counters_.pages_left.idle);
        if (open_.fill_further(group)) return;
    }
    flush_page(group.place, counters_.pages_left.full);
}

// Where a message goes in the group's open page, or in a new one; nullptr: publish() must return
// `again`.
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

// Makes room for an attempt that needs `bytes`. Returns whether it succeeded.
template <typename Attempt>
bool BufferedPublisher::make_room(std::size_t bytes, Attempt attempt) {
    if (attempt()) return true;
    flush_all(counters_.pages_left.full); // frees unused memory now, the rest later
    // Memory of droppable messages, and of pages that are sent to no subscriber, must be reclaimed
    // here, because no event follows that would end the wait. Free memory may be fragmented: then
    // more is reclaimed than `bytes`.
    std::size_t free = 0;
    do {
        if (attempt()) return true;
        free = budget().free();
        reclaim_memory(free + 1);
    } while (budget().free() > free);
    note_needed(bytes);
    return false;
}

bool BufferedPublisher::open_page(Group& group, std::size_t record_bytes) {
    reclaim_memory();
    const std::size_t free = open_.free(budget().free());
    if (must_wait_for(group.members, {.bytes = record_bytes, .free = free})) return false;
    const std::size_t most = budget().piece(limits_.page_size_bytes(), free);
    if (!make_room(record_bytes, [&] { return open_.open(group, record_bytes, most); }))
        return false;
    clock_.on_page_opened();
    return true;
}

Status BufferedPublisher::publish_large(Group& group, const Large& message) {
    // Earlier messages of the fid must be sent first.
    if (group.place != Group::nowhere) flush_page(group.place, counters_.pages_left.full);
    reclaim_memory(message.bytes);
    const std::size_t free = open_.free(budget().free());
    if (must_wait_for(group.members, {.bytes = message.bytes, .is_large = true, .free = free}))
        return refuse(message.fid);
    std::vector<std::uint32_t> pages;
    const auto take_pages = [&] {
        pages = open_.take_pages(message.bytes);
        return !pages.empty();
    };
    if (!make_room(message.bytes, take_pages)) return refuse(message.fid);
    send_large(takers_of(group.members, message), message, pages);
    return Status::ok;
}

// --- when pages are sent ---------------------------------------------------------------------

void BufferedPublisher::flush_page(std::size_t place, std::uint64_t& reason) {
    ++reason;
    const OpenPages::Filled filled = open_.take(place);
    send(filled.page, filled.bytes, filled.group->members);
    retry_conflated_if_needed();
}

void BufferedPublisher::flush() {
    flush_all(counters_.pages_left.asked);
}

void BufferedPublisher::flush_all(std::uint64_t& reason) {
    open_.for_each([&](std::size_t place) { flush_page(place, reason); });
    clock_.on_all_flushed();
}

void BufferedPublisher::flush(Fid fid) {
    // Messages of before the last change of the groups were sent at that change.
    if (fan_out().fids().find_current(fid) == nullptr) return;
    const Group& group = *fan_out().lookup(fid).group;
    if (group.place != Group::nowhere) flush_page(group.place, counters_.pages_left.asked);
}

// Every open page was opened since the last call, or was kept then, so all are due. But a page that
// would have to wait in all queues is filled further instead, which delays no message.
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

// The page would wait in the queue of every subscriber.
bool BufferedPublisher::must_queue(const Group& group) {
    return std::ranges::all_of(group.members, [this](const Interest& member) {
        return subscriber_of(member).queue().usage().waiting > 0;
    });
}

void BufferedPublisher::flush_idle() {
    open_.for_each([this](std::size_t place) {
        if (is_idle(open_.group(place))) flush_page(place, counters_.pages_left.idle);
    });
}

// Subscribers with a dropping policy are not waited for. If there are no others, one must be idle.
bool BufferedPublisher::is_idle(const Group& group) {
    bool any_idle = false;
    for (const Interest& member : group.members) {
        const bool idle = subscriber_of(member).is_idle();
        if (!idle && !may_drop(member.policy)) return false;
        any_idle = any_idle || idle;
    }
    return any_idle;
}

// A page that is sent now would wait: in a queue, or for all copies that are in flight. Subscribers
// with a dropping policy do not count.
bool BufferedPublisher::is_busy(const Group& group) {
    std::size_t in_flight = 0;
    for (const Interest& member : group.members) {
        if (may_drop(member.policy)) continue;
        const QueueUsage& usage = subscriber_of(member).queue().usage();
        in_flight += usage.posted;
        if (usage.waiting > 0 || in_flight >= PageBudget::busy_bytes) return true;
    }
    return false;
}

// --- sending ------------------------------------------------------------------------------

Admit BufferedPublisher::admit(const Interest& member, const PageBudget::Offer& offer) {
    const Subscriber& subscriber = subscriber_of(member);
    if (subscriber.progress.reclaimed && member.policy == SlowPolicy::drop) return Admit::drop;
    // New messages follow those that are conflated already. A subscriber that can be sent something
    // now is not conflated for having been reclaimed, because no event would end that.
    if (member.policy == SlowPolicy::newest &&
        (subscriber.has_conflated || (subscriber.progress.reclaimed && !subscriber.can_send_now())))
        return Admit::drop;
    if (subscriber.queue().gaps_are_full())
        return may_drop(member.policy) ? Admit::drop : Admit::block;
    return limits_.admit(subscriber.queue().usage(), member.policy, budget(), offer);
}

// Whether publishing to these members has to wait for one of them. If so, on_progress() follows.
bool BufferedPublisher::must_wait_for(std::span<const Interest> members, PageBudget::Offer offer) {
    const bool has_ample_space = budget().has_ample_space(offer.bytes, offer.free);
    bool wait = false;
    for (const Interest& member : members) {
        offer.is_confined = !has_ample_space && !subscriber_of(member).can_send_now(offer.bytes);
        if (admit(member, offer) != Admit::block) continue;
        wait_for(member);
        wait = true;
    }
    return wait;
}

// Sends a page of records to the members. It was the caller's until now.
void BufferedPublisher::send(std::uint32_t page, std::size_t bytes,
                             std::span<const Interest> members) {
    pages_.seal(page, bytes, PageStore::Contents::records, {}, budget());
    reclaim_memory();
    bool is_sent = false;
    for (const Interest& member : members) {
        Subscriber& subscriber = subscriber_of(member);
        if (subscriber.stage() == Subscriber::Stage::gone) continue; // its group becomes void
        if (admit(member, {}) == Admit::drop) {
            member.policy == SlowPolicy::newest ? conflate_page(page, subscriber)
                                                : drop_page(page, subscriber);
        } else {
            send_page(page, member, {});
            is_sent = true;
        }
    }
    if (is_sent) ++counters_.pages;
    pages_.release(page, budget());
}

void BufferedPublisher::send_large(std::span<const Interest> takers, const Large& message,
                                   std::span<const std::uint32_t> pages) {
    FragmentExtension fragment{.fid = message.fid,
                               .message_number = next_number_++,
                               .offset = 0,
                               .total = static_cast<std::uint32_t>(message.bytes),
                               .status = message.status};
    std::size_t offset = 0;
    for (const std::uint32_t page : pages) {
        const std::size_t part = std::min(
            {pages_.memory(page).size(), limits_.page_size_bytes(), message.bytes - offset});
        copy_parts(message.parts, offset, pages_.memory(page).first(part));
        pages_.seal(page, part,
                    offset == 0 ? PageStore::Contents::first_fragment
                                : PageStore::Contents::later_fragment,
                    {.fid = message.fid, .status = message.status}, budget());
        fragment.offset = static_cast<std::uint32_t>(offset);
        std::array<std::byte, fragment_extension_bytes> extension;
        encode(fragment, extension);
        for (const Interest& member : takers)
            send_page(page, member, extension);
        pages_.release(page, budget());
        offset += part;
    }
    if (!takers.empty()) counters_.pages += pages.size();
}

// A message is dropped as a whole or not at all.
std::vector<Interest> BufferedPublisher::takers_of(std::span<const Interest> members,
                                                   const Large& message) {
    std::vector<Interest> takers;
    for (const Interest& member : members) {
        Subscriber& subscriber = subscriber_of(member);
        if (subscriber.stage() == Subscriber::Stage::gone) continue;
        if (admit(member, {.bytes = message.bytes, .is_large = true}) != Admit::drop) {
            takers.push_back(member);
        } else if (member.policy == SlowPolicy::newest) {
            conflate(subscriber, message.fid, message.parts, message.status);
        } else {
            subscriber.add_gap(message.fid, 1);
            count_dropped(message.fid);
        }
    }
    return takers;
}

void BufferedPublisher::send_page(std::uint32_t page, const Interest& member,
                                  std::span<const std::byte> extension) {
    pages_.add_user(page);
    if (member.late) history_->note_sent(page, member.subscriber, pages_.size(page));
    subscriber_of(member).send_frame(
        extension.empty() ? page_kind : fragment_kind, extension, pages_.slice(page),
        {.cookie = Cookie{page},
         .amount = pages_.size(page),
         .droppable = may_drop(member.policy) && !member.late,
         .limited = member.policy == SlowPolicy::disconnect,
         .continues = pages_.contents(page) == PageStore::Contents::later_fragment,
         .mark = member.policy == SlowPolicy::newest && !member.late
                     ? conflation_.requests(member.subscriber)
                     : 0});
    watch_progress();
}

void BufferedPublisher::add_dropped(std::uint32_t page, PendingGaps& gap) {
    const auto drop = [&](Fid fid) {
        gap.add(fid, 1);
        count_dropped(fid);
    };
    if (pages_.contents(page) == PageStore::Contents::first_fragment)
        drop(pages_.fragment(page).fid);
    if (pages_.contents(page) != PageStore::Contents::records) return;
    const bool sound =
        visit_page(pages_.memory(page), [&](Fid fid, std::span<const std::byte>, std::uint8_t) {
            drop(fid);
            return true;
        });
    NETIO_CHECK(sound);
}

void BufferedPublisher::drop_page(std::uint32_t page, Subscriber& subscriber) {
    PendingGaps gap;
    add_dropped(page, gap);
    for (const FidCount& dropped : gap.take())
        subscriber.add_gap(dropped.fid, dropped.count);
}

std::uint64_t BufferedPublisher::on_taken_back(Subscriber& subscriber,
                                               const SendQueue::TakenBack& taken) {
    const std::uint64_t before = counters_.dropped;
    const auto conflate_or_drop = [&](Fid fid, MessageParts parts, std::uint8_t status) {
        using Older = ConflationStore::Older;
        ConflationStore* const store = conflation_.store_of(subscriber.id(), fid, taken.mark);
        const Older older =
            store != nullptr ? store->put_older(fid, parts, status) : Older::not_last;
        if (older != Older::not_last) subscriber.has_conflated = true;
        if (older == Older::not_last) taken.gap->add(fid, 1);
        if (older != Older::kept) count_dropped(fid);
    };
    const auto first = static_cast<std::uint32_t>(taken.cookies.front());
    if (conflation_.store_of(subscriber.id()) == nullptr) {
        add_dropped(first, *taken.gap);
    } else if (pages_.contents(first) == PageStore::Contents::records) {
        for (const Record& each : reversed_records(pages_.memory(first)))
            conflate_or_drop(each.fid, {&each.message, 1}, each.status);
    } else {
        std::vector<std::span<const std::byte>> parts;
        for (const Cookie page : taken.cookies)
            parts.emplace_back(pages_.memory(static_cast<std::uint32_t>(page)));
        conflate_or_drop(pages_.fragment(first).fid, parts, pages_.fragment(first).status);
    }
    for (const Cookie page : taken.cookies)
        pages_.release(static_cast<std::uint32_t>(page), budget());
    return counters_.dropped - before;
}

// --- conflation ---------------------------------------------------------------------------

void BufferedPublisher::conflate_page(std::uint32_t page, Subscriber& subscriber) {
    const bool sound = visit_page(
        pages_.memory(page), [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
            conflate(subscriber, fid, {&message, 1}, status);
            return true;
        });
    NETIO_CHECK(sound);
}

void BufferedPublisher::conflate(Subscriber& subscriber, Fid fid, MessageParts parts,
                                 std::uint8_t status) {
    ConflationStore* const store = conflation_.store_of(subscriber.id());
    NETIO_CHECK(store != nullptr);
    for (const Fid dropped : store->put(fid, parts, status)) {
        count_dropped(dropped);
        subscriber.stats.note_dropped(1);
    }
    if (!std::exchange(subscriber.has_conflated, true)) subscriber.request_capacity();
    watch_progress();
}

void BufferedPublisher::on_asked(Subscriber& subscriber, std::span<const FidRange> fids,
                                 std::optional<SlowPolicy> policy) {
    const ConflationStore::Forgotten gone = conflation_.note(subscriber.id(), fids, policy);
    for (const Fid fid : gone.dropped_now) {
        count_dropped(fid);
        subscriber.stats.note_dropped(1);
    }
    for (const FidCount& dropped : gone.dropped)
        subscriber.queue_gap(dropped);
    subscriber.has_conflated = conflation_.keeps(subscriber.id());
}

void BufferedPublisher::send_conflated(Subscriber& subscriber) {
    ConflationStore* const store = conflation_.store_of(subscriber.id());
    while (store != nullptr && !store->empty()) {
        if (!subscriber.may_send_conflated()) return;
        for (const FidCount& dropped : store->take_dropped())
            subscriber.queue_gap(dropped);
        if (store->has_messages() && !send_conflated_page(*store, subscriber)) {
            conflated_waits_ = true;
            return;
        }
    }
    subscriber.has_conflated = false;
}

// Sends a page of conflated messages, or one large message. Returns false if there is no memory.
bool BufferedPublisher::send_conflated_page(ConflationStore& store, Subscriber& subscriber) {
    const std::size_t least = store.front().bytes.size() + page::header_bytes;
    if (least > limits_.page_size_bytes()) return send_conflated_large(store, subscriber);
    const std::size_t most = std::min(limits_.page_size_bytes(), store.bytes());
    const auto page = take_page(least, most);
    if (!page) return false;
    const std::span<std::byte> memory = pages_.memory(*page);
    PageWriter writer{memory.first(std::min(memory.size(), limits_.page_size_bytes()))};
    while (store.has_messages()) {
        const ConflationStore::Message& message = store.front();
        std::byte* const out = writer.append(message.fid, message.status, message.bytes.size());
        if (out == nullptr) break;
        copy_bytes(out, message.bytes);
        store.pop_front();
    }
    pages_.seal(*page, writer.used(), PageStore::Contents::records, {}, budget());
    send_page(*page, {.subscriber = subscriber.id(), .policy = SlowPolicy::newest}, {});
    ++counters_.pages;
    pages_.release(*page, budget());
    return true;
}

// A page of the caller's own.
std::optional<std::uint32_t> BufferedPublisher::take_page(std::size_t least, std::size_t most) {
    if (const auto page = pages_.open(least, most)) return page;
    open_.shrink(0);
    return pages_.open(least, most);
}

bool BufferedPublisher::send_conflated_large(ConflationStore& store, Subscriber& subscriber) {
    const ConflationStore::Message& message = store.front();
    const std::vector<std::uint32_t> pages = open_.take_pages(message.bytes.size());
    if (pages.empty()) return false;
    const std::span<const std::byte> whole{message.bytes};
    const Interest taker{.subscriber = subscriber.id(), .policy = SlowPolicy::newest};
    send_large(
        {&taker, 1},
        {.fid = message.fid, .status = message.status, .parts = {&whole, 1}, .bytes = whole.size()},
        pages);
    store.pop_front();
    return true;
}

void BufferedPublisher::on_returned(const SendQueue::Returned& returned) {
    const auto page = static_cast<std::uint32_t>(returned.cookie);
    pages_.release(page, budget());
    if (history_ && history_->returned(page)) start_late();
    on_progress();
}

void BufferedPublisher::on_unwanted(SubscriberId subscriber, std::span<const FidRange> fids) {
    Subscriber& it = subscribers()[subscriber];
    if (it.stage() == Subscriber::Stage::gone) conflation_.remove(subscriber);
    if (!history_) return;
    history_->end(subscriber, fids);
    note_late(it, history_->late_of(subscriber));
}

void BufferedPublisher::retry_conflated_if_needed() {
    if (std::exchange(conflated_waits_, false)) retry_conflated();
}

void BufferedPublisher::on_progress() {
    clock_.on_progress();
    retry_conflated_if_needed();
    if (std::exchange(late_waits_, false)) start_late();
    notify_writable();
}

// --- history ------------------------------------------------------------------------------

const HistoryLog* BufferedPublisher::history() {
    if (!history_) return nullptr;
    history_->expire(loop().now());
    return &history_->log();
}

void BufferedPublisher::on_late(Subscriber& subscriber, std::vector<FidRange> fids) {
    history_->begin(subscriber.id(), std::move(fids));
    note_late(subscriber, history_->late_of(subscriber.id()));
    serve_late(); // now, while all that it was promised is kept
}

// Whether publishing has to wait for a late subscription. If so, on_progress() follows.
bool BufferedPublisher::must_wait_for_late(Fid fid, std::size_t bytes) {
    const auto may_wait = [this](SubscriberId subscriber, Fid of) {
        return !may_drop(fan_out().policy_of(subscriber, of));
    };
    waited_for_.clear();
    if (!history_->must_wait(fid, bytes, may_wait, waited_for_)) return false;
    for (const SubscriberId each : waited_for_)
        wait_for({.subscriber = each, .policy = fan_out().policy_of(each, fid)});
    return true;
}

void BufferedPublisher::keep(const HistoryLog::Head& head, MessageParts parts) {
    history_->keep(head, parts, [this](History::CatchUp& late, Fid fid, bool is_new) {
        if (is_new && !may_drop(fan_out().policy_of(late.subscriber, fid))) {
            late.overrun = true;
            start_late();
            return;
        }
        subscribers()[late.subscriber].add_gap(fid, 1);
        count_dropped(fid);
    });
}

void BufferedPublisher::start_late() {
    if (!late_timer_.armed()) late_timer_.start(Duration::zero());
}

// Must not call the user: it may run within a request.
void BufferedPublisher::serve_late() {
    auto& all = history_->late();
    for (History::CatchUp& each : all) {
        Subscriber& subscriber = subscribers()[each.subscriber];
        if (subscriber.stage() == Subscriber::Stage::gone) continue;
        if (!each.overrun) serve(each);
        if (each.overrun && !std::exchange(each.ended, true)) end_overrun(subscriber);
    }
    for (std::size_t at = 0; at < all.size();)
        all[at].next == history_->log().end() && !all[at].overrun ? go_live(at) : void(++at);
}

// Sends what the limits permit.
void BufferedPublisher::serve(History::CatchUp& late) {
    const std::size_t limit = std::min(late_limit_bytes, budget().pool() / 8);
    std::size_t steps = late_steps;
    while (history_->find(late, steps)) {
        const std::size_t outstanding = history_->outstanding(late.subscriber);
        const bool is_much = outstanding >= limit || budget().is_short();
        if (outstanding > 0 && is_much) return; // on_returned() follows
        const bool is_full = subscribers()[late.subscriber].queue().gaps_are_full();
        bool is_sent = !is_full && send_kept_page(late, steps);
        if (!is_sent && !is_full && !open_.empty()) {
            flush_all(counters_.pages_left.full); // their memory becomes free
            is_sent = send_kept_page(late, steps);
        }
        if (!is_sent) {
            late_waits_ = true; // until something was sent, or memory has become free
            return;
        }
    }
    if (steps == 0) start_late();
}

// Sends a page of kept messages, or one large message. Returns false if there is no memory.
bool BufferedPublisher::send_kept_page(History::CatchUp& late, std::size_t& steps) {
    const HistoryLog& log = history_->log();
    const HistoryLog::Message next = log.at(late.next);
    const Interest taker{.subscriber = late.subscriber,
                         .policy = fan_out().policy_of(late.subscriber, next.fid),
                         .late = true};
    const std::size_t least = next.bytes + page::header_bytes;
    if (least > limits_.page_size_bytes()) {
        if (!send_kept_large(taker, next)) return false;
        late.next = next.next;
        return true;
    }
    const std::size_t usual = budget().piece(limits_.page_size_bytes(), budget().free());
    const std::size_t rest = static_cast<std::size_t>(log.end() - late.next);
    const auto page = take_page(least, std::max(least, std::min(usual, rest)));
    if (!page) return false;
    const std::span<std::byte> memory = pages_.memory(*page);
    PageWriter writer{memory.first(std::min(memory.size(), limits_.page_size_bytes()))};
    history_->fill(late, writer, steps);
    pages_.seal(*page, writer.used(), PageStore::Contents::records, {}, budget());
    send_page(*page, taker, {});
    ++counters_.pages;
    pages_.release(*page, budget());
    return true;
}

bool BufferedPublisher::send_kept_large(const Interest& taker, const HistoryLog::Message& message) {
    const std::vector<std::uint32_t> pages = open_.take_pages(message.bytes);
    if (pages.empty()) return false;
    send_large({&taker, 1},
               {.fid = message.fid,
                .status = message.status,
                .parts = message.parts,
                .bytes = message.bytes},
               pages);
    return true;
}

// All kept messages are in the queue, so new ones follow them from now on.
void BufferedPublisher::go_live(std::size_t at) {
    auto& all = history_->late();
    const History::CatchUp late = std::move(all[at]);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
    flush();
    fan_out().make_live(late.subscriber, late.fids);
    note_late(subscribers()[late.subscriber], history_->late_of(late.subscriber));
}

// --- the socket ---------------------------------------------------------------------------

BufferedPublishSocket::BufferedPublishSocket(Transport& transport, const Options& options,
                                             Handler& handler)
    : publisher_{std::make_unique<BufferedPublisher>(
          transport, options,
          PublisherCore::User{.publisher = *this, .handler = handler, .counters = counters_})},
      fids_{&publisher_->fan_out().fids()}, message_limit_{publisher_->message_limit()},
      time_stamps_{options.publisher.time_stamps}, plain_end_{0}, stamped_end_{0} {
    if (publisher_->history() != nullptr) return;
    (time_stamps_ == StampClock::none ? plain_end_ : stamped_end_) = message_limit_ + 1;
}

BufferedPublishSocket::~BufferedPublishSocket() {
    check_destructor(publisher_->loop(), "BufferedPublishSocket", publisher_);
}

Status BufferedPublishSocket::publishv(Fid fid, std::span<const std::span<const std::byte>> parts,
                                       std::uint8_t status) {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    const std::int64_t time = time_stamp::of_call(time_stamps_);
    if (parts.size() == 1 && parts.front().size() < stamped_end_)
        return publish_at(time, fid, parts.front(), status);
    return publisher_->publish(fid, parts, status, time);
}

Status BufferedPublishSocket::publishv_at(std::int64_t time, Fid fid,
                                          std::span<const std::span<const std::byte>> parts,
                                          std::uint8_t status) {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    return publisher_->publish(fid, parts, status, time);
}

void BufferedPublishSocket::flush() {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->flush();
}

void BufferedPublishSocket::flush(Fid fid) {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->flush(fid);
}

void BufferedPublishSocket::close() {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->close();
}

void BufferedPublishSocket::abort() {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->abort();
}

std::vector<Endpoint> BufferedPublishSocket::endpoints() const {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    return publisher_->endpoints();
}

const Publisher::Counters& BufferedPublishSocket::counters() noexcept {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    return publisher_->counters();
}

PublisherSnapshot BufferedPublishSocket::snapshot(const SnapshotLimits& limits) {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    return publisher_->take_snapshot(limits);
}

void BufferedPublishSocket::check_caller(const char* type, const char* call) const noexcept {
    publisher_->loop().check_caller(type, call);
}

} // namespace netio::pubsub::inline v0_3
