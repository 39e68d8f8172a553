// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/publish_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/option_check.hpp"
#include "netio/loop/check_caller.hpp"
#include "pubsub/publisher/delivery_tracker.hpp"
#include "pubsub/publisher/publisher_core.hpp"
#include "pubsub/publisher/stamp_clock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

constexpr std::size_t default_queue_limit_messages = 64;

PublishSocket::Options checked(PublishSocket::Options options) {
    validate(options.publisher);
    require_option(options.publisher.slow_policy != SlowPolicy::newest,
                   "slow_policy newest is for a BufferedPublishSocket, which copies messages; use "
                   "drop for messages that are not copied");
    // With a limit of 1, half of it would be 0.
    require_between("outstanding_limit", options.outstanding_limit, 2, UINT32_MAX);
    require_option(options.queue_limit_messages <= options.outstanding_limit / 2,
                   "queue_limit_messages is " + std::to_string(options.queue_limit_messages) +
                       "; one stopped subscriber must not keep more than half of "
                       "outstanding_limit, which is " +
                       std::to_string(options.outstanding_limit) + ", from the others");
    if (options.queue_limit_messages == 0) {
        options.queue_limit_messages =
            std::clamp<std::size_t>(options.outstanding_limit / 4, 1, default_queue_limit_messages);
    }
    return options;
}

// Subscribers must be able to receive a message with its time stamp.
Publisher::Options announced(Publisher::Options publisher) {
    publisher.largest_message_bytes += time_stamp::bytes_of(publisher.time_stamps);
    return publisher;
}

} // namespace

// Sends messages from the user's memory: keeps which subscribers have not been sent which of them,
// and when their cookies are returned.
class ZeroCopyPublisher final : public PublisherCore {
  public:
    ZeroCopyPublisher(Transport& transport, const PublishSocket::Options& options,
                      PublishSocket::Handler& handler, PublishSocket& socket)
        : ZeroCopyPublisher{transport, checked(options), handler, socket, Checked{}} {}
    ~ZeroCopyPublisher() override { destroy_sessions(); }

    Status publish(Fid fid, std::span<const Slice> slices, Cookie cookie,
                   const PublishSocket::Extras& extras);
    PublishSocket::Attempt try_publish(Fid fid, std::span<const Slice> slices, Cookie cookie,
                                       const PublishSocket::Extras& extras);
    Status resume(PublishTicket& ticket);

    std::size_t outstanding() const noexcept { return tracker_.outstanding(); }
    std::size_t segment_limit() noexcept { return subscribers().segment_limit(); }

  private:
    struct Checked {};
    ZeroCopyPublisher(Transport& transport, const PublishSocket::Options& options,
                      PublishSocket::Handler& handler, PublishSocket& socket, Checked checked);

    void before_end() override { finish_rest(partial_.take_over_all()); }
    void on_unwanted(SubscriberId subscriber, std::span<const FidRange> fids) override;
    void on_returned(const SendQueue::Returned& returned) override;
    std::uint64_t on_taken_back(Subscriber& subscriber, const SendQueue::TakenBack& taken) override;
    void on_progress() override { notify_writable(); }

    Status check(std::span<const Slice> slices, const PublishSocket::Extras& extras,
                 std::size_t& total_bytes) const;
    bool takes(const Interest& member) noexcept;
    bool may_wait(const Subscriber& subscriber) noexcept;
    template <typename Takes>
    bool must_wait_for(std::span<const Interest> members, Takes takes_more);
    std::optional<PublicationId> begin(Cookie cookie);
    void keep(PublicationId id, Fid fid, std::span<const Slice> slices, std::size_t total_bytes,
              const PublishSocket::Extras& extras);
    enum class Leaving : std::uint8_t { at_once, maybe_with_others };
    void hand_over(PublicationId id, Subscriber& subscriber, SlowPolicy policy, Leaving leaving);
    bool offer(PublicationId id, const Interest& member);
    void drop(PublicationId id, Subscriber& subscriber, Fid fid);
    void seal(PublicationId id, std::size_t frames = 1);
    void finish_rest(const PartialDeliveries::Rest& rest);
    void do_what_is_due();
    ZeroCopyMessage& message_of(PublicationId id) {
        return publications_[DeliveryTracker::place_of(id)];
    }

    PublishSocket& socket_;
    PublishSocket::Options options_;
    PublishSocket::Handler& handler_;
    Publisher::Counters counters_;
    DeliveryTracker tracker_;
    std::vector<ZeroCopyMessage> publications_; // by the tracker's place
    std::uint32_t next_number_ = 0;
    // Publications that ended within a call of the user's: the loop completes them.
    std::deque<DeliveryTracker::Ended> undelivered_;
    Timer due_timer_; // what a call has left to the loop
    PartialDeliveries partial_;
};

ZeroCopyPublisher::ZeroCopyPublisher(Transport& transport, const PublishSocket::Options& options,
                                     PublishSocket::Handler& handler, PublishSocket& socket,
                                     Checked)
    : PublisherCore{transport,
                    announced(options.publisher),
                    {.pool = options.outstanding_limit, .largest = 1, .required_receive_bytes = 0},
                    {.publisher = socket, .handler = handler, .counters = counters_}},
      socket_{socket}, options_{options}, handler_{handler}, tracker_{options.outstanding_limit},
      publications_(options.outstanding_limit), due_timer_{loop(), [this] { do_what_is_due(); }},
      partial_{[this] { due_timer_.start(Duration::zero()); }} {}

Status ZeroCopyPublisher::publish(Fid fid, std::span<const Slice> slices, Cookie cookie,
                                  const PublishSocket::Extras& extras) {
    std::size_t total_bytes = 0;
    const Status possible = check(slices, extras, total_bytes);
    if (possible != Status::ok) return possible;
    const FanOut::Found found = fan_out().lookup(fid);
    const Group& group = *found.group;
    if (group.members.empty()) {
        if (fan_out().is_owned_elsewhere(group)) return Status::not_owned;
        ++found.published;
        ++counters_.without_subscribers;
        return Status::no_subscribers;
    }
    reclaim_memory();
    const auto takes_more = [this](const Interest& each) { return takes(each); };
    if (partial_.holds(fid) || must_wait_for(group.members, takes_more)) return refuse(fid);
    const std::optional<PublicationId> id = begin(cookie);
    if (!id) return refuse(fid);
    ++found.published;
    keep(*id, fid, slices, total_bytes, extras);
    for (const Interest& member : group.members) {
        Subscriber& subscriber = subscriber_of(member);
        const bool drops =
            member.policy == SlowPolicy::drop && (subscriber.progress.reclaimed || !takes(member));
        drops ? drop(*id, subscriber, fid)
              : hand_over(*id, subscriber, member.policy, Leaving::maybe_with_others);
    }
    seal(*id);
    return Status::ok;
}

PublishSocket::Attempt ZeroCopyPublisher::try_publish(Fid fid, std::span<const Slice> slices,
                                                      Cookie cookie,
                                                      const PublishSocket::Extras& extras) {
    std::size_t total_bytes = 0;
    const Status possible = check(slices, extras, total_bytes);
    if (possible != Status::ok) return {.status = possible, .ticket = {}};
    const FanOut::Found found = fan_out().lookup(fid);
    if (fan_out().is_owned_elsewhere(*found.group))
        return {.status = Status::not_owned, .ticket = {}};
    const std::vector<Interest>& members = found.group->members;
    // Nothing is queued: the message is dropped for a subscriber with policy drop.
    const auto can_take = [this](const Interest& each) {
        return each.policy == SlowPolicy::drop || subscriber_of(each).can_send_now();
    };
    const Status expected = partial_.expected_status(fid, members, can_take);
    if (expected == Status::no_subscribers) {
        ++found.published;
        ++counters_.without_subscribers;
        return {.status = expected, .ticket = {}};
    }
    // An abandoned publication waits in the subscriber's queue. A queue that has reached its limit
    // must be sent first, or it would hold memory that other fids need.
    const auto can_be_left = [&](const Interest& each) {
        return can_take(each) || may_wait(subscriber_of(each));
    };
    if (expected == Status::partial && must_wait_for(members, can_be_left))
        return {.status = refuse(fid), .ticket = {}};
    for (const Interest& member : members)
        if (!can_take(member)) wait_for(member);
    std::optional<PublicationId> id;
    if (expected != Status::again) {
        reclaim_memory();
        id = begin(cookie);
    }
    if (!id) return {.status = refuse(fid), .ticket = {}};
    ++found.published;
    keep(*id, fid, slices, total_bytes, extras);
    std::vector<SubscriberId> left;
    for (const Interest& member : members)
        if (!offer(*id, member)) left.push_back(member.subscriber);
    if (left.empty()) {
        seal(*id);
        return {.status = Status::ok, .ticket = {}};
    }
    ++counters_.partial;
    note_partial();
    return {.status = Status::partial, .ticket = partial_.open(*id, fid, std::move(left))};
}

Status ZeroCopyPublisher::resume(PublishTicket& ticket) {
    const std::optional<PublicationId> id = partial_.find(ticket);
    const Status status = partial_.resume(ticket, [&](SubscriberId waiting) {
        const Fid fid = message_of(*id).fid;
        // Its policy may have changed.
        const Interest member{.subscriber = waiting, .policy = fan_out().policy_of(waiting, fid)};
        const bool settled = offer(*id, member);
        if (!settled) wait_for(member);
        return settled;
    });
    if (status == Status::ok) {
        seal(*id);
        due_timer_.start(Duration::zero()); // publishing to the fid is possible again
    } else if (status == Status::partial) {
        note_partial();
    }
    return status;
}

// The checks that do not depend on the subscribers.
Status ZeroCopyPublisher::check(std::span<const Slice> slices, const PublishSocket::Extras& extras,
                                std::size_t& total_bytes) const {
    const std::size_t stamp = time_stamp::bytes_of(stamps());
    total_bytes = stamp + extras.header.size() + checked_size(slices);
    if (is_closing()) return Status::closed;
    if (slices.size() > slice_limit) return Status::too_many_segments;
    if (extras.header.size() > PublishSocket::header_limit) return Status::too_large;
    return total_bytes - stamp > options_.publisher.largest_message_bytes ? Status::too_large
                                                                          : Status::ok;
}

// Whether the subscriber may be given another message, to be sent now or later.
bool ZeroCopyPublisher::takes(const Interest& member) noexcept {
    const Subscriber& subscriber = subscriber_of(member);
    if (subscriber.stage() == Subscriber::Stage::gone) return false;
    if (subscriber.can_send_now()) return true;
    if (member.policy != SlowPolicy::drop) return may_wait(subscriber);
    const QueueUsage& usage = subscriber.queue().usage();
    if (subscriber.queue().gaps_are_full()) return false;
    return usage.waiting < options_.queue_limit_messages &&
           (usage.all() == 0 || usage.all() < budget().allowance(SIZE_MAX));
}

// Whether another message may wait for the subscriber. If not, publishing waits for it.
bool ZeroCopyPublisher::may_wait(const Subscriber& subscriber) noexcept {
    const QueueUsage& usage = subscriber.queue().usage();
    const MemoryBudget& memory = budget();
    if (subscriber.queue().gaps_are_full()) return false;
    return usage.waiting < options_.queue_limit_messages &&
           (memory.has_ample_space(1, memory.free()) ||
            usage.all() < memory.waiting_limit(memory.free()));
}

template <typename Takes>
bool ZeroCopyPublisher::must_wait_for(std::span<const Interest> members, Takes takes_more) {
    bool wait = false;
    for (const Interest& member : members) {
        if (member.policy == SlowPolicy::drop || takes_more(member)) continue;
        wait_for(member);
        wait = true;
    }
    return wait;
}

std::optional<PublicationId> ZeroCopyPublisher::begin(Cookie cookie) {
    // The loop must first complete those that ended within a call.
    if (undelivered_.size() >= tracker_.limit()) return std::nullopt;
    const std::optional<PublicationId> id = tracker_.begin(cookie);
    if (id) {
        budget().use(1);
        reclaim_memory();
    } else {
        note_needed(1);
    }
    return id;
}

void ZeroCopyPublisher::keep(PublicationId id, Fid fid, std::span<const Slice> slices,
                             std::size_t total_bytes, const PublishSocket::Extras& extras) {
    ZeroCopyMessage& publication = message_of(id);
    publication.fid = fid;
    publication.status = extras.status;
    const std::size_t stamp = time_stamp::bytes_of(stamps());
    if (stamp > 0) {
        wire::store(publication.header.data(),
                    extras.time ? *extras.time : time_stamp::of_call(stamps().clock));
    }
    publication.header_bytes = static_cast<std::uint8_t>(stamp + extras.header.size());
    std::ranges::copy(extras.header,
                      publication.header.begin() + static_cast<std::ptrdiff_t>(stamp));
    publication.number = next_number_++;
    publication.slice_count = slices.size();
    std::ranges::copy(slices, publication.slices.begin());
    publication.total_bytes = total_bytes;
    ++counters_.messages;
    counters_.bytes += total_bytes - stamp;
}

void ZeroCopyPublisher::hand_over(PublicationId id, Subscriber& subscriber, SlowPolicy policy,
                                  Leaving leaving) {
    const ZeroCopyMessage& publication = message_of(id);
    tracker_.add_pending(id, frames_for(publication, subscriber.session().body_limit()));
    subscriber.send_message(publication, {.cookie = Cookie{static_cast<std::uint64_t>(id)},
                                          .amount = 1,
                                          .droppable = policy == SlowPolicy::drop,
                                          .limited = policy == SlowPolicy::disconnect,
                                          .prompt = leaving == Leaving::at_once});
    watch_progress();
}

// For try_publish(), which queues nothing. Returns whether the subscriber was sent the message, or
// it was dropped for it.
bool ZeroCopyPublisher::offer(PublicationId id, const Interest& member) {
    Subscriber& subscriber = subscriber_of(member);
    if (subscriber.can_send_now()) {
        hand_over(id, subscriber, member.policy, Leaving::at_once);
    } else if (member.policy == SlowPolicy::drop) {
        drop(id, subscriber, message_of(id).fid);
    } else {
        return false;
    }
    return true;
}

void ZeroCopyPublisher::drop(PublicationId id, Subscriber& subscriber, Fid fid) {
    tracker_.note(id, Fate::dropped);
    subscriber.add_gap(fid, 1);
    count_dropped(fid);
}

// Called within a call of the user's: `frames` pending deliveries are completed, by default the one
// that begin() has added.
void ZeroCopyPublisher::seal(PublicationId id, std::size_t frames) {
    const auto ended = tracker_.complete(id, frames);
    if (!ended) return;
    budget().release(1);
    // Nothing is in flight, but a call must not call the user: the loop completes it.
    undelivered_.push_back(*ended);
    due_timer_.start(Duration::zero());
}

void ZeroCopyPublisher::finish_rest(const PartialDeliveries::Rest& rest) {
    for (const auto& [id, left] : rest) {
        const Fid fid = message_of(id).fid;
        for (const SubscriberId each : left)
            hand_over(id, subscribers()[each], fan_out().policy_of(each, fid),
                      Leaving::maybe_with_others);
        seal(id);
    }
}

void ZeroCopyPublisher::do_what_is_due() {
    finish_rest(partial_.take_over_abandoned());
    const DestructionWatch watch{destroyed_};
    // What the handler publishes now is completed in the next turn.
    for (std::size_t left = undelivered_.size(); left > 0; --left) {
        const DeliveryTracker::Ended ended = undelivered_.front();
        undelivered_.pop_front();
        handler_.on_publish_completed(socket_, ended.cookie, ended.outcome);
        if (watch.destroyed()) return;
    }
    on_progress();
}

void ZeroCopyPublisher::on_unwanted(SubscriberId subscriber, std::span<const FidRange> fids) {
    const bool gone = subscribers()[subscriber].stage() == Subscriber::Stage::gone;
    for (const PublicationId id : partial_.forget(subscriber, fids))
        tracker_.note(id, gone ? Fate::lost : Fate::unsubscribed);
}

void ZeroCopyPublisher::on_returned(const SendQueue::Returned& returned) {
    const PublicationId id{static_cast<std::uint64_t>(returned.cookie)};
    if (returned.fate) tracker_.note(id, *returned.fate);
    const auto ended = tracker_.complete(id, returned.frames);
    if (ended) budget().release(1);
    const DestructionWatch watch{destroyed_};
    if (ended) handler_.on_publish_completed(socket_, ended->cookie, ended->outcome);
    // Either a publication less is outstanding, or this subscriber, which publishing may wait for,
    // was sent one.
    if (!watch.destroyed()) on_progress();
}

std::uint64_t ZeroCopyPublisher::on_taken_back(Subscriber& subscriber,
                                               const SendQueue::TakenBack& taken) {
    for (const Cookie publication : taken.cookies) {
        const PublicationId id{static_cast<std::uint64_t>(publication)};
        const ZeroCopyMessage& message = message_of(id);
        taken.gap->add(message.fid, 1);
        count_dropped(message.fid);
        tracker_.note(id, Fate::dropped);
        seal(id, frames_for(message, subscriber.session().body_limit()));
    }
    return taken.cookies.size();
}

// --- the socket ---------------------------------------------------------------------------

PublishSocket::PublishSocket(Transport& transport, const Options& options, Handler& handler)
    : publisher_{std::make_unique<ZeroCopyPublisher>(transport, options, handler, *this)} {}

PublishSocket::~PublishSocket() {
    check_destructor(publisher_->loop(), "PublishSocket", publisher_);
}

Status PublishSocket::publishv(Fid fid, std::span<const Slice> slices, Cookie cookie,
                               const Extras& extras) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->publish(fid, slices, cookie, extras);
}

PublishSocket::Attempt PublishSocket::try_publishv(Fid fid, std::span<const Slice> slices,
                                                   Cookie cookie, const Extras& extras) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->try_publish(fid, slices, cookie, extras);
}

Status PublishSocket::resume(PublishTicket& ticket) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->resume(ticket);
}

void PublishSocket::prepare(RegisteredBuffer& buffer) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    publisher_->prepare(buffer);
}

void PublishSocket::close() {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    publisher_->close();
}

void PublishSocket::abort() {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    publisher_->abort();
}

std::vector<Endpoint> PublishSocket::endpoints() const {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->endpoints();
}

const Publisher::Counters& PublishSocket::counters() noexcept {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->counters();
}

PublisherSnapshot PublishSocket::snapshot(const SnapshotLimits& limits) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->take_snapshot(limits);
}

std::size_t PublishSocket::outstanding() const noexcept {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->outstanding();
}

std::size_t PublishSocket::segment_limit() const noexcept {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->segment_limit();
}

} // namespace netio::pubsub::inline v0_3
