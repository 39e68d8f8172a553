// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of zero-copy publications: which of them have pending deliveries (DeliveryTracker), and
// which subscribers have not been sent a publication that try_publish() could send only to some
// (PartialDeliveries). No I/O.

#include "netio/base/check.hpp"
#include "netio/base/cookie.hpp"
#include "netio/base/status.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/publication_outcome.hpp"
#include "pubsub/core/publish_ticket.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Identifies a publication from begin() to its end; a later one in the same slot has another id.
enum class PublicationId : std::uint64_t {};

// A publication begins with the user's cookie. It gets a pending delivery for every frame to every
// subscriber, and is sealed after the last of these. When all are completed (sent, or the
// subscriber is gone) its cookie is returned, exactly once, with the outcome.
//
//     begin -> add_pending* -> seal -> (note, complete)* -> the cookie and the outcome
class DeliveryTracker {
  public:
    explicit DeliveryTracker(std::size_t outstanding_limit) : entries_(outstanding_limit) {
        free_.reserve(outstanding_limit);
        for (std::size_t i = outstanding_limit; i > 0; --i)
            free_.push_back(static_cast<std::uint32_t>(i - 1));
    }

    // Returns nullopt if as many as the limit allows are outstanding.
    std::optional<PublicationId> begin(Cookie cookie) {
        if (free_.empty()) return std::nullopt;
        const std::uint32_t place = free_.back();
        free_.pop_back();
        Entry& entry = entries_[place];
        entry.ended = {.cookie = cookie, .outcome = {}};
        entry.pending = 1; // the seal
        ++entry.generation;
        return PublicationId{(std::uint64_t{entry.generation} << 32) | place};
    }

    void add_pending(PublicationId id, std::size_t count = 1) { find(id).pending += count; }

    // Notes the outcome of the publication for one subscriber.
    void note(PublicationId id, Fate fate) { count(find(id).ended.outcome, fate); }

    struct Ended {
        Cookie cookie{};
        PublicationOutcome outcome;
    };
    // Call it when no more deliveries are added. Returns the end of the publication if no delivery
    // is pending.
    std::optional<Ended> seal(PublicationId id) { return complete(id); }

    // `count` deliveries are completed. Returns the end if they were the last ones.
    std::optional<Ended> complete(PublicationId id, std::size_t count = 1) {
        Entry& entry = find(id);
        NETIO_CHECK(entry.pending >= count);
        entry.pending -= count;
        if (entry.pending > 0) return std::nullopt;
        free_.push_back(place_of(id));
        return entry.ended;
    }

    std::size_t outstanding() const noexcept { return entries_.size() - free_.size(); }
    std::size_t limit() const noexcept { return entries_.size(); }
    // A number below limit() that belongs to the publication until its end.
    static std::uint32_t place_of(PublicationId id) noexcept {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
    }

  private:
    struct Entry {
        Ended ended;
        std::size_t pending = 0;
        std::uint32_t generation = 0;
    };
    Entry& find(PublicationId id) {
        NETIO_CHECK(place_of(id) < entries_.size());
        Entry& entry = entries_[place_of(id)];
        NETIO_CHECK(entry.pending > 0 && entry.generation == static_cast<std::uint64_t>(id) >> 32);
        return entry;
    }

    std::vector<Entry> entries_;
    std::vector<std::uint32_t> free_;
};

// The publications of try_publish() that some subscribers have not taken. Whether a subscriber
// takes one now is the caller's answer.
//
//     expected_status --ok, again--> nothing is stored
//                     --partial--> open --resume: partial--> open
//                                       --resume: ok--> closed
//                                       --ticket abandoned--> take_over_abandoned: the library
//                                                             sends the rest
//                                       --take_over_all--> the same, for all publications
//
// Rules:
//   1. A subscriber takes a publication once: it is removed from the list when it does.
//   2. While a fid has an open publication, expected_status() returns `again`: a newer message of
//      that fid would overtake it at the subscribers that are left.
//   3. A subscriber that is gone or has unsubscribed is removed and owes nothing. A later
//      subscriber is never on the list.
//   4. A publication whose list is empty stays open until its ticket is resumed or abandoned, so
//      that it does not complete while its user still holds the ticket.
class PartialDeliveries {
  public:
    // `on_abandoned` is called in a ticket's destructor: it must not throw, and should cause a call
    // of take_over_abandoned() soon.
    explicit PartialDeliveries(std::function<void()> on_abandoned)
        : on_abandoned_{std::move(on_abandoned)} {}
    ~PartialDeliveries() { detach_all(); }
    PartialDeliveries(const PartialDeliveries&) = delete;
    PartialDeliveries& operator=(const PartialDeliveries&) = delete;

    bool holds(Fid fid) const noexcept { return !open_.empty() && by_fid_.find(fid) != nullptr; }
    std::size_t open_count() const noexcept { return open_.size(); }

    // The status of a first attempt: no_subscribers, again, partial or ok.
    template <typename Members, typename CanTake>
    Status expected_status(Fid fid, const Members& subscribers, CanTake can_take) const {
        if (std::empty(subscribers)) return Status::no_subscribers;
        if (holds(fid)) return Status::again;
        if (std::ranges::none_of(subscribers, can_take)) return Status::again;
        return std::ranges::all_of(subscribers, can_take) ? Status::ok : Status::partial;
    }

    // Stores a publication that `left` have not taken. The id must be new and the fid not held.
    PublishTicket open(PublicationId id, Fid fid, std::vector<SubscriberId> left);

    // Offers the publication to each subscriber that is left; take(subscriber) returns whether it
    // has it now. ok: no subscriber is left, the publication is closed. partial: it stays open.
    // stale_ticket: the ticket is not open or not of this object; nothing was done.
    template <typename Take>
    Status resume(PublishTicket& ticket, Take take) {
        if (ticket.issuer_ != this) return Status::stale_ticket;
        Entry& entry = open_.at(ticket.id_);
        for (std::size_t i = 0; i < entry.left.size();) {
            if (take(entry.left[i])) {
                entry.left[i] = entry.left.back();
                entry.left.pop_back();
            } else {
                ++i;
            }
        }
        if (!entry.left.empty()) return Status::partial;
        close(ticket.id_);
        return Status::ok;
    }

    // Removes the subscriber from the publications of these fids, a set as in fid_ranges.hpp.
    // Returns the publications that it was removed from.
    std::vector<PublicationId> forget(SubscriberId subscriber, std::span<const FidRange> fids);

    // The publications that the library has to finish, and for which subscribers. They are closed.
    using Rest = std::vector<std::pair<PublicationId, std::vector<SubscriberId>>>;
    Rest take_over_abandoned();
    Rest take_over_all();

    // The publication of an open ticket of this object.
    std::optional<PublicationId> find(const PublishTicket& ticket) const noexcept {
        if (ticket.issuer_ != this) return std::nullopt;
        return ticket.id_;
    }

  private:
    friend class PublishTicket;
    struct Entry {
        Fid fid{};
        std::vector<SubscriberId> left;  // in no order
        PublishTicket* ticket = nullptr; // its current address; nullptr: abandoned
    };
    void close(PublicationId id);
    void detach_all() noexcept;
    void on_moved(PublicationId id, PublishTicket* ticket) noexcept;

    std::function<void()> on_abandoned_;
    std::unordered_map<PublicationId, Entry> open_;
    FidMap<PublicationId> by_fid_;
};

} // namespace netio::pubsub::inline v0_3
