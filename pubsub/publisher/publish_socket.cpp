// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/publish_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_2 {

PublishSocket::PublishSocket(Transport& transport, const Options& options, Handler& handler)
    : options_{options}, handler_{handler}, tracker_{options.outstanding_limit},
      publications_(options.outstanding_limit),
      due_timer_{transport.loop(), [this] { do_what_is_due(); }}, partial_{[this] {
          due_timer_.start(Duration::zero());
      }},
      links_{transport, options.publisher, 0, static_cast<SubscriberLinks::Owner&>(*this), *this,
             handler} {
    if (options.outstanding_limit == 0 || options.remainder_limit == 0) {
        throw std::invalid_argument{"outstanding_limit and remainder_limit must be positive"};
    }
}

PublishSocket::~PublishSocket() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

std::vector<SessionListener::Endpoint> PublishSocket::endpoints() const {
    return links_.endpoints();
}

Status PublishSocket::publishv(Fid fid, std::span<const Slice> slices, Cookie cookie,
                               const Extras& extras) {
    std::size_t total_bytes = 0;
    const Status possible = check(slices, extras, total_bytes);
    if (possible != Status::ok) return possible;
    SubscriberLinks::FidState& state = links_.lookup(fid);
    const Group& group = *state.group;
    if (group.members.empty()) {
        ++counters_.without_subscribers;
        return Status::no_subscribers;
    }
    if (partial_.holds(fid) || block_for_slow(group)) return refuse();
    const std::optional<PublicationId> id = tracker_.begin(cookie);
    if (!id) return refuse();
    ++state.published;
    keep(*id, fid, slices, total_bytes, extras);
    for (const auto& [subscriber, policy] : group.members)
        takes(*subscriber) ? hand_over(*id, *subscriber) : miss(*subscriber, fid);
    seal(*id);
    return Status::ok;
}

PublishSocket::Attempt PublishSocket::try_publishv(Fid fid, std::span<const Slice> slices,
                                                   Cookie cookie, const Extras& extras) {
    std::size_t total_bytes = 0;
    const Status possible = check(slices, extras, total_bytes);
    if (possible != Status::ok) return {.status = possible, .ticket = {}};
    SubscriberLinks::FidState& state = links_.lookup(fid);
    const std::vector<Group::Member>& members = state.group->members;
    const auto can_take = [](const Group::Member& each) {
        return each.policy == SlowPolicy::drop || takes_now(*each.subscriber);
    };
    const Status outlook = partial_.outlook(fid, members, can_take);
    if (outlook == Status::no_subscribers) {
        ++counters_.without_subscribers;
        return {.status = outlook, .ticket = {}};
    }
    for (const Group::Member& member : members)
        if (!can_take(member)) wait_for(member);
    std::optional<PublicationId> id;
    if (outlook != Status::again) id = tracker_.begin(cookie);
    if (!id) return {.status = refuse(), .ticket = {}};
    ++state.published;
    keep(*id, fid, slices, total_bytes, extras);
    std::vector<SubscriberId> left;
    for (const Group::Member& member : members) {
        if (!can_take(member)) {
            left.push_back(member.subscriber->id());
        } else {
            takes(*member.subscriber) ? hand_over(*id, *member.subscriber)
                                      : miss(*member.subscriber, fid);
        }
    }
    if (left.empty()) {
        seal(*id);
        return {.status = Status::ok, .ticket = {}};
    }
    ++counters_.partial;
    capacity_wanted_ = true;
    return {.status = Status::partial, .ticket = partial_.open(*id, fid, std::move(left))};
}

Status PublishSocket::resume(PublishTicket& ticket) {
    const std::optional<PublicationId> id = partial_.find(ticket);
    const Status status = partial_.resume(ticket, [&](SubscriberId session) {
        Subscriber& subscriber = links_.subscriber(session);
        const bool taken = takes_now(subscriber);
        const Fid fid = publications_[DeliveryTracker::place_of(*id)].fid;
        taken ? hand_over(*id, subscriber)
              : wait_for({.subscriber = &subscriber, .policy = links_.policy_of(subscriber, fid)});
        return taken;
    });
    if (status == Status::ok) {
        seal(*id);
        due_timer_.start(Duration::zero()); // the fid may be published to again
    } else if (status == Status::partial) {
        capacity_wanted_ = true;
    }
    return status;
}

// What does not depend on the subscribers.
Status PublishSocket::check(std::span<const Slice> slices, const Extras& extras,
                            std::size_t& total_bytes) const {
    NETIO_CHECK_MSG(extras.header.size() <= header_limit, "a user header has at most 8 bytes");
    if (links_.is_closing()) return Status::closed;
    if (slices.size() > slice_limit) return Status::too_many_segments;
    total_bytes = extras.header.size();
    for (const Slice& slice : slices)
        total_bytes += slice.size;
    return total_bytes > links_.options().largest_message_bytes ? Status::too_large : Status::ok;
}

bool PublishSocket::takes_now(const Subscriber& subscriber) noexcept {
    return subscriber.can_send_now();
}

bool PublishSocket::takes(const Subscriber& subscriber) const noexcept {
    return takes_now(subscriber) || subscriber.remainder_count() < options_.remainder_limit;
}

bool PublishSocket::block_for_slow(const Group& group) {
    bool blocked = false;
    for (const Group::Member& member : group.members) {
        if (member.policy == SlowPolicy::drop || takes(*member.subscriber)) continue;
        links_.note_slow(member);
        blocked = true;
    }
    return blocked;
}

Status PublishSocket::refuse() {
    ++counters_.again;
    capacity_wanted_ = true;
    return Status::again;
}

void PublishSocket::wait_for(const Group::Member& member) {
    links_.note_slow(member);
    member.subscriber->request_capacity();
}

void PublishSocket::keep(PublicationId id, Fid fid, std::span<const Slice> slices,
                         std::size_t total_bytes, const Extras& extras) {
    Publication& publication = publications_[DeliveryTracker::place_of(id)];
    publication.id = id;
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

void PublishSocket::hand_over(PublicationId id, Subscriber& subscriber) {
    const Publication& publication = publications_[DeliveryTracker::place_of(id)];
    tracker_.add_debt(id, subscriber.frames_for(publication));
    subscriber.send_publication(publication);
}

void PublishSocket::miss(Subscriber& subscriber, Fid fid) {
    subscriber.add_gap(fid, 1);
    ++counters_.dropped;
}

// Everybody who gets it has it now.
void PublishSocket::seal(PublicationId id) {
    const auto cookie = tracker_.seal(id);
    if (!cookie) return;
    // Nothing of it is on its way: the completion comes from the loop all the same.
    undelivered_.push_back(*cookie);
    due_timer_.start(Duration::zero());
}

void PublishSocket::close() {
    finish_rest(partial_.take_over_all());
    links_.close();
}

void PublishSocket::abort() {
    finish_rest(partial_.take_over_all());
    links_.abort();
}

void PublishSocket::finish_rest(const PartialDeliveries::Rest& rest) {
    for (const auto& [id, left] : rest) {
        for (const SubscriberId session : left)
            hand_over(id, links_.subscriber(session));
        seal(id);
    }
}

void PublishSocket::do_what_is_due() {
    finish_rest(partial_.take_over_abandoned());
    const DestructionWatch watch{destroyed_};
    for (const Cookie cookie : std::exchange(undelivered_, {})) {
        handler_.on_publish_completed(*this, cookie);
        if (watch.destroyed()) return;
    }
    on_progress();
}

const Publisher::Counters& PublishSocket::counters() noexcept {
    counters_.subscribers = links_.subscriber_count();
    return counters_;
}

// Publications are sent at once: nothing is coalesced.
void PublishSocket::before_change() {}

void PublishSocket::on_unwanted(SubscriberId session, const FidRange& fids) {
    partial_.forget(session, fids);
}

void PublishSocket::on_page_released(std::uint32_t) {
    NETIO_CHECK_MSG(false, "an unbuffered publisher has no pages");
}

void PublishSocket::on_debts_settled(PublicationId publication, std::size_t count) {
    const auto cookie = tracker_.settle(publication, count);
    if (!cookie) return;
    const DestructionWatch watch{destroyed_};
    handler_.on_publish_completed(*this, *cookie);
    if (!watch.destroyed()) on_progress(); // one publication less is outstanding
}

void PublishSocket::on_progress() {
    if (std::exchange(capacity_wanted_, false)) handler_.on_writable(*this);
}

} // namespace netio::pubsub::inline v0_2
