// SPDX-License-Identifier: Apache-2.0
#pragma once

// The explicit form of publishing: which subscribers still have to take a publication that others
// have taken. No I/O: whether a subscriber takes it is the caller's answer.
//
//     outlook --ok, again--> nothing is kept
//             --partial--> open --resume: partial--> open
//                               --resume: ok--> closed
//                               --ticket abandoned--> take_over_abandoned: the library sends the
//                               rest
//                               --take_over_all--> the same, for all of them
//
// Rules:
//   1. A subscriber takes a publication once: it is struck off when it does.
//   2. While a fid has an open publication, a newer one of that fid would overtake it on the
//   subscribers
//      that are left; outlook says again.
//   3. A subscriber that is gone or has unsubscribed is struck off and owes nothing; a subscriber
//   that comes
//      later was never on the list.
//   4. A publication whose list is empty stays open until its ticket is resumed or abandoned, so
//      that it never completes while its user still holds it.

#include "netio/base/status.hpp"
#include "pubsub/core/delivery_tracker.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/publish_ticket.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class PartialDeliveries {
  public:
    // `on_abandoned` is called from a ticket's destructor: it must not throw, and should see to it
    // that take_over_abandoned is called soon.
    explicit PartialDeliveries(std::function<void()> on_abandoned)
        : on_abandoned_{std::move(on_abandoned)} {}
    ~PartialDeliveries() { detach_all(); }
    PartialDeliveries(const PartialDeliveries&) = delete;
    PartialDeliveries& operator=(const PartialDeliveries&) = delete;

    bool holds(Fid fid) const noexcept { return !open_.empty() && by_fid_.find(fid) != nullptr; }
    std::size_t open_count() const noexcept { return open_.size(); }

    // What a first attempt comes to: no_subscribers, again, partial or ok.
    template <typename Members, typename CanTake>
    Status outlook(Fid fid, const Members& subscribers, CanTake can_take) const {
        if (std::empty(subscribers)) return Status::no_subscribers;
        if (holds(fid)) return Status::again;
        if (std::ranges::none_of(subscribers, can_take)) return Status::again;
        return std::ranges::all_of(subscribers, can_take) ? Status::ok : Status::partial;
    }

    // Keeps a publication that `left` have not taken; the id must be new and the fid not held.
    PublishTicket open(PublicationId id, Fid fid, std::vector<SubscriberId> left);

    // Offers the publication to each subscriber that is left; take(subscriber) says whether it has
    // it now. ok: nobody is left, it is closed. partial: the ticket stays open. stale_ticket: it
    // stands for no publication of this object; nothing was done.
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

    // The subscriber is not owed anything of these fids, a set as in fid_ranges.hpp, any more.
    // Which publications it was left of.
    std::vector<PublicationId> forget(SubscriberId subscriber, std::span<const FidRange> fids);

    // What the library has to finish: who is left of each. These publications are closed.
    using Rest = std::vector<std::pair<PublicationId, std::vector<SubscriberId>>>;
    Rest take_over_abandoned();
    Rest take_over_all();

    // The publication that an open ticket of this object stands for.
    std::optional<PublicationId> find(const PublishTicket& ticket) const noexcept {
        if (ticket.issuer_ != this) return std::nullopt;
        return ticket.id_;
    }

  private:
    friend class PublishTicket;
    struct Entry {
        Fid fid{};
        std::vector<SubscriberId> left;  // in no order
        PublishTicket* ticket = nullptr; // where it is now; nullptr: abandoned
    };
    void close(PublicationId id);
    void detach_all() noexcept;
    void on_moved(PublicationId id, PublishTicket* ticket) noexcept;

    std::function<void()> on_abandoned_;
    std::unordered_map<PublicationId, Entry> open_;
    FidMap<PublicationId> by_fid_;
};

} // namespace netio::pubsub::inline v0_2
