// SPDX-License-Identifier: Apache-2.0

// Subscribers come and go, and what they want. The orderly end is in publisher_end.cpp.

#include "pubsub/publisher/subscriber_links.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

constexpr std::size_t service_bytes = 4; // the largest message
constexpr FidRange all_fids{.first = Fid{0}, .last = Fid{UINT64_MAX}};

ServiceData service_data(std::size_t largest_message_bytes) {
    ServiceData data;
    wire::store(data.bytes.data(), static_cast<std::uint32_t>(largest_message_bytes));
    data.size = service_bytes;
    return data;
}

SubscriberPeer peer_of(const Subscriber& subscriber) {
    return {.id = subscriber.id(), .address = subscriber.peer_address()};
}

} // namespace

void validate(const Publisher::Options& options) {
    const auto require = [](bool good, const char* rule) {
        if (!good) throw std::invalid_argument{rule};
    };
    validate(options.session);
    require(!options.addresses.empty(), "addresses must not be empty");
    require(options.disconnect_after.count() > 0, "disconnect_after must be positive");
    require(options.close_timeout.count() > 0, "close_timeout must be positive");
    require(options.close_limit >= options.close_timeout,
            "close_limit must be at least close_timeout");
    require(options.subscriber_limit > 0, "subscriber_limit must be positive");
    require(options.ranges_per_subscriber_limit > 0,
            "ranges_per_subscriber_limit must be positive");
    require(options.largest_message_bytes > 0 &&
                options.largest_message_bytes <= largest_message_limit,
            "largest_message_bytes must be from 1 to 1073741823");
}

SubscriberLinks::SubscriberLinks(Transport& transport, const Publisher::Options& options,
                                 std::size_t required_receive_bytes, Owner& owner,
                                 Publisher& publisher, Publisher::Handler& handler)
    : options_{(validate(options), options)}, owner_{owner}, publisher_{publisher},
      handler_{handler}, loop_{transport.loop()}, table_{options.ranges_per_subscriber_limit},
      slow_timer_{loop_, [this] { disconnect_slow(); }},
      close_timer_{loop_, [this] { end_the_stuck(); }}, closed_timer_{loop_,
                                                                      [this] { tell_closed(); }} {
    listener_ = std::make_unique<SessionListener>(
        transport,
        SessionListener::Options{.service = Service::publish_subscribe,
                                 .addresses = options.addresses,
                                 .service_bytes = service_bytes,
                                 .required_receive_bytes = required_receive_bytes},
        static_cast<SessionListener::Handler&>(*this));
}

SubscriberLinks::~SubscriberLinks() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

void SubscriberLinks::refresh(Fid fid, FidState& state) {
    const GroupId id = table_.find(fid);
    const std::span<const SubscriberId> sessions = table_.members(id);
    std::vector<SlowPolicy> policies; // empty: nobody has one of its own
    if (policies_asked_) {
        for (const SubscriberId session : sessions)
            policies.push_back(policy_of(*subscribers_.at(session), fid));
    }
    std::unique_ptr<Group>& group = groups_[{id, policies}];
    if (!group) {
        group = std::make_unique<Group>();
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            group->members.push_back(
                {.subscriber = subscribers_.at(sessions[i]).get(),
                 .policy = policies.empty() ? options_.slow_policy : policies[i]});
        }
    }
    state.group = group.get();
    state.generation = generation_;
}

// --- coming and going -----------------------------------------------------------------------

void SubscriberLinks::on_incoming(IncomingSession& incoming) {
    if (closing_ || subscribers_.size() >= options_.subscriber_limit) {
        return incoming.reject({.code = RejectCode::full});
    }
    const auto largest = wire::load<std::uint32_t>(incoming.peer().service_data.bytes.data());
    if (largest < options_.largest_message_bytes) {
        return incoming.reject(
            {.code = RejectCode::messages_too_large,
             .required_bytes = static_cast<std::uint32_t>(options_.largest_message_bytes)});
    }
    const SubscriberId id{next_link_++};
    const Hello hello{.service = Service::publish_subscribe,
                      .service_data = service_data(options_.largest_message_bytes)};
    subscribers_.emplace(id, std::make_unique<Subscriber>(id, incoming, hello, options_.session,
                                                          static_cast<Subscriber::Owner&>(*this)));
}

void SubscriberLinks::on_accept_failed(const std::string& peer_address, const FabricError& why) {
    handler_.on_accept_failed(publisher_, peer_address, why); // may destroy the publish socket
}

void SubscriberLinks::on_subscriber_open(Subscriber& subscriber) {
    if (closing_) return subscriber.session().close();
    subscriber.announced = true;
    ++announced_count_;
    handler_.on_subscriber_connected(publisher_, peer_of(subscriber));
}

void SubscriberLinks::on_subscriber_gone(Subscriber& subscriber) {
    begin_change();
    table_.remove_subscriber(subscriber.id());
    owner_.on_unwanted(subscriber.id(), all_fids);
}

void SubscriberLinks::on_subscriber_closed(Subscriber& subscriber, const Closed& closed) {
    const auto node = subscribers_.extract(subscriber.id());
    if (node.mapped()->announced) --announced_count_;
    if (closing_ && node.mapped()->announced && !node.mapped()->leaving) ++unconfirmed_;
    check_closed();
    const DestructionWatch watch{destroyed_};
    if (node.mapped()->announced)
        handler_.on_subscriber_closed(publisher_, peer_of(*node.mapped()), closed);
    if (!watch.destroyed()) owner_.on_progress(); // nobody waits for the one that is gone
}

// What is coalesced leaves for those it was meant for; then no group is valid any more.
void SubscriberLinks::begin_change() {
    owner_.before_change();
    for (const auto& [cookie, group] : groups_)
        NETIO_CHECK(group->place == Group::nowhere);
    groups_.clear();
    ++generation_; // what was looked up is void, also if the table stays as it is
}

// --- requests -------------------------------------------------------------------------------

void SubscriberLinks::on_subscriber_frame(Subscriber& subscriber, const IncomingFrame& frame) {
    const bool subscribing = frame.kind == subscribe_kind;
    if ((subscribing || frame.kind == unsubscribe_kind) && frame.flags == 0) {
        const auto request = decode_request(frame.body);
        if (request && (subscribing || !request->policy)) {
            return subscribing ? take_subscribe(subscriber, *request)
                               : take_unsubscribe(subscriber, *request);
        }
    } else if (frame.kind == totals_answer_kind && frame.flags == 0 && frame.body.empty() &&
               subscriber.totals_sent) {
        subscriber.leaving = true;
        return leave_when_drained(subscriber);
    }
    subscriber.session().fail(CloseReason::protocol_error, subscriber.peer_address() +
                                                               " sent a malformed frame of kind " +
                                                               std::to_string(frame.kind));
}

void SubscriberLinks::take_subscribe(Subscriber& subscriber, const SubscriptionRequest& request) {
    if (closing_ || subscriber.leaving) return; // it is told so by the shutdown
    begin_change();
    std::vector<FidRange> added;
    const SubscriptionResult result = subscribe(subscriber, request, added);
    std::array<std::byte, answer_bytes> answer;
    encode({.request = request.request, .result = result}, answer);
    subscriber.send_answer(subscription_answer_kind, 0, answer);
    if (result != SubscriptionResult::accepted) return;
    for (const FidRange& range : added)
        note_published_before(subscriber, range);
    const SubscriberPeer peer = peer_of(subscriber);
    const DestructionWatch watch{destroyed_};
    for (const FidRange& range : request.ranges) {
        handler_.on_subscribed(publisher_, peer, range);
        if (watch.destroyed()) return;
    }
}

void SubscriberLinks::take_unsubscribe(Subscriber& subscriber, const SubscriptionRequest& request) {
    if (closing_ || subscriber.leaving) return;
    begin_change();
    std::vector<FidRange> removed;
    const bool done = remove_all(subscriber, request.ranges, removed);
    std::array<std::byte, answer_bytes> answer;
    encode({.request = request.request,
            .result = done ? SubscriptionResult::accepted : SubscriptionResult::table_full},
           answer);
    subscriber.send_answer(subscription_answer_kind, 0, answer);
    if (!done) return;
    for (const FidRange& range : removed) {
        subscriber.policies.set(range, std::nullopt);
        owner_.on_unwanted(subscriber.id(), range);
    }
    if (!removed.empty() && !table_.wants_anything(subscriber.id())) {
        subscriber.leaving = true;
        leave_when_drained(subscriber);
    }
    const SubscriberPeer peer = peer_of(subscriber);
    const DestructionWatch watch{destroyed_};
    for (const FidRange& range : request.ranges) {
        handler_.on_unsubscribed(publisher_, peer, range);
        if (watch.destroyed()) return;
    }
}

SubscriptionResult SubscriberLinks::subscribe(Subscriber& subscriber,
                                              const SubscriptionRequest& request,
                                              std::vector<FidRange>& added) {
    if (request.policy && holds_up_more(*request.policy, options_.slow_policy)) {
        return SubscriptionResult::policy_refused;
    }
    // Each range makes two borders at most.
    const std::size_t after = subscriber.policies.size() + 2 * request.ranges.size();
    if (request.policy && after > 2 * options_.ranges_per_subscriber_limit) {
        return SubscriptionResult::table_full;
    }
    if (!add_all(subscriber, request.ranges, added)) return SubscriptionResult::table_full;
    for (const FidRange& range : request.ranges)
        subscriber.policies.set(range, request.policy);
    policies_asked_ = policies_asked_ || request.policy.has_value();
    return SubscriptionResult::accepted;
}

// All or nothing: what was done before the one that failed is undone in reverse.
bool SubscriberLinks::add_all(Subscriber& subscriber, std::span<const FidRange> ranges,
                              std::vector<FidRange>& added) {
    for (const FidRange& range : ranges) {
        if (table_.add(subscriber.id(), range, added)) continue;
        std::vector<FidRange> undone;
        for (auto done = added.rbegin(); done != added.rend(); ++done)
            NETIO_CHECK(table_.remove(subscriber.id(), *done, undone));
        return false;
    }
    return true;
}

bool SubscriberLinks::remove_all(Subscriber& subscriber, std::span<const FidRange> ranges,
                                 std::vector<FidRange>& removed) {
    for (const FidRange& range : ranges) {
        if (table_.remove(subscriber.id(), range, removed)) continue;
        std::vector<FidRange> undone;
        for (auto done = removed.rbegin(); done != removed.rend(); ++done)
            NETIO_CHECK(table_.add(subscriber.id(), *done, undone));
        return false;
    }
    return true;
}

// The totals of a subscriber count from its subscription on.
void SubscriberLinks::note_published_before(Subscriber& subscriber, const FidRange& range) {
    const std::uint64_t width = to_integer(range.last) - to_integer(range.first);
    if (width < fids_.size()) {
        for (std::uint64_t i = 0; i <= width; ++i) {
            const Fid fid{to_integer(range.first) + i};
            if (const FidState* state = fids_.find(fid)) {
                subscriber.published_before[fid] = state->published;
            }
        }
    } else {
        fids_.for_each([&](Fid fid, const FidState& state) {
            if (contains(range, fid)) subscriber.published_before[fid] = state.published;
        });
    }
}

// --- progress -------------------------------------------------------------------------------

void SubscriberLinks::on_page_released(Subscriber& subscriber, std::uint32_t page) {
    note_moving(subscriber);
    owner_.on_page_released(page);
}

void SubscriberLinks::on_debts_settled(Subscriber& subscriber, PublicationId publication,
                                       std::size_t count) {
    note_moving(subscriber);
    owner_.on_debts_settled(publication, count);
}

void SubscriberLinks::on_progress(Subscriber& subscriber) {
    note_moving(subscriber);
    if (subscriber.leaving) leave_when_drained(subscriber);
    owner_.on_progress();
}

void SubscriberLinks::note_moving(Subscriber& subscriber) noexcept {
    subscriber.slow_since = TimePoint::max();
    subscriber.moving = true;
}

void SubscriberLinks::note_slow(const Group::Member& member) {
    Subscriber& subscriber = *member.subscriber;
    if (member.policy != SlowPolicy::disconnect || subscriber.slow_since != TimePoint::max()) {
        return;
    }
    subscriber.slow_since = loop_.now();
    if (!slow_timer_.armed()) slow_timer_.start(options_.disconnect_after);
}

void SubscriberLinks::disconnect_slow() {
    TimePoint next = TimePoint::max();
    for (const auto& [id, subscriber] : subscribers_) {
        if (subscriber->slow_since == TimePoint::max()) continue;
        const TimePoint due = subscriber->slow_since + options_.disconnect_after;
        if (due > loop_.now()) {
            next = std::min(next, due);
        } else {
            subscriber->session().fail(CloseReason::too_slow,
                                       subscriber->peer_address() + " took nothing for more than " +
                                           std::to_string(options_.disconnect_after.count()) +
                                           " ms");
        }
    }
    if (next != TimePoint::max()) slow_timer_.start_at(next);
}

} // namespace netio::pubsub::inline v0_2
