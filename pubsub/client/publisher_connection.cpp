// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/publisher_connection.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_3 {

void add_row(ReceivedFidSnapshot& sum, Fid, const Account::Row& row) {
    sum.messages += row.messages;
    sum.bytes += row.bytes;
    sum.lost += row.lost;
}

void PublisherConnection::open(Transport& transport, const SubscribeSocket::Options& options) {
    finished_ = false;
    if (socket_) return;
    account_.limit_fids(options.fid_limit);
    SubscribeSocket::Options own = options;
    own.whole_pages = false; // messages are counted and queued one by one
    own.publisher = parse_address(addresses_[first_]);
    own.fallback_addresses.clear();
    for (std::size_t i = 1; i < addresses_.size(); ++i)
        own.fallback_addresses.push_back(
            parse_address(addresses_[(first_ + i) % addresses_.size()]));
    own.resume_state = past_.resume_state;
    socket_ = std::make_unique<SubscribeSocket>(transport, std::move(own),
                                                static_cast<SubscribeSocket::Handler&>(*this));
}

void PublisherConnection::leave(std::size_t further) {
    first_ = (first_ + further) % addresses_.size();
    if (!socket_) return;
    account_.end_connection(socket_->arrivals());
    const RemotePublisherSnapshot all = snapshot();
    Past past{.seen = past_.seen,
              .sums = {.messages = all.messages, .bytes = all.bytes},
              .gaps = past_.gaps + socket_->arrivals().dropped(),
              .pauses = all.pauses,
              .complete = socket_->arrivals().complete(),
              .resume_state = socket_->resume_state()};
    merge(past.seen, socket_->seen());
    past_ = std::move(past);
    open_ = moved_ = false;
    if (user_.delivering == socket_.get()) user_.delivering = nullptr;
    socket_.reset();
}

void PublisherConnection::become(PublisherId id, const std::string& name,
                                 std::vector<std::string> addresses) {
    id_ = id;
    source_ = {.name = name, .address = addresses.front()};
    addresses_ = std::move(addresses);
    first_ = 0;
    moved_ = has_unreported_end();
}

std::shared_ptr<ResumeState> PublisherConnection::resume_state() const {
    return socket_ ? socket_->resume_state() : past_.resume_state;
}

void PublisherConnection::forget(const FidRange& range) {
    // Another publisher may own the fids by now, so that this socket is still subscribed.
    if (has_unreported_end()) socket_->unsubscribe(range);
    if (const auto positions = resume_state()) positions->forget_tails(range);
}

std::size_t PublisherConnection::known_fids() const noexcept {
    const std::size_t reached = past_.resume_state ? past_.resume_state->fids() : 0;
    return std::max(reached, account_.fids().size());
}

Subscriptions::PublisherStats PublisherConnection::publisher_stats() const {
    const auto positions = resume_state();
    const std::uint64_t open_tails = positions && positions->has_open_tail() ? 1 : 0;
    Subscriptions::PublisherStats stats{.source = source_,
                                        .connected = is_connected(),
                                        .provider = provider_,
                                        .seen = past_.seen,
                                        .fids = account_.fids(),
                                        .others = account_.others(),
                                        .connections = account_.connections(),
                                        .changes = account_.changes(),
                                        .unknown_tails = account_.unknown_tails() + open_tails,
                                        .complete = past_.complete};
    if (!socket_) return stats;
    stats.fids = account_.fids(socket_->arrivals());
    merge(stats.seen, socket_->seen());
    stats.complete = socket_->arrivals().complete();
    return stats;
}

RemotePublisherSnapshot PublisherConnection::snapshot() const {
    RemotePublisherSnapshot now{.name = source_.name,
                                .messages = past_.sums.messages,
                                .bytes = past_.sums.bytes,
                                .lost = past_.gaps + account_.found_missing(),
                                .connections = account_.connections(),
                                .pauses = past_.pauses,
                                .kept = {}};
    if (!socket_) return now;
    const SubscribeSocket::Counters& counters = socket_->counters();
    now.connected = socket_->is_connected();
    now.paused = socket_->is_paused();
    now.messages += counters.messages;
    now.bytes += counters.bytes;
    now.lost += socket_->arrivals().dropped();
    now.pauses += counters.pauses;
    now.kept = socket_->kept();
    return now;
}

void PublisherConnection::add_to(SubscriptionsSnapshot& all,
                                 ShownFids<ReceivedFidSnapshot>& shown) const {
    if (!socket_ && !was_connected()) return;
    all.publishers.push_back(snapshot());
    shown.add(account_.fids(), add_row);
    std::size_t fids = account_.fids().size();
    if (socket_ && account_.is_connected()) {
        const ArrivalCounter& now = socket_->arrivals();
        shown.add(now.fids(), [&](ReceivedFidSnapshot& sum, Fid fid, const Arrivals& arrived) {
            sum.messages += arrived.messages;
            sum.bytes += arrived.bytes;
            sum.lost += now.dropped(fid);
        });
        fids = std::max(fids, now.fids().size()); // mostly the same fids
    }
    all.fid_count += fids;
}

// --- events of the socket -------------------------------------------------------------------

void PublisherConnection::on_connected(SubscribeSocket& socket) {
    account_.begin_connection();
    open_ = true;
    provider_ = socket.provider();
    owner_.on_connected(*this);
    user_.handler.on_connected(user_.subscriptions, source_, provider_);
}

void PublisherConnection::on_subscribed(SubscribeSocket& socket, const FidRange& range) {
    source_.stamps = socket.stamps();
    const std::uint64_t now = socket.publisher_instance();
    if (std::exchange(reported_instance_, now) != now && !owner_.on_identified(*this)) return;
    user_.delivering = &socket;
    user_.handler.on_subscribed(user_.subscriptions, source_, range);
}

void PublisherConnection::on_unsubscribed(SubscribeSocket& socket, const FidRange& range) {
    const std::weak_ptr<const bool> life = life_;
    user_.handler.on_unsubscribed(user_.subscriptions, source_, range);
    // After the user's handler, which may read the sums: until it returns, the arrivals contain
    // these fids. If the handler has left the publisher, all arrivals were added already.
    if (life.expired() || !account_.is_connected()) return;
    account_.end_subscription(range, socket.arrivals());
}

void PublisherConnection::on_subscription_refused(SubscribeSocket& socket, const FidRange& range) {
    refuse(socket, range, Subscriptions::Refusal::too_many_ranges);
}

void PublisherConnection::on_policy_refused(SubscribeSocket& socket, const FidRange& range) {
    refuse(socket, range, Subscriptions::Refusal::policy);
}

void PublisherConnection::on_subscription_not_permitted(SubscribeSocket& socket,
                                                        const FidRange& range) {
    refuse(socket, range, Subscriptions::Refusal::not_permitted);
}

void PublisherConnection::refuse(SubscribeSocket& socket, const FidRange& range,
                                 Subscriptions::Refusal refusal) {
    user_.delivering = &socket;
    user_.handler.on_refused(user_.subscriptions, source_, range, refusal);
}

void PublisherConnection::on_message(SubscribeSocket& socket, Fid fid,
                                     std::span<const std::byte> message, std::uint8_t status) {
    user_.delivering = &socket;
    user_.handler.on_message(user_.subscriptions, source_, fid, message, status);
}

void PublisherConnection::on_gap(SubscribeSocket&, Fid fid, std::uint64_t count) {
    user_.handler.on_gap(user_.subscriptions, source_, fid, count);
}

void PublisherConnection::on_lost_while_disconnected(SubscribeSocket&, Fid fid,
                                                     std::uint64_t count) {
    account_.add_lost(fid, count);
    user_.handler.on_lost_while_disconnected(user_.subscriptions, source_, fid, count);
}

void PublisherConnection::on_publisher_changed(SubscribeSocket&, const PublisherChange& change) {
    account_.add_change(change);
    process.change();
    user_.handler.on_publisher_changed(user_.subscriptions, source_, change);
}

void PublisherConnection::on_nothing_published(SubscribeSocket&, const FidQuery::Near& near) {
    user_.handler.on_nothing_published(user_.subscriptions, source_, near);
}

void PublisherConnection::on_closed(SubscribeSocket& socket, const Closed& closed, bool retrying) {
    account_.end_connection(socket.arrivals());
    finished_ = !retrying;
    const bool reached = std::exchange(open_, false);
    owner_.on_closed(
        *this, {.closed = closed, .retrying = retrying, .complete = socket.arrivals().complete()},
        reached);
}

} // namespace netio::pubsub::inline v0_3
