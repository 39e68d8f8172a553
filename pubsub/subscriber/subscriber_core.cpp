// SPDX-License-Identifier: Apache-2.0
#include "pubsub/subscriber/subscriber_core.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/base/option_check.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// The runs of fids of a range of which nothing has arrived.
void add_silent_fids(const FidMap<Arrivals>& fids, const FidRange& range,
                     std::vector<FidRange>& silent) {
    bool in_run = false;
    for (std::uint64_t at = to_integer(range.first);; ++at) {
        const bool heard = fids.find(Fid{at}) != nullptr;
        if (!heard && in_run) silent.back().last = Fid{at};
        if (!heard && !in_run) silent.push_back({.first = Fid{at}, .last = Fid{at}});
        in_run = !heard;
        if (at == to_integer(range.last)) return;
    }
}

Closed ended(CloseReason reason, std::string detail = {}) {
    return {.reason = reason, .detail = std::move(detail), .required_receive_bytes = 0};
}

} // namespace

void validate(const SubscribeSocket::Options& options) {
    validate(options.session);
    if (options.largest_message_bytes == 0 || options.largest_message_bytes > UINT32_MAX) {
        throw std::invalid_argument{"largest_message_bytes must be from 1 to 4294967295"};
    }
    if (options.fid_limit == 0) throw std::invalid_argument{"fid_limit must be at least 1"};
    if (options.receive_bytes_limit < options.session.receive_bytes) {
        throw std::invalid_argument{"receive_bytes_limit must be at least session.receive_bytes"};
    }
    require_option(options.silence_hint.count() >= 0 && options.silence_hint <= longest_time,
                   "silence_hint must be from 0 (never) to a year");
    require_time("retry_interval", options.retry_interval);
    require_option(options.retry_limit <= longest_time, "retry_limit must be at most a year");
}

// Gives the handler what is found, as long as it lets us.
struct SubscriberCore::Sink {
    SubscriberCore& core;
    DestructionWatch watch{core.destroyed_};

    bool is_gone() const noexcept { return watch.destroyed(); }
    bool goes_on() const noexcept { return !is_gone() && !core.closing_; }
    bool wants_more() const noexcept { return goes_on() && !core.paused_; }
    bool take_message(Fid fid, std::span<const std::byte> message, std::uint8_t status) const {
        core.handler_.on_message(core.socket_, fid, message, status);
        return wants_more();
    }
    bool take_gap(Fid fid, std::uint64_t count) const {
        core.handler_.on_gap(core.socket_, fid, count);
        return wants_more();
    }
    bool take_change(const PublisherChange& change) const {
        core.handler_.on_publisher_changed(core.socket_, change);
        return goes_on();
    }
    bool take_missed(Fid fid, std::uint64_t count) const {
        core.handler_.on_missed(core.socket_, fid, count);
        return goes_on();
    }
};

SubscriberCore::SubscriberCore(Transport& transport, SubscribeSocket::Options options,
                               SubscribeSocket::Handler& handler, SubscribeSocket& socket)
    : socket_{socket}, transport_{transport}, options_{std::move(options)}, handler_{handler},
      requests_{book_, options_.reconnect}, intake_{{.largest_message_bytes =
                                                         options_.largest_message_bytes,
                                                     .fids = options_.fid_limit},
                                                    options_.continuity},
      rule_{{.wait_for_publisher = options_.wait_for_publisher,
             .reconnect = options_.reconnect,
             .reconnect_after_end = options_.reconnect_after_end,
             .proof = options_.key ? Outlook::Proof::by_key : Outlook::Proof::none,
             .receive_bytes = options_.session.receive_bytes,
             .receive_bytes_limit = options_.receive_bytes_limit,
             .back_off = {.first = options_.retry_interval,
                          .limit = std::max(options_.retry_interval, options_.retry_limit),
                          .seed = transport.draw_number()}}},
      connector_{transport, *this, options_.session.connect_timeout}, retry_timer_{transport.loop(),
                                                                                   [this] {
                                                                                       retry();
                                                                                   }},
      silence_{transport,
               {.after = options_.silence_hint,
                .query = {.publisher = options_.publisher,
                          .other_addresses = options_.other_addresses,
                          .local_host = options_.local_host,
                          .key = options_.key,
                          .receive_bytes_limit = options_.receive_bytes_limit}},
               {.silent = [this](std::size_t limit) { return silent_ranges(limit); },
                .tell = [this](const FidQuery::Near& near) { tell_silence(near); }}} {
    validate(options_);
    start();
}

SubscriberCore::~SubscriberCore() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    if (intake_.continuity().use_count() > 1) end_books(false); // another socket goes on
}

// --- connecting -----------------------------------------------------------------------------

void SubscriberCore::start() {
    rule_.begin_attempt();
    std::vector<Address> addresses{options_.publisher};
    addresses.insert(addresses.end(), options_.other_addresses.begin(),
                     options_.other_addresses.end());
    connector_.connect(std::move(addresses), options_.local_host, options_.key);
}

void SubscriberCore::retry() {
    if (closing_) {
        return handler_.on_closed(
            socket_, ended(CloseReason::local, "closed before it was connected"), false);
    }
    start();
}

void SubscriberCore::on_route(const Session::Target& target) {
    target_ = target;
    rule_.begin_route();
    connect();
}

void SubscriberCore::on_connect_failed(const Closed& closed) {
    conclude(closed);
}

void SubscriberCore::connect() {
    Hello hello{.service = Service::publish_subscribe, .service_data = {}};
    wire::store(hello.service_data.bytes.data(),
                static_cast<std::uint32_t>(options_.largest_message_bytes));
    hello.service_data.size = 4;
    SessionOptions options = options_.session;
    options.receive_bytes = rule_.receive_bytes();
    session_ = std::make_unique<Session>(transport_, target_, hello, options,
                                         static_cast<Session::Handler&>(*this));
    if (paused_) session_->pause();
}

void SubscriberCore::on_open(Session& session) {
    rule_.on_open();
    ++counters_.connections;
    connector_.cancel();
    intake_.begin_connection();
    requests_.begin(session);
    handler_.on_connected(socket_);
}

void SubscriberCore::close() {
    if (closing_) return;
    closing_ = true;
    if (session_) {
        session_->close();
        session_->resume(); // what waits is not wanted any more, and the publisher is to know
    } else {
        connector_.cancel();
        retry_timer_.start(Duration::zero()); // reports the end, for there is no session to do so
    }
}

void SubscriberCore::abort() {
    if (session_) {
        closing_ = true;
        session_->abort();
    } else {
        close();
    }
}

// --- the end of a connection ----------------------------------------------------------------

void SubscriberCore::on_closed(Session& session, const Closed& closed) {
    const Closed last = closed; // NOLINT: no needless copy, the session goes now
    const RejectCode rejection = session.rejection();
    rule_.on_closed(session.has_heard());
    session_.reset();
    // One that wants nothing is let go, and who closes wants nothing either, whether the publisher
    // can confirm it or not.
    end_books(last.reason == CloseReason::orderly || last.reason == CloseReason::local || closing_);
    requests_.end();
    if (!connector_.is_connecting()) return conclude(last);
    closing_ ? connector_.close() : attempt_failed(last, rejection);
}

void SubscriberCore::end_books(bool in_order) {
    silence_.stop();
    for (const FidRange& range : book_.leaving())
        intake_.continuity()->forget(range); // no answer comes any more
    intake_.end_connection(in_order);
}

// One route that cannot be used is not the last one.
void SubscriberCore::attempt_failed(const Closed& closed, RejectCode rejection) {
    rule_.on_refused(refusal_of(rejection));
    if (!rule_.may_enlarge(closed)) return connector_.try_next(closed);
    try {
        connect();
    } catch (const FabricError& error) {
        connector_.try_next(ended(CloseReason::failed, error.what()));
    }
}

void SubscriberCore::conclude(const Closed& closed) {
    Closed last = closed;
    const RetryRule::Wishes wishes{.any = !book_.empty(), .totals = intake_.arrivals().complete()};
    const RetryRule::Next next = closing_ ? RetryRule::Next::nothing : rule_.next(last, wishes);
    const bool retrying = next != RetryRule::Next::nothing;
    if (retrying) {
        retry_timer_.start(rule_.wait(next));
    } else if (last.required_receive_bytes > options_.receive_bytes_limit) {
        last.detail += "; receive_bytes_limit is " + std::to_string(options_.receive_bytes_limit);
    }
    rule_.conclude();
    handler_.on_closed(socket_, last, retrying);
}

// --- requests -------------------------------------------------------------------------------

void SubscriberCore::subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy) {
    for (const FidRange& range : ranges) {
        if (range.last < range.first) {
            throw std::invalid_argument{"a range of fids ends before it begins: " +
                                        to_string(range)};
        }
    }
    book_.subscribe(ranges, policy);
    if (is_connected()) {
        requests_.send(*session_);
    } else if (!session_ && !closing_ && !connector_.is_connecting() && !retry_timer_.armed()) {
        retry_timer_.start(Duration::zero()); // we were let go
    }
}

void SubscriberCore::unsubscribe(const FidRange& range) {
    // Not wanted any more, so nothing published since a connection was lost counts as missed.
    intake_.continuity()->forget_tails(range);
    release(range);
}

void SubscriberCore::release(const FidRange& range) {
    book_.unsubscribe(range);
    if (is_connected()) requests_.send(*session_);
}

void SubscriberCore::on_sent(Session& session, Cookie cookie, Completion::Outcome) {
    requests_.on_sent(cookie);
    requests_.send(session);
}

void SubscriberCore::on_writable(Session& session) {
    requests_.send(session);
}

// --- what does not arrive -------------------------------------------------------------------

// Of a small range each fid counts, of a large one whether any has arrived. Where very many have
// arrived nothing is looked for: that would cost the loop's turn too much.
std::vector<FidRange> SubscriberCore::silent_ranges(std::size_t limit) const {
    constexpr std::size_t looked_at = 65536; // fids, and ranges
    constexpr std::uint64_t small_range = 256;
    const auto& fids = intake_.arrivals().fids();
    const std::vector<FidRange> wanted = book_.wanted();
    if (paused_ || fids.size() > looked_at || wanted.size() > looked_at) return {};
    std::vector<bool> heard(wanted.size(), false);
    fids.for_each([&](Fid fid, const Arrivals&) {
        const auto range = std::ranges::lower_bound(wanted, fid, {}, &FidRange::last);
        if (range != wanted.end() && range->first <= fid)
            heard[static_cast<std::size_t>(range - wanted.begin())] = true;
    });
    std::vector<FidRange> silent;
    for (std::size_t i = 0; i < wanted.size() && silent.size() < limit; ++i) {
        const auto [first, last] = wanted[i];
        if (!heard[i]) {
            silent.push_back(wanted[i]);
        } else if (to_integer(last) - to_integer(first) < small_range) {
            add_silent_fids(fids, wanted[i], silent);
        }
    }
    silent.resize(std::min(silent.size(), limit));
    return silent;
}

void SubscriberCore::tell_silence(const FidQuery::Near& near) {
    if (!closing_) handler_.on_nothing_published(socket_, near);
}

// --- what arrives ---------------------------------------------------------------------------

void SubscriberCore::pause() {
    if (paused_ || closing_) return; // behind close() there is only the end to hold back
    paused_ = true;
    ++counters_.pauses;
    if (session_) session_->pause();
}

void SubscriberCore::resume() {
    paused_ = false;
    if (session_) session_->resume();
}

const SubscribeSocket::Counters& SubscriberCore::counters() noexcept {
    counters_.messages = intake_.arrivals().messages();
    counters_.bytes = intake_.arrivals().bytes();
    return counters_;
}

void SubscriberCore::on_frame(Session& session, const IncomingFrame& frame) {
    const bool is_message =
        frame.kind == page_kind || frame.kind == message_kind || frame.kind == fragment_kind;
    if (closing_) return session.add_unread(is_message ? 1 : 0); // the user wants no more
    Sink sink{*this};
    const Intake::Outcome outcome = frame.kind == subscription_answer_kind && frame.flags == 0
                                        ? take_answer(session, frame.body)
                                        : intake_.take({.kind = frame.kind,
                                                        .flags = frame.flags,
                                                        .body = frame.body,
                                                        .continued = frame.continued},
                                                       book_, sink);
    if (sink.is_gone()) return;
    if (outcome == Intake::Outcome::left) {
        closing_ ? session.add_unread(is_message ? 1 : 0) : session.keep(intake_.rest());
    }
    if (closing_) return;
    if (outcome == Intake::Outcome::malformed) {
        session.fail(CloseReason::protocol_error, session.peer_address() +
                                                      " sent a malformed frame of kind " +
                                                      std::to_string(frame.kind));
    } else if (outcome == Intake::Outcome::no_memory) {
        session.fail(CloseReason::failed,
                     "no memory to reassemble a message of " + session.peer_address() +
                         "; give the process more memory or lower largest_message_bytes, " +
                         std::to_string(options_.largest_message_bytes));
    } else if (outcome == Intake::Outcome::too_many_fids) {
        session.fail(CloseReason::protocol_error, session.peer_address() +
                                                      " publishes more fids than fid_limit, " +
                                                      std::to_string(options_.fid_limit));
    } else if (outcome == Intake::Outcome::totals) {
        requests_.answer_totals(session);
        handler_.on_totals(socket_);
    }
}

Intake::Outcome SubscriberCore::take_answer(Session& session, std::span<const std::byte> body) {
    const auto answer = decode_answer(body);
    if (!answer) return Intake::Outcome::malformed;
    const auto request = book_.answered(*answer);
    if (!request) return Intake::Outcome::malformed;
    const Sink sink{*this};
    const bool accepted = answer->result == SubscriptionResult::accepted;
    rule_.on_answered();
    for (const FidRange& range : request->ranges) {
        if (accepted && request->subscribe) {
            intake_.begin_subscription(range);
            silence_.begin();
            handler_.on_subscribed(socket_, range);
        } else if (accepted) {
            handler_.on_unsubscribed(socket_, range); // who may want to know its account
            if (sink.is_gone()) return Intake::Outcome::taken;
            intake_.end_subscription(range);
        } else if (!request->subscribe) {
            handler_.on_unsubscription_refused(socket_, range);
        } else if (answer->result == SubscriptionResult::table_full) {
            handler_.on_subscription_refused(socket_, range);
        } else if (answer->result == SubscriptionResult::not_permitted) {
            handler_.on_subscription_not_permitted(socket_, range);
        } else {
            handler_.on_policy_refused(socket_, range);
        }
        if (!sink.goes_on()) return Intake::Outcome::taken;
    }
    requests_.send(session); // if it is to be asked for piece by piece
    return Intake::Outcome::taken;
}

} // namespace netio::pubsub::inline v0_2
