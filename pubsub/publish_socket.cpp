// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publish_socket.hpp"

#include "netio/check.hpp"
#include "netio/destruction_watch.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace pubsub {

using netio::Cookie;
using netio::Slice;
using netio::Status;

PublishSocket::PublishSocket(netio::Transport& transport, const Options& options, Handler& handler)
    : options_{options}, handler_{handler}, tracker_{options.outstanding_limit},
      publications_(options.outstanding_limit), undelivered_timer_{transport.loop(),
                                                                   [this] {
                                                                       complete_undelivered();
                                                                   }},
      links_{transport, options.publisher, 0, static_cast<SubscriberLinks::Owner&>(*this),
             handler} {
    if (options.outstanding_limit == 0 || options.remainder_limit == 0) {
        throw std::invalid_argument{"outstanding_limit and remainder_limit must be positive"};
    }
}

PublishSocket::~PublishSocket() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

Status PublishSocket::publishv(Fid fid, std::span<const Slice> slices, Cookie key,
                               const Extras& extras) {
    NETIO_CHECK_MSG(extras.header.size() <= header_limit, "a user header has at most 8 bytes");
    if (links_.finishing()) return Status::closed;
    if (slices.size() > netio::link_slice_limit) return Status::too_many_segments;
    std::size_t total_bytes = extras.header.size();
    for (const Slice& slice : slices)
        total_bytes += slice.size;
    if (total_bytes > links_.options().largest_message_bytes) return Status::too_large;

    SubscriberLinks::FidState& state = links_.lookup(fid);
    const Group& group = *state.group;
    if (group.subscribers.empty()) {
        ++counters_.without_subscribers;
        return Status::no_subscribers;
    }
    const bool dropping = links_.options().slow_policy == SlowPolicy::drop;
    std::optional<PublicationId> id;
    if (dropping || !block_for_slow(group)) id = tracker_.begin(key);
    if (!id) {
        ++counters_.again;
        room_wanted_ = true;
        return Status::again;
    }
    ++state.published;
    ++counters_.messages;
    counters_.bytes += total_bytes;
    keep(*id, fid, slices, total_bytes, extras);
    deliver(*id, group);
    return Status::ok;
}

bool PublishSocket::takes(const Subscriber& subscriber) const noexcept {
    return subscriber.can_send_now() || subscriber.remainder_count() < options_.remainder_limit;
}

bool PublishSocket::block_for_slow(const Group& group) {
    bool blocked = false;
    for (Subscriber* subscriber : group.subscribers) {
        if (takes(*subscriber)) continue;
        links_.note_slow(*subscriber);
        blocked = true;
    }
    return blocked;
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
}

void PublishSocket::deliver(PublicationId id, const Group& group) {
    const Publication& publication = publications_[DeliveryTracker::place_of(id)];
    for (Subscriber* subscriber : group.subscribers) {
        if (takes(*subscriber)) {
            tracker_.add_debt(id, subscriber->frames_for(publication));
            subscriber->send_publication(publication);
        } else {
            subscriber->add_gap(publication.fid, 1);
            ++counters_.dropped;
        }
    }
    // Nobody could take it: the completion comes from the loop all the same.
    if (const auto key = tracker_.seal(id)) {
        undelivered_.push_back(*key);
        undelivered_timer_.start(netio::Duration::zero());
    }
}

void PublishSocket::complete_undelivered() {
    const netio::DestructionWatch watch{destroyed_};
    for (const Cookie key : std::exchange(undelivered_, {})) {
        handler_.on_publish_completed(key);
        if (watch.destroyed()) return;
    }
    on_progress();
}

const PublisherCounters& PublishSocket::counters() noexcept {
    counters_.subscribers = links_.subscriber_count();
    return counters_;
}

// Publications are sent at once: nothing is coalesced.
void PublishSocket::before_change() {}

void PublishSocket::on_page_released(std::uint32_t) {
    NETIO_CHECK_MSG(false, "an unbuffered publisher has no pages");
}

void PublishSocket::on_debts_settled(PublicationId publication, std::size_t count) {
    const auto key = tracker_.settle(publication, count);
    if (!key) return;
    const netio::DestructionWatch watch{destroyed_};
    handler_.on_publish_completed(*key);
    if (!watch.destroyed()) on_progress(); // one publication less is outstanding
}

void PublishSocket::on_progress() {
    if (std::exchange(room_wanted_, false)) handler_.on_room();
}

} // namespace pubsub
