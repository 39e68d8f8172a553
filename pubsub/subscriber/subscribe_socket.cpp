// SPDX-License-Identifier: Apache-2.0

// The connection to the publisher and the requests to it. What arrives is taken in
// subscribe_socket_frames.cpp.

#include "pubsub/subscriber/subscribe_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_2 {

SubscribeSocket::SubscribeSocket(Transport& transport, Options options, Handler& handler)
    : transport_{transport}, options_{std::move(options)}, handler_{handler},
      reassembly_{options_.largest_message_bytes}, retry_timer_{transport.loop(),
                                                                [this] { retry(); }} {
    validate(options_.session);
    if (options_.largest_message_bytes == 0 || options_.largest_message_bytes > UINT32_MAX) {
        throw std::invalid_argument{"largest_message_bytes must be from 1 to 4294967295"};
    }
    if (options_.retry_interval.count() <= 0) {
        throw std::invalid_argument{"retry_interval must be positive"};
    }
    start();
}

SubscribeSocket::~SubscribeSocket() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

// --- connecting -----------------------------------------------------------------------------

void SubscribeSocket::start() {
    providers_ = transport_.providers_to(options_.publisher);
    std::ranges::reverse(providers_);
    try_next_provider();
}

void SubscribeSocket::retry() {
    if (closing_) {
        return handler_.on_closed(
            *this, {.reason = CloseReason::local, .detail = {}, .required_receive_bytes = 0},
            false);
    }
    try {
        start();
    } catch (const FabricError&) {
        retry_timer_.start(options_.retry_interval); // the name may come back
    }
}

void SubscribeSocket::try_next_provider() {
    provider_ = providers_.back();
    providers_.pop_back();
    connect();
}

void SubscribeSocket::connect() {
    Hello hello{.service = Service::publish_subscribe, .service_data = {}};
    wire::store(hello.service_data.bytes.data(),
                static_cast<std::uint32_t>(options_.largest_message_bytes));
    hello.service_data.size = 4;
    session_ = std::make_unique<Session>(
        transport_,
        Session::Target{
            .provider = provider_, .remote = options_.publisher, .local_host = options_.local_host},
        hello, options_.session, static_cast<Session::Handler&>(*this));
}

void SubscribeSocket::on_open(Session&) {
    was_open_ = true;
    providers_.clear();
    arrivals_.forget_all();
    ask_for_all();
    handler_.on_connected(*this);
}

void SubscribeSocket::close() {
    if (closing_) return;
    closing_ = true;
    if (session_) {
        session_->close();
    } else {
        retry_timer_.start(Duration::zero()); // has the last word in place of a session
    }
}

// --- the end of a connection ----------------------------------------------------------------

bool SubscribeSocket::may_retry(const Closed& closed, RejectCode rejection) const noexcept {
    if (closing_ || closed.reason == CloseReason::local) return false;
    if (!was_open_) {
        // What stays wrong until somebody changes the configuration is not tried again.
        return options_.wait_for_publisher && closed.reason != CloseReason::protocol_error &&
               (closed.reason != CloseReason::rejected || may_pass(rejection));
    }
    if (closed.reason != CloseReason::orderly) return options_.reconnect;
    // The publisher let us go because nothing was wanted any more, and meanwhile something is.
    return totals_seen_ ? options_.reconnect : !wanted_.empty();
}

void SubscribeSocket::forget_connection() {
    session_.reset();
    waiting_.clear();
    sent_.clear();
    bodies_.clear();
    totals_.clear();
    reassembly_.abandon();
}

void SubscribeSocket::on_closed(Session& session, const Closed& closed) {
    const Closed last = closed; // the session goes now
    const RejectCode rejection = session.rejection();
    // One that let us in and never said a word was too busy to hear us: it is not there yet.
    was_open_ = was_open_ && session.has_heard();
    forget_connection();
    try {
        if (!closing_ && !was_open_ && last.reason == CloseReason::rejected &&
            last.required_receive_bytes > options_.session.receive_bytes) {
            options_.session.receive_bytes = last.required_receive_bytes;
            return connect();
        }
        if (!closing_ && !was_open_ && !providers_.empty()) return try_next_provider();
    } catch (const FabricError& error) {
        return handler_.on_closed(
            *this,
            {.reason = CloseReason::failed, .detail = error.what(), .required_receive_bytes = 0},
            false);
    }
    const bool retrying = may_retry(last, rejection);
    if (retrying) {
        const bool at_once = was_open_ && last.reason == CloseReason::orderly && !totals_seen_;
        retry_timer_.start(at_once ? std::chrono::milliseconds{0} : options_.retry_interval);
    }
    was_open_ = false;
    totals_seen_ = false;
    handler_.on_closed(*this, last, retrying);
}

// --- requests -------------------------------------------------------------------------------

// After a connection: everything, by policy.
void SubscribeSocket::ask_for_all() {
    for (const std::optional<SlowPolicy> policy :
         {std::optional<SlowPolicy>{}, std::optional{SlowPolicy::block},
          std::optional{SlowPolicy::drop}, std::optional{SlowPolicy::disconnect}}) {
        std::vector<FidRange> ranges;
        for (const FidRange& range : wanted_)
            std::ranges::copy(policies_.pieces(range, policy), std::back_inserter(ranges));
        send_requests(subscribe_kind, ranges, policy);
    }
}

void SubscribeSocket::subscribe(const FidRange& range, std::optional<SlowPolicy> policy) {
    subscribe(std::span{&range, 1}, policy);
}

void SubscribeSocket::subscribe(std::span<const FidRange> ranges,
                                std::optional<SlowPolicy> policy) {
    for (const FidRange& range : ranges) {
        if (range.last < range.first) {
            throw std::invalid_argument{"a range of fids ends before it begins: " +
                                        to_string(range)};
        }
    }
    wanted_.insert(wanted_.end(), ranges.begin(), ranges.end());
    wanted_ = normalised(wanted_);
    for (const FidRange& range : ranges)
        policies_.set(range, policy);
    if (is_connected()) {
        send_requests(subscribe_kind, ranges, policy);
    } else if (!session_ && !closing_ && !retry_timer_.armed()) {
        retry_timer_.start(Duration::zero()); // we were let go
    }
}

void SubscribeSocket::unsubscribe(const FidRange& range) {
    wanted_ = without(wanted_, range);
    policies_.set(range, std::nullopt);
    if (is_connected()) send_requests(unsubscribe_kind, {&range, 1});
}

void SubscribeSocket::send_requests(std::uint8_t kind, std::span<const FidRange> ranges,
                                    std::optional<SlowPolicy> policy) {
    const std::size_t limit =
        (std::min<std::size_t>(session_->body_limit(), 4096) - request_header_bytes) / range_bytes;
    while (!ranges.empty()) {
        const auto part = ranges.first(std::min(limit, ranges.size()));
        ranges = ranges.subspan(part.size());
        Request request{.kind = kind,
                        .number = next_request_++,
                        .ranges = {part.begin(), part.end()},
                        .body = std::make_unique<RegisteredBuffer>(request_header_bytes +
                                                                   part.size() * range_bytes)};
        encode_request(request.number, part, request.body->memory(), policy);
        waiting_.push_back(std::move(request));
    }
    send_waiting();
}

void SubscribeSocket::send_waiting() {
    while (!waiting_.empty()) {
        Request& request = waiting_.front();
        const Slice slice = request.body ? request.body->slice() : Slice{};
        const Status status =
            session_->send({.kind = request.kind,
                            .flags = 0,
                            .extension = {},
                            .slices = {&slice, request.body ? std::size_t{1} : 0}},
                           Cookie{request.number});
        if (status != Status::ok) return; // on_writable or on_closed follows
        // Its memory is lent until on_sent, whenever the answer comes.
        bodies_.emplace(request.number, std::move(request.body));
        if (request.kind != totals_answer_kind) sent_.emplace(request.number, std::move(request));
        waiting_.pop_front();
    }
}

void SubscribeSocket::on_sent(Session&, Cookie cookie, Completion::Outcome) {
    bodies_.erase(static_cast<std::uint32_t>(cookie));
}

void SubscribeSocket::on_writable(Session&) {
    send_waiting();
}

} // namespace netio::pubsub::inline v0_2
