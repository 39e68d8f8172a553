// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/lent_publisher.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/option_check.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace netio::pubsub::inline v0_2 {

namespace {

constexpr std::size_t usual_remainder = 64;

PublishSocket::Options checked(PublishSocket::Options options) {
    validate(options.publisher);
    require_option(options.publisher.slow_policy != SlowPolicy::newest,
                   "slow_policy newest is for a BufferedPublishSocket, which copies what it keeps; "
                   "where memory is lent use drop");
    // Of one publication nobody can have half, and whoever has it has it all.
    require_between("outstanding_limit", options.outstanding_limit, 2, UINT32_MAX);
    require_option(options.remainder_limit <= options.outstanding_limit / 2,
                   "remainder_limit is " + std::to_string(options.remainder_limit) +
                       "; one stopped subscriber must not keep more than half of "
                       "outstanding_limit, which is " +
                       std::to_string(options.outstanding_limit) + ", from the others");
    if (options.remainder_limit == 0) {
        options.remainder_limit =
            std::clamp<std::size_t>(options.outstanding_limit / 4, 1, usual_remainder);
    }
    return options;
}

} // namespace

LentPublisher::LentPublisher(Transport& transport, const PublishSocket::Options& options,
                             PublishSocket::Handler& handler, PublishSocket& socket)
    : socket_{socket}, options_{checked(options)}, handler_{handler},
      tracker_{options.outstanding_limit},
      publications_(options.outstanding_limit), loop_{transport.loop()},
      due_timer_{loop_, [this] { do_what_is_due(); }}, partial_{[this] {
          due_timer_.start(Duration::zero());
      }},
      sessions_{transport,
                options_.publisher,
                {.pool = options_.outstanding_limit, .largest = 1, .required_receive_bytes = 0},
                static_cast<SubscriberSessions::Owner&>(*this),
                {.publisher = socket, .handler = handler}} {}

LentPublisher::~LentPublisher() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

Status LentPublisher::publish(Fid fid, std::span<const Slice> slices, Cookie cookie,
                              const PublishSocket::Extras& extras) {
    std::size_t total_bytes = 0;
    const Status possible = check(slices, extras, total_bytes);
    if (possible != Status::ok) return possible;
    const FanOut::Found found = sessions_.fan_out().lookup(fid);
    const Group& group = *found.group;
    if (group.members.empty()) {
        if (sessions_.fan_out().is_elsewhere(group)) return Status::not_owned;
        ++found.published;
        ++counters_.without_subscribers;
        return Status::no_subscribers;
    }
    sessions_.make_others_give_way();
    const auto takes_more = [this](const Interest& each) { return takes(each); };
    if (partial_.holds(fid) || must_wait_for(group.members, takes_more)) return refuse(fid);
    const std::optional<PublicationId> id = begin(cookie);
    if (!id) return refuse(fid);
    ++found.published;
    keep(*id, fid, slices, total_bytes, extras);
    for (const Interest& member : group.members) {
        Subscriber& subscriber = sessions_.subscribers()[member.subscriber];
        const bool misses =
            member.policy == SlowPolicy::drop && (subscriber.idle.gave_way || !takes(member));
        misses ? miss(*id, subscriber, fid)
               : hand_over(*id, subscriber, member.policy, Leaving::maybe_with_others);
    }
    seal(*id);
    return Status::ok;
}

PublishSocket::Attempt LentPublisher::try_publish(Fid fid, std::span<const Slice> slices,
                                                  Cookie cookie,
                                                  const PublishSocket::Extras& extras) {
    std::size_t total_bytes = 0;
    const Status possible = check(slices, extras, total_bytes);
    if (possible != Status::ok) return {.status = possible, .ticket = {}};
    const FanOut::Found found = sessions_.fan_out().lookup(fid);
    if (sessions_.fan_out().is_elsewhere(*found.group))
        return {.status = Status::not_owned, .ticket = {}};
    const std::vector<Interest>& members = found.group->members;
    // Nothing is queued: who is to miss messages misses this one.
    const auto can_take = [this](const Interest& each) {
        return each.policy == SlowPolicy::drop ||
               sessions_.subscribers()[each.subscriber].can_send_now();
    };
    const Status outlook = partial_.outlook(fid, members, can_take);
    if (outlook == Status::no_subscribers) {
        ++found.published;
        ++counters_.without_subscribers;
        return {.status = outlook, .ticket = {}};
    }
    // What a user abandons waits for its subscriber in the queue: who may not have more there has
    // to take some of it first, or it would come to hold what other fids need.
    const auto can_be_left = [&](const Interest& each) {
        return can_take(each) || may_wait(sessions_.subscribers()[each.subscriber]);
    };
    if (outlook == Status::partial && must_wait_for(members, can_be_left))
        return {.status = refuse(fid), .ticket = {}};
    for (const Interest& member : members)
        if (!can_take(member)) sessions_.slow().wait_for(member);
    std::optional<PublicationId> id;
    if (outlook != Status::again) {
        sessions_.make_others_give_way();
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
    held_up_.begin(loop_.now());
    return {.status = Status::partial, .ticket = partial_.open(*id, fid, std::move(left))};
}

Status LentPublisher::resume(PublishTicket& ticket) {
    const std::optional<PublicationId> id = partial_.find(ticket);
    const Status status = partial_.resume(ticket, [&](SubscriberId waiting) {
        const Fid fid = publications_[DeliveryTracker::place_of(*id)].fid;
        // Its policy may be another one by now.
        const Interest member{.subscriber = waiting,
                              .policy = sessions_.fan_out().policy_of(waiting, fid)};
        const bool settled = offer(*id, member);
        if (!settled) sessions_.slow().wait_for(member);
        return settled;
    });
    if (status == Status::ok) {
        seal(*id);
        due_timer_.start(Duration::zero()); // the fid may be published to again
    } else if (status == Status::partial) {
        held_up_.begin(loop_.now());
    }
    return status;
}

// What does not depend on the subscribers.
Status LentPublisher::check(std::span<const Slice> slices, const PublishSocket::Extras& extras,
                            std::size_t& total_bytes) const {
    total_bytes = extras.header.size() + checked_size(slices);
    if (sessions_.is_closing()) return Status::closed;
    if (slices.size() > slice_limit) return Status::too_many_segments;
    if (extras.header.size() > PublishSocket::header_limit) return Status::too_large;
    return total_bytes > options_.publisher.largest_message_bytes ? Status::too_large : Status::ok;
}

// Whether it may have another one, at once or later.
bool LentPublisher::takes(const Interest& member) noexcept {
    const Subscriber& subscriber = sessions_.subscribers()[member.subscriber];
    if (subscriber.stage() == Subscriber::Stage::gone) return false;
    if (subscriber.can_send_now()) return true;
    if (member.policy != SlowPolicy::drop) return may_wait(subscriber);
    const Holding& holding = subscriber.queue().holding();
    if (subscriber.queue().gaps_are_full()) return false;
    return holding.waiting < options_.remainder_limit &&
           (holding.all() == 0 || holding.all() < sessions_.shares().allowance(SIZE_MAX));
}

// Whether another one may wait for it, which is waited for itself if not.
bool LentPublisher::may_wait(const Subscriber& subscriber) noexcept {
    const Holding& holding = subscriber.queue().holding();
    const Shares& shares = sessions_.shares();
    if (subscriber.queue().gaps_are_full()) return false;
    return holding.waiting < options_.remainder_limit &&
           (shares.is_plenty(1, shares.free()) ||
            holding.all() < shares.waiting_limit(shares.free()));
}

template <typename Takes>
bool LentPublisher::must_wait_for(std::span<const Interest> members, Takes takes_more) {
    bool wait = false;
    for (const Interest& member : members) {
        if (member.policy == SlowPolicy::drop || takes_more(member)) continue;
        sessions_.slow().wait_for(member);
        wait = true;
    }
    return wait;
}

Status LentPublisher::refuse(Fid fid) {
    ++counters_.again;
    held_up_.refuse(fid, loop_.now());
    return Status::again;
}

std::optional<PublicationId> LentPublisher::begin(Cookie cookie) {
    // Of what nobody takes, the loop has to tell the ends first.
    if (undelivered_.size() >= tracker_.limit()) return std::nullopt;
    const std::optional<PublicationId> id = tracker_.begin(cookie);
    if (id) {
        sessions_.shares().use(1);
        sessions_.make_others_give_way();
    } else {
        sessions_.slow().note_needed(1);
    }
    return id;
}

void LentPublisher::keep(PublicationId id, Fid fid, std::span<const Slice> slices,
                         std::size_t total_bytes, const PublishSocket::Extras& extras) {
    LentMessage& publication = publications_[DeliveryTracker::place_of(id)];
    publication.fid = fid;
    publication.status = extras.status;
    publication.header_bytes = static_cast<std::uint8_t>(extras.header.size());
    std::ranges::copy(extras.header, publication.header.begin());
    publication.number = next_number_++;
    publication.slice_count = slices.size();
    std::ranges::copy(slices, publication.slices.begin());
    publication.total_bytes = total_bytes;
    ++counters_.messages;
    counters_.bytes += total_bytes;
}

void LentPublisher::hand_over(PublicationId id, Subscriber& subscriber, SlowPolicy policy,
                              Leaving leaving) {
    const LentMessage& publication = publications_[DeliveryTracker::place_of(id)];
    tracker_.add_pending(id, frames_for(publication, subscriber.session().body_limit()));
    subscriber.send_message(publication, {.cookie = Cookie{static_cast<std::uint64_t>(id)},
                                          .amount = 1,
                                          .droppable = policy == SlowPolicy::drop,
                                          .limited = policy == SlowPolicy::disconnect,
                                          .prompt = leaving == Leaving::at_once});
    sessions_.slow().keep_watch();
}

// Of the explicit form, which queues nothing: whether it has been sent it, or misses it.
bool LentPublisher::offer(PublicationId id, const Interest& member) {
    Subscriber& subscriber = sessions_.subscribers()[member.subscriber];
    if (subscriber.can_send_now()) {
        hand_over(id, subscriber, member.policy, Leaving::at_once);
    } else if (member.policy == SlowPolicy::drop) {
        miss(id, subscriber, publications_[DeliveryTracker::place_of(id)].fid);
    } else {
        return false;
    }
    return true;
}

void LentPublisher::miss(PublicationId id, Subscriber& subscriber, Fid fid) {
    tracker_.note(id, Fate::missed);
    subscriber.add_gap(fid, 1);
    ++counters_.dropped;
    drops_.add(fid);
}

// Within a call of the user's: so many frames of it are not waited for, by default the one that
// stands for those who still have to get it.
void LentPublisher::seal(PublicationId id, std::size_t frames) {
    const auto ended = tracker_.complete(id, frames);
    if (!ended) return;
    sessions_.shares().give_back(1);
    // Nothing of it is on its way: the completion comes from the loop all the same.
    undelivered_.push_back(*ended);
    due_timer_.start(Duration::zero());
}

void LentPublisher::close() {
    finish_rest(partial_.take_over_all());
    sessions_.close();
}

void LentPublisher::abort() {
    finish_rest(partial_.take_over_all());
    sessions_.abort();
}

void LentPublisher::finish_rest(const PartialDeliveries::Rest& rest) {
    for (const auto& [id, left] : rest) {
        const Fid fid = publications_[DeliveryTracker::place_of(id)].fid;
        for (const SubscriberId each : left)
            hand_over(id, sessions_.subscribers()[each], sessions_.fan_out().policy_of(each, fid),
                      Leaving::maybe_with_others);
        seal(id);
    }
}

void LentPublisher::do_what_is_due() {
    finish_rest(partial_.take_over_abandoned());
    const DestructionWatch watch{destroyed_};
    // What the handler publishes meanwhile is due in the next turn.
    for (std::size_t left = undelivered_.size(); left > 0; --left) {
        const DeliveryTracker::Ended ended = undelivered_.front();
        undelivered_.pop_front();
        handler_.on_publish_completed(socket_, ended.cookie, ended.outcome);
        if (watch.destroyed()) return;
    }
    on_progress();
}

const Publisher::Counters& LentPublisher::counters() noexcept {
    sessions_.count(counters_);
    return counters_;
}

void LentPublisher::on_unwanted(SubscriberId subscriber, std::span<const FidRange> fids) {
    const bool gone = sessions_.subscribers()[subscriber].stage() == Subscriber::Stage::gone;
    for (const PublicationId id : partial_.forget(subscriber, fids))
        tracker_.note(id, gone ? Fate::lost : Fate::unsubscribed);
}

void LentPublisher::on_returned(const SendQueue::Returned& returned) {
    const PublicationId id{static_cast<std::uint64_t>(returned.cookie)};
    if (returned.fate) tracker_.note(id, *returned.fate);
    const auto ended = tracker_.complete(id, returned.frames);
    if (ended) sessions_.shares().give_back(1);
    const DestructionWatch watch{destroyed_};
    if (ended) handler_.on_publish_completed(socket_, ended->cookie, ended->outcome);
    // One publication less is outstanding, or others still have to get it, and this subscriber,
    // whom somebody may wait for, has taken it.
    if (!watch.destroyed()) on_progress();
}

std::uint64_t LentPublisher::on_taken_back(Subscriber& subscriber,
                                           const SendQueue::TakenBack& taken) {
    for (const Cookie publication : taken.cookies) {
        const PublicationId id{static_cast<std::uint64_t>(publication)};
        const LentMessage& message = publications_[DeliveryTracker::place_of(id)];
        taken.gap->add(message.fid, 1);
        ++counters_.dropped;
        drops_.add(message.fid);
        tracker_.note(id, Fate::missed);
        seal(id, frames_for(message, subscriber.session().body_limit()));
    }
    return taken.cookies.size();
}

void LentPublisher::on_progress() {
    if (!held_up_.end(loop_.now())) return;
    sessions_.slow().note_needed(0);
    handler_.on_writable(socket_);
}

} // namespace netio::pubsub::inline v0_2
