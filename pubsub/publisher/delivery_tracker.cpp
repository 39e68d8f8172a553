// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/delivery_tracker.hpp"

#include "pubsub/core/fid_ranges.hpp"

namespace netio::pubsub::inline v0_3 {

void PublishTicket::take(PublishTicket& other) noexcept {
    issuer_ = std::exchange(other.issuer_, nullptr);
    id_ = other.id_;
    if (issuer_ != nullptr) issuer_->on_moved(id_, this);
}

void PublishTicket::abandon() noexcept {
    PartialDeliveries* const issuer = std::exchange(issuer_, nullptr);
    if (issuer == nullptr) return;
    issuer->on_moved(id_, nullptr);
    issuer->on_abandoned_();
}

PublishTicket PartialDeliveries::open(PublicationId id, Fid fid, std::vector<SubscriberId> left) {
    NETIO_CHECK(!holds(fid));
    PublishTicket ticket;
    ticket.issuer_ = this;
    ticket.id_ = id;
    const auto [at, added] =
        open_.emplace(id, Entry{.fid = fid, .left = std::move(left), .ticket = &ticket});
    NETIO_CHECK(added);
    by_fid_[fid] = id;
    return ticket;
}

std::vector<PublicationId> PartialDeliveries::forget(SubscriberId subscriber,
                                                     std::span<const FidRange> fids) {
    std::vector<PublicationId> struck;
    for (auto& [id, entry] : open_) {
        if (!contains(fids, entry.fid)) continue;
        if (std::erase(entry.left, subscriber) > 0) struck.push_back(id);
    }
    return struck;
}

PartialDeliveries::Rest PartialDeliveries::take_over_abandoned() {
    Rest rest;
    for (auto& [id, entry] : open_)
        if (entry.ticket == nullptr) rest.emplace_back(id, std::move(entry.left));
    for (const auto& [id, left] : rest)
        close(id);
    return rest;
}

PartialDeliveries::Rest PartialDeliveries::take_over_all() {
    for (auto& [id, entry] : open_)
        if (PublishTicket* const ticket = std::exchange(entry.ticket, nullptr))
            ticket->issuer_ = nullptr;
    return take_over_abandoned();
}

void PartialDeliveries::close(PublicationId id) {
    const auto node = open_.extract(id);
    NETIO_CHECK(!node.empty() && by_fid_.erase(node.mapped().fid));
    if (node.mapped().ticket != nullptr) node.mapped().ticket->issuer_ = nullptr;
}

void PartialDeliveries::detach_all() noexcept {
    for (auto& [id, entry] : open_)
        if (entry.ticket != nullptr) entry.ticket->issuer_ = nullptr;
}

void PartialDeliveries::on_moved(PublicationId id, PublishTicket* ticket) noexcept {
    const auto found = open_.find(id);
    NETIO_CHECK(found != open_.end());
    found->second.ticket = ticket;
}

} // namespace netio::pubsub::inline v0_3
