// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/publisher_core.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/option_check.hpp"
#include "pubsub/publisher/stamp_clock.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

constexpr std::size_t service_bytes = 4; // the largest message
// Peers may ask at any rate, and sorting a million fids takes a tenth of a second.
constexpr std::chrono::seconds listing_interval{1};
constexpr std::array all_fids{FidRange{.first = Fid{0}, .last = Fid{UINT64_MAX}}};

ServiceData service_data(std::size_t largest_message_bytes) {
    ServiceData data;
    wire::store(data.bytes.data(), static_cast<std::uint32_t>(largest_message_bytes));
    data.size = service_bytes;
    return data;
}

std::string_view refusal_reason(SubscriptionResult result) {
    switch (result) {
    case SubscriptionResult::table_full:
        return "it has as many ranges as ranges_per_subscriber_limit allows";
    case SubscriptionResult::policy_refused:
        return "its policy would block longer than slow_policy does, or is one that only buffered "
               "publishers have";
    case SubscriptionResult::not_permitted:
        return "its key does not permit it";
    case SubscriptionResult::unknown_option:
        return "it requires an option that this version of netio does not have";
    case SubscriptionResult::accepted:
        break;
    }
    return "it is accepted";
}

void report_refused(const EventLoop& loop, const Subscriber& subscriber, SubscriptionResult why) {
    if (Observer* const observer = loop.observer) {
        observer->on_request_refused(
            {.peer = subscriber.peer().address, .why = std::string{refusal_reason(why)}});
    }
}

std::size_t droppable(const Subscriber& subscriber) noexcept {
    return subscriber.queue().usage().droppable;
}

// The conflated or kept messages would be sent at once, but the publisher has no memory for them.
bool waits_for_memory(const Subscriber& subscriber) noexcept {
    const SendQueue& queue = subscriber.queue();
    const bool holds_nothing = queue.has_drained() && queue.usage().posted == 0;
    return (subscriber.may_send_conflated() && subscriber.can_send_now()) ||
           (subscriber.is_late() && holds_nothing);
}

// Publishing waits until the subscriber can be sent something, so its queue may be empty.
bool is_waited_for_and_cannot_be_sent(const Subscriber& subscriber) noexcept {
    return subscriber.progress.waited_for && !subscriber.can_send_now();
}

bool is_stalled_with_droppable(const Subscriber& subscriber) noexcept {
    return ProgressMonitor::stalled(subscriber.progress) && droppable(subscriber) > 0;
}

} // namespace

void validate(const Publisher::Options& options) {
    validate(options.session);
    require_option(!options.listen.empty(), "listen must not be empty");
    for (const FidRange& range : options.fids.value_or(std::vector<FidRange>{}))
        require_option(range.first <= range.last,
                       "fids: " + to_string(range) + " ends before it begins");
    require_time("disconnect_after", options.disconnect_after);
    require_time("close_timeout", options.close_timeout);
    require_time("close_limit", options.close_limit, options.close_timeout);
    require_between("subscriber_limit", options.subscriber_limit, 1, UINT32_MAX);
    require_between("ranges_per_subscriber_limit", options.ranges_per_subscriber_limit, 1,
                    UINT32_MAX);
    require_between("pending_reply_limit", options.pending_reply_limit, 1, UINT32_MAX);
    require_between("largest_message_bytes", options.largest_message_bytes, 1,
                    largest_message_limit);
}

PublisherCore::PublisherCore(Transport& transport, const Publisher::Options& options,
                             const Terms& terms, const User& user)
    : options_{options}, stamps_{time_stamp::format_here(options.time_stamps)}, user_{user},
      loop_{transport.loop()}, fan_out_{options.slow_policy, options.ranges_per_subscriber_limit,
                                        options.fids, terms.keeps_newest},
      instance_{transport.draw_number()}, budget_{terms.pool, terms.largest},
      eviction_{
          {.disconnect_after = options.disconnect_after, .close_timeout = options.close_timeout}},
      monitor_{std::min(options.disconnect_after, options.close_timeout)},
      closed_timer_{loop_,
                    [this] { user_.handler.on_closed(user_.publisher, shutdown_.result()); }},
      watch_timer_{loop_, [this] { look_timer_.start(Duration::zero()); }}, look_timer_{loop_,
                                                                                        [this] {
                                                                                            look();
                                                                                        }} {
    listener_ = std::make_unique<SessionListener>(
        transport,
        SessionListener::Options{.service = Service::publish_subscribe,
                                 .listen = options.listen,
                                 .allow_remote_anonymous = options.allow_remote_anonymous,
                                 .service_bytes = service_bytes,
                                 .required_receive_bytes = terms.required_receive_bytes,
                                 .peer_limit = options.subscriber_limit,
                                 .connections_per_host = options.connections_per_host,
                                 .keys = options.keys},
        static_cast<SessionListener::Handler&>(*this));
    endpoints_ = listener_->endpoints();
}

PublisherCore::~PublisherCore() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

void PublisherCore::destroy_sessions() noexcept {
    listener_.reset();
    subscribers_.clear();
}

// --- coming and going -----------------------------------------------------------------------

void PublisherCore::on_incoming(IncomingSession& incoming) {
    const auto largest = wire::load<std::uint32_t>(incoming.peer().service_data.bytes.data());
    if (largest < options_.largest_message_bytes) {
        return incoming.reject(
            {.code = RejectCode::messages_too_large,
             .required_bytes = static_cast<std::uint32_t>(options_.largest_message_bytes)});
    }
    if (stamps_.clock != StampClock::none &&
        (incoming.peer().features & time_stamps_feature) == 0) {
        return incoming.reject(
            {.code = RejectCode::missing_feature, .required_bytes = time_stamps_feature});
    }
    const Hello hello{.service = Service::publish_subscribe,
                      .service_data = service_data(options_.largest_message_bytes)};
    subscribers_.enter([&](SubscriberId id) {
        return std::make_unique<Subscriber>(loop_, id, incoming, hello, options_.session, *this);
    });
}

void PublisherCore::on_accept_failed(const std::string&, const FabricError&) {
    ++user_.counters.accept_failed;
}

void PublisherCore::on_peer_rejected(const std::string&, const std::string&) {
    ++user_.counters.rejected;
}

void PublisherCore::on_subscriber_open(Subscriber& subscriber) {
    if (shutdown_.has_begun()) return subscriber.leave();
    subscriber.set_stage(Subscriber::Stage::subscribing);
    subscriber.announced = true;
    budget_.set_subscribers(++announced_count_);
    user_.handler.on_subscriber_connected(user_.publisher, subscriber.peer());
}

void PublisherCore::on_subscriber_gone(Subscriber& subscriber) {
    subscriber.confirmed =
        subscriber.stage() == Subscriber::Stage::leaving && subscriber.queue().has_drained();
    subscriber.set_stage(Subscriber::Stage::gone);
    before_change();
    subscriber.former = fan_out_.remove(subscriber.id());
    on_unwanted(subscriber.id(), all_fids);
}

void PublisherCore::on_subscriber_closed(Subscriber& subscriber, const Closed& closed) {
    const std::unique_ptr<Subscriber> last = subscribers_.take(subscriber.id());
    if (last->announced) budget_.set_subscribers(--announced_count_);
    shown_.former_latency.add(last->stats.latency());
    // Also for a subscriber that the user learned of only after the shutdown had begun.
    if (last->announced && !last->confirmed) shutdown_.note_unconfirmed();
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
        ++user_.counters.rejected;
    }
    if (!watch.destroyed()) on_progress(); // publishing does not wait for it any more
}

// --- requests -------------------------------------------------------------------------------

void PublisherCore::on_subscriber_frame(Subscriber& subscriber, const IncomingFrame& frame) {
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
            if (shutdown_.has_begun() || subscriber.stage() != Subscriber::Stage::subscribing)
                return;
            return take_fids_question(subscriber, *question);
        }
    } else if (frame.kind == totals_answer_kind && frame.flags == 0 && frame.body.empty() &&
               subscriber.stage() == Subscriber::Stage::asked) {
        return subscriber.leave();
    }
    subscriber.fail(CloseReason::protocol_error,
                    "sent a malformed frame of kind " + std::to_string(frame.kind));
}

void PublisherCore::take_request(Subscriber& subscriber, SubscriberRequest request) {
    if (!takes_requests(subscriber)) return;
    if (subscriber.open_requests() >= options_.pending_reply_limit) {
        return subscriber.fail(CloseReason::protocol_error,
                               "has sent more requests than pending_reply_limit, " +
                                   std::to_string(options_.pending_reply_limit) +
                                   ", and has not received the answers");
    }
    if (subscriber.must_wait()) return subscriber.add_request(std::move(request));
    on_request_due(subscriber, request);
}

void PublisherCore::on_request_due(Subscriber& subscriber, const SubscriberRequest& request) {
    if (!takes_requests(subscriber)) return;
    if (request.request.unknown_option != 0)
        return answer(subscriber, request.request, SubscriptionResult::unknown_option);
    before_change();
    request.subscribes ? take_subscribe(subscriber, request.request, request.wants_positions)
                       : take_unsubscribe(subscriber, request.request);
}

void PublisherCore::on_leave_due(Subscriber& subscriber) {
    if (!takes_requests(subscriber) || fan_out_.wants_anything(subscriber.id())) return;
    subscriber.open_requests() > 0 ? subscriber.leave_later() : subscriber.leave();
}

// Requests of a leaving subscriber need no reply: its session is closed.
bool PublisherCore::takes_requests(const Subscriber& subscriber) const noexcept {
    return !shutdown_.has_begun() && subscriber.stage() == Subscriber::Stage::subscribing;
}

void PublisherCore::take_subscribe(Subscriber& subscriber, const SubscriptionRequest& request,
                                   bool positions) {
    SubscriptionResult result = SubscriptionResult::not_permitted;
    const access::Rights* const rights = subscriber.session().rights();
    const OwnPolicies own{.policy = options_.slow_policy, .keeps_newest = fan_out_.keeps_newest()};
    std::size_t steps = 0;
    const auto wishes = rights != nullptr ? permitted(*rights, request, own, steps)
                                          : std::optional{fan_out_.wishes_of(request)};
    FanOut::Addition added;
    if (wishes) {
        const bool is_new_here = request.history && *request.history != instance_;
        added = fan_out_.subscribe(subscriber.id(), *wishes, is_new_here ? history() : nullptr);
        result = added.result;
    }
    if (result == SubscriptionResult::accepted) {
        for (const SlowPolicy policy : slow_policies) {
            const std::vector<FidRange> asked = FanOut::asked_with(policy, *wishes);
            if (!asked.empty()) on_asked(subscriber, asked, policy);
        }
    }
    const SubscriberPeer peer = subscriber.peer();
    if (result == SubscriptionResult::accepted) {
        for (const FidRange& range : request.ranges)
            user_.handler.on_subscribing(user_.publisher, peer, range);
    }
    std::optional<std::vector<FidCount>> reported;
    if (positions && result == SubscriptionResult::accepted) reported = std::move(added.positions);
    answer(subscriber, request, result, std::move(reported));
    if (result != SubscriptionResult::accepted) return;
    if (!added.late.empty()) on_late(subscriber, std::move(added.late));
    const DestructionWatch watch{destroyed_};
    for (const FidRange& range : request.ranges) {
        user_.handler.on_subscribed(user_.publisher, peer, range);
        if (watch.destroyed()) return;
    }
    on_progress(); // by its new policy publishing may not wait for it
}

void PublisherCore::take_unsubscribe(Subscriber& subscriber, const SubscriptionRequest& request) {
    const FanOut::Removal removal = fan_out_.unsubscribe(subscriber.id(), request.ranges);
    if (!removal.removed.empty()) on_asked(subscriber, removal.removed, std::nullopt);
    answer(subscriber, request, removal.result);
    if (removal.result != SubscriptionResult::accepted) return;
    on_unwanted(subscriber.id(), removal.removed);
    if (!removal.removed.empty() && !fan_out_.wants_anything(subscriber.id()))
        subscriber.leave_later();
    const SubscriberPeer peer = subscriber.peer();
    const DestructionWatch watch{destroyed_};
    for (const FidRange& range : request.ranges) {
        user_.handler.on_unsubscribed(user_.publisher, peer, range);
        if (watch.destroyed()) return;
    }
    on_progress(); // publishing does not wait for it any more
}

void PublisherCore::answer(Subscriber& subscriber, const SubscriptionRequest& request,
                           SubscriptionResult result,
                           std::optional<std::vector<FidCount>> positions) {
    if (result != SubscriptionResult::accepted) {
        ++user_.counters.requests_refused;
        report_refused(loop_, subscriber, result);
    }
    std::optional<SendQueue::Positions> preceding;
    if (positions) {
        preceding = {.extension = {.instance = instance_, .request = request.request},
                     .counts = std::move(*positions)};
    }
    std::array<std::byte, answer_limit_bytes> body;
    const std::size_t bytes =
        encode(SubscriptionAnswer{.request = request.request,
                                  .result = result,
                                  .stamps = stamps_,
                                  .keeps_history = request.history && history() != nullptr},
               body);
    subscriber.send_answer(subscription_answer_kind, std::span{body}.first(bytes),
                           std::move(preceding));
}

void PublisherCore::take_fids_question(Subscriber& subscriber, const FidsQuestion& question) {
    if (subscriber.queue().positions_are_full()) {
        return subscriber.fail(CloseReason::protocol_error,
                               "sends requests and does not receive the answers");
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

// --- progress and memory ----------------------------------------------------------------------

Status PublisherCore::refuse(Fid fid) {
    ++user_.counters.again;
    blocked_.refuse(fid, loop_.now());
    return Status::again;
}

void PublisherCore::count_dropped(Fid fid) {
    ++user_.counters.dropped;
    shown_.dropped.add(fid);
}

void PublisherCore::notify_writable() {
    if (!blocked_.end(loop_.now())) return;
    note_needed(0);
    user_.handler.on_writable(user_.publisher);
}

// While the publisher closes, a subscriber is asked to confirm its totals after its conflated
// messages were sent.
void PublisherCore::on_turn_of_conflated(Subscriber& subscriber) {
    send_conflated(subscriber);
    if (shutdown_.has_begun() && subscriber.is_complete()) send_totals(subscriber);
}

void PublisherCore::note_late(Subscriber& subscriber, std::size_t count) {
    subscriber.set_late(count);
    if (shutdown_.has_begun() && subscriber.is_complete()) send_totals(subscriber);
}

void PublisherCore::end_overrun(Subscriber& subscriber) {
    subscriber.fail(CloseReason::too_slow,
                    "received the history more slowly than it was overwritten");
}

void PublisherCore::retry_conflated() {
    subscribers_.for_each([](Subscriber& each) {
        if (each.stage() != Subscriber::Stage::gone) each.offer_capacity();
    });
}

void PublisherCore::wait_for(const Interest& member) {
    Subscriber& subscriber = subscribers_[member.subscriber];
    subscriber.progress.waited_for = true;
    if (member.policy == SlowPolicy::disconnect) subscriber.progress.limited = true;
    subscriber.request_capacity();
    watch_progress();
}

void PublisherCore::watch_progress() {
    if (!watch_timer_.armed() && !look_timer_.armed()) watch_timer_.start(monitor_.period());
}

void PublisherCore::look() {
    monitor_.look(loop_.now());
    bool busy = false;
    stalled_have_droppable_ = false;
    subscribers_.for_each([&](Subscriber& each) {
        const bool has_more =
            shutdown_.has_begun() || !each.is_idle() || is_waited_for_and_cannot_be_sent(each);
        // A message that waits for memory waits for all subscribers that hold some.
        if (needed_ > 0 && each.queue().usage().limited > 0)
            wait_for({.subscriber = each.id(), .policy = SlowPolicy::disconnect});
        const Duration before = each.progress.time;
        monitor_.see(each.progress, {.has_more = has_more && !waits_for_memory(each),
                                     .progress = each.queue().progress()});
        each.report_stall(before);
        const std::string why = eviction_.verdict(each.progress, shutdown_, attended(loop_));
        if (!why.empty()) each.fail(CloseReason::too_slow, why);
        busy = busy || has_more || each.progress.waited_for;
        if (is_stalled_with_droppable(each)) stalled_have_droppable_ = true;
    });
    evict_largest_holder();
    busy ? watch_progress() : monitor_.rest();
}

Subscriber* PublisherCore::longest_stalled_with_droppable() noexcept {
    Subscriber* longest = nullptr;
    if (!stalled_have_droppable_) return longest;
    subscribers_.for_each([&](Subscriber& each) {
        if (!is_stalled_with_droppable(each)) return;
        if (longest == nullptr || each.progress.time > longest->progress.time) longest = &each;
    });
    stalled_have_droppable_ = longest != nullptr;
    return longest;
}

void PublisherCore::take_back(Subscriber& subscriber) {
    const SendQueue::TakenBack taken = subscriber.queue().take_back();
    subscriber.stats.note_dropped(on_taken_back(subscriber, taken));
    subscriber.queue().settle(taken);
}

void PublisherCore::reclaim(std::size_t needed) {
    while (budget_.is_recovering() || budget_.is_short(needed)) {
        Subscriber* const longest = longest_stalled_with_droppable();
        if (longest == nullptr) break;
        longest->progress.reclaimed = true;
        while (is_stalled_with_droppable(*longest))
            take_back(*longest);
    }
    while (budget_.is_short(needed)) {
        Subscriber* most = nullptr;
        subscribers_.for_each([&](Subscriber& each) {
            if (most == nullptr || droppable(each) > droppable(*most)) most = &each;
        });
        // A subscriber that holds no more than the others keeps it, unless that does not suffice.
        const std::size_t fair = budget_.free() < needed ? 0 : budget_.allowance(SIZE_MAX);
        if (most == nullptr || droppable(*most) <= fair) return;
        const std::size_t aim = std::max(fair, droppable(*most) / 4 * 3);
        while (droppable(*most) > aim && budget_.is_short(needed))
            take_back(*most);
    }
}

void PublisherCore::evict_largest_holder() {
    const auto is_stalled = [](const Subscriber& each) {
        return each.session().is_open() && ProgressMonitor::stalled(each.progress);
    };
    // Droppable memory needs no eviction: reclaim() drops it.
    std::size_t sum = 0;
    EvictionPolicy::Need need{.amount = needed_, .in_vain = needed_ > 0};
    subscribers_.for_each([&](const Subscriber& each) {
        if (is_stalled(each)) {
            sum += each.queue().kept();
        } else if (each.queue().usage().all() > 0) {
            need.in_vain = false;
        }
    });
    // The sum counts a page once for each subscriber: an upper bound.
    if (!need.in_vain && !budget_.posts_hold_too_much(sum, needed_)) return;
    std::vector<EvictionPolicy::Holder> holders;
    subscribers_.for_each([&](const Subscriber& each) {
        if (!is_stalled(each)) return;
        EvictionPolicy::Holder holder{.subscriber = each.id(),
                                      .idle = each.progress.time,
                                      .posts = {},
                                      .rest = each.queue().usage().all() - each.queue().kept()};
        each.queue().for_each_kept(
            [&](Cookie cookie, std::size_t amount) { holder.posts.emplace_back(cookie, amount); });
        const bool holds = each.queue().rest_of_begun() > 0 || !holder.posts.empty();
        if (holds) holders.push_back(std::move(holder));
    });
    for (const SubscriberId each : EvictionPolicy::evicted(std::move(holders), budget_, need)) {
        subscribers_[each].fail(
            CloseReason::too_slow,
            "received nothing of the data in flight to it, and the others need the memory");
    }
}

// --- counters -------------------------------------------------------------------------------

const Publisher::Counters& PublisherCore::counters() noexcept {
    user_.counters.subscribers = announced_count_;
    return user_.counters;
}

PublisherSnapshot PublisherCore::take_snapshot(const SnapshotLimits& limits) {
    PublisherSnapshot snapshot{.pool = budget_.pool(),
                               .free = budget_.free(),
                               .least_free = budget_.take_least_free(),
                               .history = {},
                               .blocked_time = blocked_.time(loop_.now()),
                               .latency = shown_.former_latency,
                               .subscribers = {},
                               .subscriber_count = announced_count_,
                               .fids = {},
                               .fid_count = fan_out_.fids().fids.size()};
    subscribers_.for_each([&](Subscriber& each) {
        if (!each.announced) return;
        snapshot.latency.add(each.stats.latency());
        if (snapshot.subscribers.size() < limits.subscribers)
            snapshot.subscribers.push_back(each.take_snapshot(loop_.now()));
    });
    const auto& fids = fan_out_.fids().fids;
    shown_.fids.begin_listing(limits.fids);
    shown_.fids.add(fids, [&](PublishedFidSnapshot& row, Fid fid, const detail::FidState& state) {
        row = {.fid = fid,
               .messages = state.published,
               .again = blocked_.refused().of(fid),
               .dropped = shown_.dropped.of(fid)};
    });
    snapshot.fids = shown_.fids.rows();
    return snapshot;
}

// --- the end --------------------------------------------------------------------------------

void PublisherCore::close() {
    before_end();
    if (!shutdown_.begin(attended(loop_) + options_.close_limit)) return;
    listener_.reset();
    subscribers_.for_each([this](Subscriber& each) {
        each.progress = {.seen = each.queue().progress()};
        each.offer_capacity();
        if (each.is_complete()) send_totals(each);
    });
    note_needed(0); // nothing is published any more
    watch_progress();
    check_closed();
}

void PublisherCore::send_totals(Subscriber& subscriber) {
    if (subscriber.stage() != Subscriber::Stage::subscribing) return;
    subscriber.set_stage(Subscriber::Stage::asked);
    subscriber.send_totals(
        [this, id = subscriber.id(), next = std::size_t{0}](std::span<FidCount> out) mutable {
            return fan_out_.totals(id, next, out);
        });
}

void PublisherCore::abort() {
    before_end();
    shutdown_.begin_abort();
    listener_.reset();
    subscribers_.for_each([](Subscriber& each) { each.abort(); });
    check_closed();
}

void PublisherCore::check_closed() {
    if (!shutdown_.has_begun() || subscribers_.size() > 0) return;
    if (!closed_timer_.armed()) closed_timer_.start(Duration::zero());
}

} // namespace netio::pubsub::inline v0_3
