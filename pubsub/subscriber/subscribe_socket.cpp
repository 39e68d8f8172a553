// SPDX-License-Identifier: Apache-2.0
#include "pubsub/subscriber/subscribe_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/option_check.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/check_caller.hpp"
#include "netio/session/connector.hpp"
#include "netio/session/session.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/frame_receiver.hpp"
#include "pubsub/core/retry_rule.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_3 {

namespace {

// Sends the requests of a SubscriptionState and the answer to the totals. The session copies a
// short request; a long one uses one of a few slots of registered memory, which bound the memory
// however many requests wait.
class RequestQueue {
  public:
    struct Options {
        bool positions = false; // requests them before each answer
        bool history = false;
    };
    RequestQueue(SubscriptionState& subscriptions, const Options& options) noexcept
        : subscriptions_{subscriptions}, options_{options} {}

    // The connection is open: requests all wanted fids. `resume_state` has the publish socket of
    // the last connection.
    void begin(Session& session, const ResumeState& resume_state) {
        resume_state_ = &resume_state;
        const std::size_t bytes = std::min(session.body_limit(), slot_bytes);
        const std::size_t head =
            request_header_bytes + (options_.history ? history_option_bytes : 0);
        subscriptions_.begin((bytes - head) / range_bytes);
        send(session);
    }
    // The connection has ended and has released the slots.
    void end() {
        subscriptions_.end();
        totals_answer_due_ = false;
        free_slots_.clear();
        if (memory_) free_all_slots();
    }
    void answer_totals(Session& session) {
        totals_answer_due_ = true;
        send(session);
    }
    // Sends until the session or the slots are full; to be called again when there is space.
    void send(Session& session) {
        while (const SubscriptionState::Request* const request = subscriptions_.next()) {
            if (!send_request(session, *request)) return;
            subscriptions_.sent();
        }
        if (!totals_answer_due_) return;
        const Status status = session.send(
            {.kind = totals_answer_kind, .flags = 0, .extension = {}, .slices = {}}, std::nullopt);
        totals_answer_due_ = status != Status::ok;
    }
    void on_sent(Cookie cookie) { free_slots_.push_back(static_cast<std::uint32_t>(cookie)); }

  private:
    static constexpr std::uint32_t slot_count = 4;
    // The receive buffers of a publisher have at least this size, or body_limit() is smaller.
    static constexpr std::size_t slot_bytes = 4096;

    HistoryWish wish_of(const SubscriptionState::Request& request) const noexcept {
        if (!options_.history || !request.subscribe) return std::nullopt;
        return request.supplied ? resume_state_->instance() : 0;
    }

    void free_all_slots() {
        for (std::uint32_t i = 0; i < slot_count; ++i)
            free_slots_.push_back(i);
    }

    // Returns false if there is no space; on_sent, on_writable or the end of the connection
    // follows.
    bool send_request(Session& session, const SubscriptionState::Request& request) {
        const HistoryWish history = wish_of(request);
        const std::size_t bytes = request_bytes(request.ranges.size(), history);
        const bool positions = options_.positions && request.subscribe;
        OutgoingFrame frame{.kind = request.subscribe ? subscribe_kind : unsubscribe_kind,
                            .flags = positions ? positions_flag : std::uint8_t{0},
                            .extension = {},
                            .slices = {}};
        if (bytes <= frame_extension_limit) {
            std::array<std::byte, frame_extension_limit> body;
            encode_request(request.number, request.ranges, body, request.policy, history);
            frame.extension = std::span{body}.first(bytes);
            return session.send(frame, std::nullopt) == Status::ok;
        }
        if (!memory_) {
            memory_ = std::make_unique<RegisteredBuffer>(slot_count * slot_bytes, Access::send);
            free_all_slots();
        }
        if (free_slots_.empty()) return false;
        const std::uint32_t slot = free_slots_.back();
        const Slice slice = memory_->slice(slot * slot_bytes, bytes);
        encode_request(request.number, request.ranges, {slice.data, slice.size}, request.policy,
                       history);
        frame.slices = {&slice, 1};
        if (session.send(frame, Cookie{slot}) != Status::ok) return false;
        free_slots_.pop_back();
        return true;
    }

    SubscriptionState& subscriptions_;
    Options options_;
    const ResumeState* resume_state_ = nullptr; // of the connection
    std::unique_ptr<RegisteredBuffer> memory_;  // allocated for the first long request
    std::vector<std::uint32_t> free_slots_;
    bool totals_answer_due_ = false;
};

// If no message arrives some time after a subscription was accepted, asks the publisher whether it
// publishes such fids at all. May be destroyed in its calls.
class SilenceWatch {
  public:
    struct Options {
        std::chrono::milliseconds after{0}; // 0: never
        FidQuery::Options query{};          // without `near`
    };
    struct Calls {
        // Returns up to `limit` ranges of which nothing has arrived.
        std::function<std::vector<FidRange>(std::size_t limit)> silent;
        std::function<void(const FidQuery::Near&)> report; // for each that is not published
    };
    SilenceWatch(Transport& transport, Options options, Calls calls)
        : transport_{transport}, options_{std::move(options)}, calls_{std::move(calls)},
          timer_{transport.loop(), [this] { ask(); }} {}
    ~SilenceWatch() {
        if (destroyed_ != nullptr) *destroyed_ = true;
    }
    SilenceWatch(const SilenceWatch&) = delete;
    SilenceWatch& operator=(const SilenceWatch&) = delete;

    // A subscription was accepted.
    void begin() {
        if (options_.after == std::chrono::milliseconds{0} || timer_.armed()) return;
        timer_.start_at(std::max(transport_.loop().now() + options_.after, not_before_));
    }
    // The connection has ended.
    void stop() {
        timer_.cancel();
        query_.reset();
    }

  private:
    static constexpr std::size_t ranges_per_query = 8;
    static constexpr std::chrono::seconds interval{60}; // between two queries, at least

    void ask() {
        std::vector<FidRange> silent = calls_.silent(ranges_per_query);
        if (silent.empty()) return;
        not_before_ = transport_.loop().now() + interval;
        FidQuery::Options options = options_.query;
        options.near = std::move(silent);
        query_ =
            std::make_unique<FidQuery>(transport_, std::move(options),
                                       [this](const FidQuery::Result& result) { take(result); });
    }
    // A failed query is not reported, because the subscription itself is not affected.
    void take(const FidQuery::Result& result) {
        const DestructionWatch watch{destroyed_};
        for (const FidQuery::Near& near : result.near) {
            if (near.is_published) continue;
            calls_.report(near);
            if (watch.destroyed() || !query_) return;
        }
    }

    Transport& transport_;
    Options options_;
    Calls calls_;
    Timer timer_;
    TimePoint not_before_; // the next query
    bool* destroyed_ = nullptr;
    std::unique_ptr<FidQuery> query_;
};

// Appends the runs of fids of a range of which nothing has arrived.
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

class SocketKeeper final : public MessageKeeper {
  public:
    explicit SocketKeeper(SubscribeSocket& socket) noexcept : socket_{socket} {}
    KeptBytes keep(std::span<const std::byte> message) const override {
        return socket_.keep(message);
    }

  private:
    SubscribeSocket& socket_;
};

Closed ended(CloseReason reason, std::string detail = {}) {
    return {.reason = reason, .detail = std::move(detail), .required_receive_bytes = 0};
}

std::vector<Address> all_addresses(const SubscribeSocket::Options& options) {
    std::vector<Address> addresses{options.publisher};
    addresses.insert(addresses.end(), options.fallback_addresses.begin(),
                     options.fallback_addresses.end());
    return addresses;
}

} // namespace

void validate(const SubscribeSocket::Options& options) {
    validate(options.session);
    if (options.largest_message_bytes == 0 || options.largest_message_bytes > UINT32_MAX) {
        throw std::invalid_argument{"largest_message_bytes must be from 1 to 4294967295"};
    }
    if (options.fid_limit == 0) throw std::invalid_argument{"fid_limit must be at least 1"};
    if (options.receive_buffer_limit_bytes < options.session.receive_buffer_bytes) {
        throw std::invalid_argument{
            "receive_buffer_limit_bytes must be at least session.receive_buffer_bytes"};
    }
    require_option(options.silence_hint.count() >= 0 && options.silence_hint <= longest_time,
                   "silence_hint must be from 0 (never) to a year");
    require_time("retry_interval", options.retry_interval);
    require_option(options.retry_limit <= longest_time, "retry_limit must be at most a year");
}

struct [[gnu::visibility("hidden")]] SubscribeSocket::Impl final : private Session::Handler,
                                                                   private Connector::Handler {
    Impl(Transport & the_transport, Options its_options, SubscribeSocket::Handler & the_handler,
         SubscribeSocket & the_socket);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy);
    void release(const FidRange& range);
    void close();
    void abort();
    void pause();
    void resume();
    KeptBytes keep(std::span<const std::byte> message);
    bool is_connected() const noexcept {
        return session && session->is_open();
    }

    struct Sink; // passes what the receiver finds to the handler
    struct StampedSink;

    void start();
    void retry();
    void connect();
    void attempt_failed(const Closed& closed, RejectCode rejection);
    void end_connection(bool in_order);
    // Reports the end of a connection, or of an attempt, to the user.
    void conclude(const Closed& closed);
    std::vector<FidRange> silent_ranges(std::size_t limit) const;
    void report_silence(const FidQuery::Near& near);
    void report_no_history(const Session& from);
    void note_supplied(const FidRange& range);

    void on_route(const Session::Target& route) override;
    void on_connect_failed(const Closed& closed) override;
    void on_open(Session & opened) override;
    void on_frame(Session & from, const IncomingFrame& frame) override;
    void on_sent(Session & from, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session & writable) override;
    void on_closed(Session & over, const Closed& closed) override;
    FrameReceiver::Outcome take_answer(Session & from, std::span<const std::byte> body);

    SubscribeSocket& socket;
    SocketKeeper keeper{socket};
    Transport& transport;
    Options options;
    SubscribeSocket::Handler& handler;
    SubscriptionState subscriptions;
    RequestQueue requests;
    FrameReceiver receiver;
    RetryRule retry_rule;
    Connector connector;
    Session::Target target; // in use, or of the last attempt
    Counters counters;
    bool answered = false; // in this connection
    bool reported_no_history = false;
    StampFormat stamps; // of this connection, once answered
    bool closing = false;
    bool paused = false;
    bool* destroyed = nullptr;
    Timer retry_timer;
    SilenceWatch silence;
    std::unique_ptr<Session> session; // last, so that it is destroyed first
};

// Passes messages and gaps to the handler until the user pauses, closes or destroys the socket.
struct SubscribeSocket::Impl::Sink {
    Impl& impl;
    DestructionWatch watch{impl.destroyed};

    bool is_gone() const noexcept { return watch.destroyed(); }
    bool goes_on() const noexcept { return !is_gone() && !impl.closing; }
    bool wants_more() const noexcept { return goes_on() && !impl.paused; }
    bool wants_pages() const noexcept { return impl.options.whole_pages; }
    bool take_message(Fid fid, std::span<const std::byte> message, std::uint8_t status) const {
        if (wants_pages()) return take_alone({fid, message, status, 0, &impl.keeper, impl.stamps});
        impl.handler.on_message(impl.socket, fid, message, status);
        return wants_more();
    }
    bool take_alone(const Message& message) const {
        impl.handler.on_page(impl.socket, PageView{message, &impl.keeper});
        return wants_more();
    }
    void take_page(std::span<const std::byte> records, std::size_t count) const {
        impl.handler.on_page(impl.socket, PageView{records, count, &impl.keeper, impl.stamps});
    }
    bool take_gap(Fid fid, std::uint64_t count) const {
        impl.handler.on_gap(impl.socket, fid, count);
        return wants_more();
    }
    bool take_change(const PublisherChange& change) const {
        impl.handler.on_publisher_changed(impl.socket, change);
        return goes_on();
    }
    bool take_lost(Fid fid, std::uint64_t count) const {
        impl.handler.on_lost_while_disconnected(impl.socket, fid, count);
        return goes_on();
    }
};
// A type of its own, so that messages without time stamps cost nothing.
struct SubscribeSocket::Impl::StampedSink : Sink {
    static constexpr std::size_t stamp_bytes = time_stamp::bytes;
};

SubscribeSocket::Impl::Impl(Transport& the_transport, Options its_options,
                            SubscribeSocket::Handler& the_handler, SubscribeSocket& the_socket)
    : socket{the_socket}, transport{the_transport}, options{std::move(its_options)},
      handler{the_handler}, requests{subscriptions,
                                     {.positions = options.reconnect || options.history,
                                      .history = options.history}},
      receiver{{.largest_message_bytes = options.largest_message_bytes, .fids = options.fid_limit},
               options.resume_state},
      retry_rule{{.wait_for_publisher = options.wait_for_publisher,
                  .reconnect = options.reconnect,
                  .reconnect_after_end = options.reconnect_after_end,
                  .proof = options.key ? RetryPolicy::Proof::by_key : RetryPolicy::Proof::none,
                  .receive_buffer_bytes = options.session.receive_buffer_bytes,
                  .receive_buffer_limit_bytes = options.receive_buffer_limit_bytes,
                  .back_off = {.first = options.retry_interval,
                               .limit = std::max(options.retry_interval, options.retry_limit),
                               .seed = transport.draw_number()}}},
      connector{transport, *this, options.session.connect_timeout}, retry_timer{transport.loop(),
                                                                                [this] {
                                                                                    retry();
                                                                                }},
      silence{transport,
              {.after = options.silence_hint,
               .query = {.publisher = options.publisher,
                         .fallback_addresses = options.fallback_addresses,
                         .local_host = options.local_host,
                         .key = options.key,
                         .receive_buffer_limit_bytes = options.receive_buffer_limit_bytes}},
              {.silent = [this](std::size_t limit) { return silent_ranges(limit); },
               .report = [this](const FidQuery::Near& near) { report_silence(near); }}} {
    validate(options);
    if (options.history) subscriptions.ask_for_history(receiver.resume_state()->supplied());
    start();
}

SubscribeSocket::Impl::~Impl() {
    if (destroyed != nullptr) *destroyed = true;
    if (receiver.resume_state().use_count() > 1) end_connection(false); // another socket resumes
}

// --- connecting -----------------------------------------------------------------------------

void SubscribeSocket::Impl::start() {
    retry_rule.begin_attempt();
    connector.connect(all_addresses(options), options.local_host, options.key);
}

void SubscribeSocket::Impl::retry() {
    if (closing) {
        return handler.on_closed(
            socket, ended(CloseReason::local, "closed before it was connected"), false);
    }
    start();
}

void SubscribeSocket::Impl::on_route(const Session::Target& route) {
    target = route;
    retry_rule.begin_route();
    connect();
}

void SubscribeSocket::Impl::on_connect_failed(const Closed& closed) {
    conclude(closed);
}

void SubscribeSocket::Impl::connect() {
    Hello hello{
        .service = Service::publish_subscribe, .features = time_stamps_feature, .service_data = {}};
    wire::store(hello.service_data.bytes.data(),
                static_cast<std::uint32_t>(options.largest_message_bytes));
    hello.service_data.size = 4;
    SessionOptions session_options = options.session;
    session_options.receive_buffer_bytes = retry_rule.receive_buffer_bytes();
    try {
        session = std::make_unique<Session>(transport, target, hello, session_options,
                                            static_cast<Session::Handler&>(*this));
    } catch (const std::invalid_argument& error) {
        // The options are valid, but not with the receive buffers that this publisher requires.
        throw FabricError{std::make_error_code(std::errc::not_enough_memory), error.what()};
    }
    if (paused) session->pause();
}

void SubscribeSocket::Impl::on_open(Session& opened) {
    retry_rule.on_open();
    ++counters.connections;
    connector.cancel();
    answered = false;
    receiver.begin_connection();
    reported_no_history = false;
    requests.begin(opened, *receiver.resume_state());
    handler.on_connected(socket);
}

void SubscribeSocket::Impl::close() {
    if (closing) return;
    closing = true;
    if (session) {
        session->close();
        session->resume(); // discards waiting messages, so that the publisher learns of the end
    } else {
        connector.cancel();
        retry_timer.start(Duration::zero()); // reports the end, because no session does
    }
}

void SubscribeSocket::Impl::abort() {
    if (session) {
        closing = true;
        session->abort();
    } else {
        close();
    }
}

// --- the end of a connection ----------------------------------------------------------------

void SubscribeSocket::Impl::on_closed(Session& over, const Closed& closed) {
    const Closed last = closed; // NOLINT: a needed copy, since the session is destroyed here
    const RejectCode rejection = over.rejection();
    retry_rule.on_closed(over.has_received());
    session.reset();
    // The publisher closes in order if nothing is wanted. A subscriber that closes wants nothing
    // either, whether the publisher confirms the end or not.
    end_connection(last.reason == CloseReason::orderly || last.reason == CloseReason::local ||
                   closing);
    requests.end();
    if (!connector.is_connecting()) return conclude(last);
    closing ? connector.close() : attempt_failed(last, rejection);
}

void SubscribeSocket::Impl::end_connection(bool in_order) {
    silence.stop();
    for (const FidRange& range : subscriptions.leaving())
        receiver.resume_state()->forget(range); // no answer follows
    receiver.end_connection(in_order);
}

// Continues with the next route.
void SubscribeSocket::Impl::attempt_failed(const Closed& closed, RejectCode rejection) {
    retry_rule.on_refused(refusal_of(rejection));
    if (!retry_rule.may_enlarge(closed)) return connector.try_next(closed);
    try {
        connect();
    } catch (const FabricError& error) {
        connector.try_next(ended(CloseReason::failed, error.what()));
    }
}

void SubscribeSocket::Impl::conclude(const Closed& closed) {
    Closed last = closed;
    const RetryRule::Wishes wishes{.any = !subscriptions.empty(),
                                   .totals = receiver.arrivals().complete()};
    const RetryRule::Next next = closing ? RetryRule::Next::nothing : retry_rule.next(last, wishes);
    const bool retrying = next != RetryRule::Next::nothing;
    if (retrying) {
        retry_timer.start(retry_rule.wait(next));
    } else if (last.required_receive_bytes > options.receive_buffer_limit_bytes) {
        last.detail +=
            "; receive_buffer_limit_bytes is " + std::to_string(options.receive_buffer_limit_bytes);
    }
    retry_rule.conclude();
    handler.on_closed(socket, last, retrying);
}

// --- requests -------------------------------------------------------------------------------

void SubscribeSocket::Impl::subscribe(std::span<const FidRange> ranges,
                                      std::optional<SlowPolicy> policy) {
    for (const FidRange& range : ranges) {
        if (range.last < range.first) {
            throw std::invalid_argument{"a range of fids ends before it begins: " +
                                        to_string(range)};
        }
    }
    subscriptions.subscribe(ranges, policy);
    if (is_connected()) {
        requests.send(*session);
    } else if (!session && !closing && !connector.is_connecting() && !retry_timer.armed()) {
        retry_timer.start(Duration::zero()); // the publisher had closed the connection
    }
}

void SubscribeSocket::Impl::release(const FidRange& range) {
    subscriptions.unsubscribe(range);
    if (is_connected()) requests.send(*session);
}

void SubscribeSocket::Impl::on_sent(Session& from, Cookie cookie, Completion::Outcome) {
    requests.on_sent(cookie);
    requests.send(from);
}

void SubscribeSocket::Impl::on_writable(Session& writable) {
    requests.send(writable);
}

// --- fids that are not published ------------------------------------------------------------

// Examines each fid of a small range; of a large range only whether any fid has arrived. Returns
// nothing if very many fids have arrived, because the search would take too much of the loop's
// turn.
std::vector<FidRange> SubscribeSocket::Impl::silent_ranges(std::size_t limit) const {
    constexpr std::size_t looked_at = 65536; // fids, and ranges
    constexpr std::uint64_t small_range = 256;
    const auto& fids = receiver.arrivals().fids();
    const std::vector<FidRange> wanted = subscriptions.wanted();
    if (paused || fids.size() > looked_at || wanted.size() > looked_at) return {};
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

void SubscribeSocket::Impl::report_silence(const FidQuery::Near& near) {
    if (!closing) handler.on_nothing_published(socket, near);
}

// --- what arrives ---------------------------------------------------------------------------

void SubscribeSocket::Impl::pause() {
    if (paused || closing) return; // after close() only the end would be delayed
    paused = true;
    ++counters.pauses;
    if (session) session->pause();
}

void SubscribeSocket::Impl::resume() {
    paused = false;
    if (session) session->resume();
}

KeptBytes SubscribeSocket::Impl::keep(std::span<const std::byte> message) {
    NETIO_CHECK_MSG(session, "keep() is for on_message");
    auto joined = receiver.keep_joined(message, [this](std::vector<std::byte> memory) {
        return session->keep(std::move(memory));
    });
    return joined ? *std::move(joined) : session->keep(message);
}

void SubscribeSocket::Impl::on_frame(Session& from, const IncomingFrame& frame) {
    const bool is_message =
        frame.kind == page_kind || frame.kind == message_kind || frame.kind == fragment_kind;
    if (closing) return from.add_unread(is_message ? 1 : 0); // the user wants no more messages
    StampedSink stamped{{*this}};
    Sink& sink = stamped;
    const FrameReceiver::Frame received{
        .kind = frame.kind, .flags = frame.flags, .body = frame.body, .continued = frame.continued};
    const FrameReceiver::Outcome outcome =
        frame.kind == subscription_answer_kind && frame.flags == 0 ? take_answer(from, frame.body)
        : stamps.clock == StampClock::none ? receiver.take(received, subscriptions, sink)
                                           : receiver.take(received, subscriptions, stamped);
    if (sink.is_gone()) return;
    receiver.end_of_joined();
    if (outcome == FrameReceiver::Outcome::left) {
        closing ? from.add_unread(is_message ? 1 : 0) : from.put_back(receiver.rest());
    }
    if (closing) return;
    if (outcome == FrameReceiver::Outcome::malformed) {
        from.fail(CloseReason::protocol_error, from.peer_address() +
                                                   " sent a malformed frame of kind " +
                                                   std::to_string(frame.kind));
    } else if (outcome == FrameReceiver::Outcome::no_memory) {
        from.fail(CloseReason::failed,
                  "no memory to reassemble a message; give the process more memory or lower "
                  "largest_message_bytes, " +
                      std::to_string(options.largest_message_bytes));
    } else if (outcome == FrameReceiver::Outcome::too_many_fids) {
        from.fail(CloseReason::protocol_error, from.peer_address() +
                                                   " publishes more fids than fid_limit, " +
                                                   std::to_string(options.fid_limit));
    } else if (outcome == FrameReceiver::Outcome::totals) {
        requests.answer_totals(from);
        handler.on_totals(socket);
    }
}

void SubscribeSocket::Impl::report_no_history(const Session& from) {
    Observer* const observer = transport.loop().observer;
    if (std::exchange(reported_no_history, true) || observer == nullptr) return;
    observer->on_no_history({.peer = from.peer_address()});
}

// The user may have unsubscribed in the meantime, and may subscribe again.
void SubscribeSocket::Impl::note_supplied(const FidRange& range) {
    for (const FidRange& wanted : subscriptions.wanted_in(range))
        receiver.resume_state()->note_supplied(wanted);
}

FrameReceiver::Outcome SubscribeSocket::Impl::take_answer(Session& from,
                                                          std::span<const std::byte> body) {
    const auto answer = decode_answer(body);
    // Requests of this version have no options that could be unknown.
    if (!answer || answer->result == SubscriptionResult::unknown_option)
        return FrameReceiver::Outcome::malformed;
    const auto request = subscriptions.answered(*answer);
    if (!request) return FrameReceiver::Outcome::malformed;
    const bool is_first = !std::exchange(answered, true);
    if (!is_first && answer->stamps != stamps) return FrameReceiver::Outcome::malformed;
    stamps = answer->stamps;
    const Sink sink{*this};
    const bool accepted = answer->result == SubscriptionResult::accepted;
    retry_rule.on_answered();
    if (accepted && request->subscribe && options.history && !answer->keeps_history)
        report_no_history(from);
    for (const FidRange& range : request->ranges) {
        if (accepted && request->subscribe) {
            receiver.begin_subscription(range);
            if (options.history) note_supplied(range);
            silence.begin();
            handler.on_subscribed(socket, range);
        } else if (accepted) {
            handler.on_unsubscribed(socket, range); // the user may still read its counters
            if (sink.is_gone()) return FrameReceiver::Outcome::taken;
            receiver.end_subscription(range);
        } else if (!request->subscribe) {
            handler.on_unsubscription_refused(socket, range);
        } else if (answer->result == SubscriptionResult::table_full) {
            handler.on_subscription_refused(socket, range);
        } else if (answer->result == SubscriptionResult::not_permitted) {
            handler.on_subscription_not_permitted(socket, range);
        } else {
            handler.on_policy_refused(socket, range);
        }
        if (!sink.goes_on()) return FrameReceiver::Outcome::taken;
    }
    requests.send(from); // the ranges of a refused request are requested one by one
    return FrameReceiver::Outcome::taken;
}

// --- the public class -----------------------------------------------------------------------

// Destroyed by the loop after the socket, because a function that destroys the socket may be
// running.
class SubscribeSocket::FunctionHandler final : public Handler, public Retired {
  public:
    FunctionHandler(SubscribeSocket& socket, Functions functions)
        : keeper_{socket}, functions_{std::move(functions)} {}

    void on_connected(SubscribeSocket&) override { call(functions_.on_connected); }
    void on_subscribed(SubscribeSocket& socket, const FidRange& fids) override {
        stamps_ = socket.stamps();
        call(functions_.on_subscribed, fids);
    }
    void on_subscription_refused(SubscribeSocket&, const FidRange& fids) override {
        call(functions_.on_refused, fids);
    }
    void on_message(SubscribeSocket&, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override {
        std::uint64_t lost_before = 0;
        if (const std::uint64_t* const lost = lost_.empty() ? nullptr : lost_.find(fid)) {
            lost_before = *lost;
            lost_.erase(fid);
        }
        call(functions_.on_message,
             netio::MessageView{fid, message, status, lost_before, &keeper_, stamps_});
    }
    void on_page(SubscribeSocket&, const netio::PageView& page) override {
        call(functions_.on_page, page);
    }
    void on_gap(SubscribeSocket&, Fid fid, std::uint64_t count) override { lose(fid, count); }
    void on_lost_while_disconnected(SubscribeSocket&, Fid fid, std::uint64_t count) override {
        lose(fid, count);
    }
    void on_publisher_changed(SubscribeSocket&, const PublisherChange& change) override {
        call(functions_.on_publisher_changed, change);
    }
    void on_closed(SubscribeSocket&, const Closed& closed, bool retrying) override {
        call(functions_.on_closed, closed, retrying);
    }

  private:
    template <typename Function, typename... Arguments>
    static void call(const Function& function, const Arguments&... arguments) {
        if (function) function(arguments...);
    }
    void lose(Fid fid, std::uint64_t count) {
        if (!functions_.on_page) lost_[fid] += count;
        call(functions_.on_lost, fid, count);
    }

    SocketKeeper keeper_;
    const Functions functions_;
    StampFormat stamps_;
    FidMap<std::uint64_t> lost_; // since the last message of the fid
};

SubscribeSocket::SubscribeSocket(EventLoop& loop, AddressList publisher, Functions functions)
    : SubscribeSocket{loop, std::move(publisher), std::move(functions),
                      Options{.reconnect = true, .reconnect_after_end = false}} {}

SubscribeSocket::SubscribeSocket(EventLoop& loop, AddressList publisher, Functions functions,
                                 Options options) {
    options.whole_pages = static_cast<bool>(functions.on_page);
    functions_ = std::make_unique<FunctionHandler>(*this, std::move(functions));
    require_option(!publisher.empty(), "a subscriber needs the address of its publisher");
    options.publisher = publisher.front();
    options.fallback_addresses = std::vector<Address>{publisher.begin() + 1, publisher.end()};
    impl_ = std::make_unique<Impl>(network_of(loop), std::move(options),
                                   static_cast<Handler&>(*functions_), *this);
}

SubscribeSocket::SubscribeSocket(Transport& transport, Options options, Handler& handler)
    : impl_{std::make_unique<Impl>(transport, std::move(options), handler, *this)} {}

SubscribeSocket::~SubscribeSocket() {
    EventLoop& loop = impl_->transport.loop();
    check_destructor(loop, "SubscribeSocket", impl_);
    if (!impl_) {
        static_cast<void>(functions_.release()); // in a child process
        return;
    }
    impl_.reset();
    if (functions_) loop.retire(std::move(functions_));
}

SubscribeSocket::Impl& SubscribeSocket::impl(const char* call) const noexcept {
    impl_->transport.loop().check_caller("SubscribeSocket", call);
    return *impl_;
}

void SubscribeSocket::subscribe(const FidRange& range, std::optional<SlowPolicy> policy) {
    impl().subscribe({&range, 1}, policy);
}

void SubscribeSocket::subscribe(std::span<const FidRange> ranges,
                                std::optional<SlowPolicy> policy) {
    impl().subscribe(ranges, policy);
}

void SubscribeSocket::unsubscribe(const FidRange& range) {
    // The fids are not wanted any more, so messages published since a lost connection do not count
    // as lost.
    Impl& self = impl();
    self.receiver.resume_state()->forget_tails(range);
    self.receiver.resume_state()->forget_supplied(range);
    self.release(range);
}

void SubscribeSocket::release(const FidRange& range) {
    impl().release(range);
}

void SubscribeSocket::close() {
    impl().close();
}

void SubscribeSocket::abort() {
    impl().abort();
}

void SubscribeSocket::pause() {
    impl().pause();
}

void SubscribeSocket::resume() {
    impl().resume();
}

KeptBytes SubscribeSocket::keep(std::span<const std::byte> message) {
    return impl().keep(message);
}

StampFormat SubscribeSocket::stamps() const noexcept {
    return impl().stamps;
}

KeepStats SubscribeSocket::kept() const {
    const Impl& self = impl();
    return self.session ? self.session->kept() : KeepStats{};
}

bool SubscribeSocket::may_keep_buffer() const {
    const Impl& self = impl();
    return self.session && self.session->may_keep_buffer();
}

bool SubscribeSocket::is_paused() const noexcept {
    return impl().paused;
}

const SubscribeSocket::Counters& SubscribeSocket::counters() noexcept {
    Impl& self = impl();
    self.counters.messages = self.receiver.arrivals().messages();
    self.counters.bytes = self.receiver.arrivals().bytes();
    return self.counters;
}

std::vector<FidRange> SubscribeSocket::wanted() const {
    return impl().subscriptions.wanted();
}

std::vector<FidRange> SubscribeSocket::awaited(const FidRange& range) const {
    return impl().subscriptions.awaited_in(range);
}

bool SubscribeSocket::is_connected() const noexcept {
    return impl().is_connected();
}

const std::string& SubscribeSocket::provider() const noexcept {
    return impl().target.provider;
}

std::uint64_t SubscribeSocket::publisher_instance() const noexcept {
    return impl().receiver.instance();
}

std::shared_ptr<ResumeState> SubscribeSocket::resume_state() const {
    return impl().receiver.resume_state();
}

const FramesSeen& SubscribeSocket::seen() const noexcept {
    return impl().receiver.seen();
}

const ArrivalCounter& SubscribeSocket::arrivals() const noexcept {
    return impl().receiver.arrivals();
}

} // namespace netio::pubsub::inline v0_3
