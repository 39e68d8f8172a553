// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscriber_sessions.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/option_check.hpp"
#include "pubsub/publisher/subscription_rights.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

constexpr std::size_t service_bytes = 4; // the largest message
// Peers ask as often as they like; to sort a million fids takes a tenth of a second.
constexpr std::chrono::seconds listing_interval{1};
constexpr std::array all_fids{FidRange{.first = Fid{0}, .last = Fid{UINT64_MAX}}};

ServiceData service_data(std::size_t largest_message_bytes) {
    ServiceData data;
    wire::store(data.bytes.data(), static_cast<std::uint32_t>(largest_message_bytes));
    data.size = service_bytes;
    return data;
}

std::string_view reason_for_operators(SubscriptionResult result) {
    switch (result) {
    case SubscriptionResult::table_full:
        return "it has as many ranges as ranges_per_subscriber_limit allows";
    case SubscriptionResult::policy_refused:
        return "its policy would hold up more than slow_policy does, or is one that only buffered "
               "publishers have";
    case SubscriptionResult::not_permitted:
        return "its key does not permit it";
    case SubscriptionResult::accepted:
        break;
    }
    return "it is accepted";
}

void tell_refused(const EventLoop& loop, const Subscriber& subscriber, SubscriptionResult why) {
    if (Observer* const observer = loop.observer) {
        observer->on_request_refused(
            {.peer = subscriber.peer().address, .why = std::string{reason_for_operators(why)}});
    }
}

} // namespace

void validate(const Publisher::Options& options) {
    validate(options.session);
    require_option(!options.addresses.empty(), "addresses must not be empty");
    for (const FidRange& range : options.owned.value_or(std::vector<FidRange>{}))
        require_option(range.first <= range.last,
                       "owned: " + to_string(range) + " ends before it begins");
    require_time("disconnect_after", options.disconnect_after);
    require_time("close_timeout", options.close_timeout);
    require_time("close_limit", options.close_limit, options.close_timeout);
    require_between("subscriber_limit", options.subscriber_limit, 1, UINT32_MAX);
    require_between("ranges_per_subscriber_limit", options.ranges_per_subscriber_limit, 1,
                    UINT32_MAX);
    require_between("answer_limit", options.answer_limit, 1, UINT32_MAX);
    require_between("largest_message_bytes", options.largest_message_bytes, 1,
                    largest_message_limit);
}

SubscriberSessions::SubscriberSessions(Transport& transport, const Publisher::Options& options,
                                       const Terms& terms, Owner& owner, const User& user)
    : options_{options}, owner_{owner}, user_{user}, loop_{transport.loop()},
      fan_out_{options.slow_policy, options.ranges_per_subscriber_limit, options.owned,
               terms.keeps_newest},
      shares_{terms.pool, terms.largest}, instance_{transport.draw_number()},
      closed_timer_{loop_, [this] { user_.handler.on_closed(user_.publisher, end_.told()); }},
      slow_{loop_,
            {.disconnect_after = options.disconnect_after, .close_timeout = options.close_timeout},
            shares_,
            end_,
            subscribers_} {
    listener_ = std::make_unique<SessionListener>(
        transport,
        SessionListener::Options{.service = Service::publish_subscribe,
                                 .addresses = options.addresses,
                                 .open = options.open,
                                 .service_bytes = service_bytes,
                                 .required_receive_bytes = terms.required_receive_bytes,
                                 .place_limit = options.subscriber_limit,
                                 .links_per_host = options.links_per_host,
                                 .keys = options.keys},
        static_cast<SessionListener::Handler&>(*this));
}

SubscriberSessions::~SubscriberSessions() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

// --- coming and going -----------------------------------------------------------------------

void SubscriberSessions::on_incoming(IncomingSession& incoming) {
    if (end_.has_begun()) return incoming.reject({.code = RejectCode::full});
    const auto largest = wire::load<std::uint32_t>(incoming.peer().service_data.bytes.data());
    if (largest < options_.largest_message_bytes) {
        return incoming.reject(
            {.code = RejectCode::messages_too_large,
             .required_bytes = static_cast<std::uint32_t>(options_.largest_message_bytes)});
    }
    const Hello hello{.service = Service::publish_subscribe,
                      .service_data = service_data(options_.largest_message_bytes)};
    subscribers_.enter([&](SubscriberId id) {
        return std::make_unique<Subscriber>(loop_, id, incoming, hello, options_.session,
                                            static_cast<Subscriber::Owner&>(*this));
    });
}

void SubscriberSessions::on_accept_failed(const std::string&, const FabricError&) {
    ++turned_away_.accept_failed;
}

void SubscriberSessions::on_peer_rejected(const std::string&, const std::string&) {
    ++turned_away_.rejected;
}

void SubscriberSessions::on_subscriber_open(Subscriber& subscriber) {
    if (end_.has_begun()) return subscriber.leave();
    subscriber.set_stage(Subscriber::Stage::subscribing);
    subscriber.announced = true;
    shares_.set_subscribers(++announced_count_);
    user_.handler.on_subscriber_connected(user_.publisher, subscriber.peer());
}

void SubscriberSessions::on_subscriber_gone(Subscriber& subscriber) {
    subscriber.confirmed =
        subscriber.stage() == Subscriber::Stage::leaving && subscriber.queue().has_drained();
    subscriber.set_stage(Subscriber::Stage::gone);
    owner_.before_change();
    subscriber.former = fan_out_.remove(subscriber.id());
    owner_.on_unwanted(subscriber.id(), all_fids);
}

void SubscriberSessions::on_subscriber_closed(Subscriber& subscriber, const Closed& closed) {
    const std::unique_ptr<Subscriber> last = subscribers_.take(subscriber.id());
    if (last->announced) shares_.set_subscribers(--announced_count_);
    shown_.former_latency.add(last->account.latency());
    // Also of whom the user heard only after it had begun to close, where it was told what became
    // of a message in between.
    if (last->announced && !last->confirmed) end_.note_unconfirmed();
    check_closed();
    const DestructionWatch watch{destroyed_};
    if (last->announced) {
        const SubscriberPeer peer = last->peer();
        for (const FidRange& range : last->former) {
            user_.handler.on_unsubscribed(user_.publisher, peer, range);
            if (watch.destroyed()) return;
        }
        user_.handler.on_subscriber_closed(user_.publisher, peer, closed);
    } else if (closed.reason != CloseReason::local) {
        ++turned_away_.rejected;
    }
    if (!watch.destroyed()) owner_.on_progress(); // nobody waits for the one that is gone
}

// --- requests -------------------------------------------------------------------------------

void SubscriberSessions::on_subscriber_frame(Subscriber& subscriber, const IncomingFrame& frame) {
    const bool subscribing = frame.kind == subscribe_kind;
    const bool positions = subscribing && frame.flags == positions_flag;
    if ((subscribing || frame.kind == unsubscribe_kind) && (frame.flags == 0 || positions)) {
        auto request = decode_request(frame.body);
        if (request && (subscribing || !request->policy)) {
            return take_request(subscriber, {.request = std::move(*request),
                                             .subscribes = subscribing,
                                             .wants_positions = positions});
        }
    } else if (frame.kind == fids_question_kind && frame.flags == 0) {
        if (const auto question = decode_fids_question(frame.body)) {
            if (end_.has_begun() || subscriber.stage() != Subscriber::Stage::subscribing) return;
            return take_fids_question(subscriber, *question);
        }
    } else if (frame.kind == totals_answer_kind && frame.flags == 0 && frame.body.empty() &&
               subscriber.stage() == Subscriber::Stage::asked) {
        return subscriber.leave();
    }
    subscriber.fail(CloseReason::protocol_error,
                    "sent a malformed frame of kind " + std::to_string(frame.kind));
}

void SubscriberSessions::take_request(Subscriber& subscriber, SubscriberRequest request) {
    if (!takes_requests(subscriber)) return;
    if (subscriber.open_requests() >= options_.answer_limit) {
        return subscriber.fail(CloseReason::protocol_error,
                               "has sent more requests than answer_limit, " +
                                   std::to_string(options_.answer_limit) +
                                   ", and has not received the answers");
    }
    if (subscriber.must_wait()) return subscriber.add_request(std::move(request));
    on_request_due(subscriber, request);
}

void SubscriberSessions::on_request_due(Subscriber& subscriber, const SubscriberRequest& request) {
    if (!takes_requests(subscriber)) return;
    owner_.before_change();
    request.subscribes ? take_subscribe(subscriber, request.request, request.wants_positions)
                       : take_unsubscribe(subscriber, request.request);
}

void SubscriberSessions::on_leave_due(Subscriber& subscriber) {
    if (!takes_requests(subscriber) || fan_out_.wants_anything(subscriber.id())) return;
    subscriber.open_requests() > 0 ? subscriber.leave_later() : subscriber.leave();
}

// A subscriber that is leaving learns it from the shutdown.
bool SubscriberSessions::takes_requests(const Subscriber& subscriber) const noexcept {
    return !end_.has_begun() && subscriber.stage() == Subscriber::Stage::subscribing;
}

void SubscriberSessions::take_subscribe(Subscriber& subscriber, const SubscriptionRequest& request,
                                        bool positions) {
    SubscriptionResult result = SubscriptionResult::not_permitted;
    const access::Rights* const rights = subscriber.session().rights();
    const OwnPolicies own{.policy = options_.slow_policy, .keeps_newest = fan_out_.keeps_newest()};
    std::size_t steps = 0;
    const auto wishes = rights != nullptr ? permitted(*rights, request, own, steps)
                                          : std::optional{fan_out_.wishes_of(request)};
    std::vector<FidCount> added;
    if (wishes) {
        FanOut::Addition addition = fan_out_.subscribe(subscriber.id(), *wishes);
        result = addition.result;
        added = std::move(addition.positions);
    }
    if (result == SubscriptionResult::accepted) {
        for (const SlowPolicy policy : slow_policies) {
            const std::vector<FidRange> asked = FanOut::asked_with(policy, *wishes);
            if (!asked.empty()) owner_.on_asked(subscriber, asked, policy);
        }
    }
    std::optional<std::vector<FidCount>> told;
    if (positions && result == SubscriptionResult::accepted) told = std::move(added);
    answer(subscriber, request.request, result, std::move(told));
    if (result != SubscriptionResult::accepted) return;
    const SubscriberPeer peer = subscriber.peer();
    const DestructionWatch watch{destroyed_};
    for (const FidRange& range : request.ranges) {
        user_.handler.on_subscribed(user_.publisher, peer, range);
        if (watch.destroyed()) return;
    }
    owner_.on_progress(); // by its new policy nobody may have to wait for it
}

void SubscriberSessions::take_unsubscribe(Subscriber& subscriber,
                                          const SubscriptionRequest& request) {
    const FanOut::Removal removal = fan_out_.unsubscribe(subscriber.id(), request.ranges);
    if (!removal.removed.empty()) owner_.on_asked(subscriber, removal.removed, std::nullopt);
    answer(subscriber, request.request, removal.result);
    if (removal.result != SubscriptionResult::accepted) return;
    owner_.on_unwanted(subscriber.id(), removal.removed);
    if (!removal.removed.empty() && !fan_out_.wants_anything(subscriber.id()))
        subscriber.leave_later();
    const SubscriberPeer peer = subscriber.peer();
    const DestructionWatch watch{destroyed_};
    for (const FidRange& range : request.ranges) {
        user_.handler.on_unsubscribed(user_.publisher, peer, range);
        if (watch.destroyed()) return;
    }
    owner_.on_progress(); // nobody waits for it any more
}

void SubscriberSessions::answer(Subscriber& subscriber, std::uint32_t request,
                                SubscriptionResult result,
                                std::optional<std::vector<FidCount>> positions) {
    if (result != SubscriptionResult::accepted) {
        ++turned_away_.requests;
        tell_refused(loop_, subscriber, result);
    }
    std::optional<SendQueue::Positions> in_front;
    if (positions) {
        in_front = {.extension = {.instance = instance_, .request = request},
                    .counts = std::move(*positions)};
    }
    std::array<std::byte, answer_bytes> body;
    encode({.request = request, .result = result}, body);
    subscriber.send_answer(subscription_answer_kind, body, std::move(in_front));
}

void SubscriberSessions::take_fids_question(Subscriber& subscriber, const FidsQuestion& question) {
    if (subscriber.queue().positions_are_full()) {
        return subscriber.fail(CloseReason::protocol_error, "asks and does not take the answers");
    }
    const auto& fids = fan_out_.fids().fids;
    const bool is_due =
        published_.made == TimePoint{} || loop_.now() - published_.made >= listing_interval;
    if (is_due && published_.listing.is_outdated(fids.size())) {
        published_.listing.make(fids);
        published_.made = loop_.now();
    }
    std::vector<FidRange> permitted{all_fids.begin(), all_fids.end()};
    if (const access::Rights* const rights = subscriber.session().rights()) {
        permitted.clear();
        for (const access::FidRight& right : rights->fids)
            permitted.push_back({.first = Fid{right.first}, .last = Fid{right.last}});
    }
    subscriber.send_fids(question.number,
                         published_.listing.page(question.from, question.limit, permitted).ranges);
}

// --- progress -------------------------------------------------------------------------------

std::size_t SubscriberSessions::post_limit(const Subscriber& subscriber) const noexcept {
    return shares_.post_limit(SlowWatch::stalled(subscriber.idle));
}

void SubscriberSessions::on_returned(const SendQueue::Returned& returned) {
    owner_.on_returned(returned);
}

void SubscriberSessions::on_progress() {
    owner_.on_progress();
}

// Whoever is to be asked whether it has everything is sent what is kept for it first.
void SubscriberSessions::on_turn_of_kept(Subscriber& subscriber) {
    owner_.give_kept(subscriber);
    if (end_.has_begun() && !subscriber.has_kept) ask(subscriber);
}

void SubscriberSessions::offer_what_is_kept() {
    subscribers_.for_each([](Subscriber& each) {
        if (each.stage() != Subscriber::Stage::gone) each.offer_room();
    });
}

void SubscriberSessions::make_others_give_way(std::size_t needed) {
    if (!shares_.is_short(needed)) return;
    slow_.make_others_give_way(needed, [this](Subscriber& subscriber) {
        const SendQueue::TakenBack taken = subscriber.queue().take_back();
        subscriber.account.note_missed(owner_.on_taken_back(subscriber, taken));
        subscriber.queue().settle(taken);
    });
}

PublisherSnapshot SubscriberSessions::take_snapshot(const SnapshotLimits& limits,
                                                    const FidTally& drops, const HeldUp& held_up) {
    PublisherSnapshot snapshot{.pool = shares_.pool(),
                               .free = shares_.free(),
                               .least_free = shares_.take_least_free(),
                               .held_up = held_up.time(loop_.now()),
                               .latency = shown_.former_latency,
                               .subscribers = {},
                               .subscriber_count = announced_count_,
                               .fids = {},
                               .fid_count = fan_out_.fids().fids.size()};
    subscribers_.for_each([&](Subscriber& each) {
        if (!each.announced) return;
        snapshot.latency.add(each.account.latency());
        if (snapshot.subscribers.size() < limits.subscribers)
            snapshot.subscribers.push_back(take_figures(each, loop_.now()));
    });
    const auto& fids = fan_out_.fids().fids;
    shown_.fids.begin_look(limits.fids);
    shown_.fids.add(fids, [&](FidFigures& figures, Fid fid, const detail::FidState& state) {
        figures = {.fid = fid,
                   .messages = state.published,
                   .again = held_up.refused().of(fid),
                   .dropped = drops.of(fid)};
    });
    snapshot.fids = shown_.fids.figures();
    return snapshot;
}

// --- the end --------------------------------------------------------------------------------

// Everybody gets what is still due to it, then the number of messages that were published to it
// per fid, and answers that it has them.
void SubscriberSessions::close() {
    if (!end_.begin(attended(loop_) + options_.close_limit)) return;
    subscribers_.for_each([this](Subscriber& each) {
        each.idle = {.progress = each.queue().progress()};
        each.offer_room();
        if (!each.has_kept) ask(each);
    });
    slow_.note_needed(0); // nobody publishes any more
    slow_.keep_watch();
    check_closed();
}

void SubscriberSessions::ask(Subscriber& subscriber) {
    if (subscriber.stage() != Subscriber::Stage::subscribing) return;
    subscriber.set_stage(Subscriber::Stage::asked);
    subscriber.send_totals(
        [this, id = subscriber.id(), next = std::size_t{0}](std::span<FidCount> out) mutable {
            return fan_out_.totals(id, next, out);
        });
}

void SubscriberSessions::abort() {
    end_.begin_at_once();
    subscribers_.for_each([](Subscriber& each) { each.abort(); });
    check_closed();
}

void SubscriberSessions::check_closed() {
    if (!end_.has_begun() || subscribers_.size() > 0) return;
    if (!closed_timer_.armed()) closed_timer_.start(Duration::zero());
}

} // namespace netio::pubsub::inline v0_2
