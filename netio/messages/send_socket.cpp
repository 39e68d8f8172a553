// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/send_socket.hpp"

#include "netio/base/back_off.hpp"
#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"
#include "netio/loop/check_caller.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/session/connector.hpp"
#include "netio/session/send_times.hpp"
#include "netio/session/session.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace netio::inline v0_3 {

static_assert(SendSocket::slice_limit == netio::slice_limit);
static_assert(SendSocket::inline_limit == frame_extension_limit - messages::immediate_bytes);

void validate(const SendSocket::Options& options) {
    validate(options.session);
    require_time("retry_interval", options.retry_interval);
    require_option(options.retry_limit <= longest_time, "retry_limit must be at most a year");
}

// The session of the connection, and the connector that searches for one.
struct SendSocket::Impl final : private Session::Handler, private Connector::Handler {
    Impl(SendSocket& user, Transport& transport_, Options options_, SendSocket::Handler& handler_);

    Status send(const OutgoingFrame& frame, std::optional<Cookie> cookie, TimePoint since) {
        const Status status = session ? session->send(frame, cookie) : Status::closed;
        if (cookie && status == Status::ok) times.on_posted(since);
        return status;
    }
    EventLoop& loop() const noexcept { return transport.loop(); }
    bool is_connected() const noexcept { return session && session->is_open(); }
    Counters counters() const noexcept;
    RetryPolicy::Proof proof() const noexcept {
        return options.key ? RetryPolicy::Proof::by_key : RetryPolicy::Proof::none;
    }
    void start();

    SendSocket& socket;
    Transport& transport;
    Options options;
    SendSocket::Handler& handler;
    Connector connector;
    std::string provider;
    std::uint64_t connections = 0; // established
    Counters ended;                // of earlier connections
    Address remote;
    TimePoint opened{}; // of this connection
    BackOff back_off;
    RetryPolicy retry_policy; // of attempts at remote
    SendTimes times;          // of messages with a completion
    bool closing = false;
    Timer retry_timer;
    std::unique_ptr<Session> session;

  private:
    void retry();
    // Reports the end of a connection, or of an attempt at one.
    void conclude(const Closed& closed, bool may_change);
    void on_route(const Session::Target& target) override;
    void on_connect_failed(const Closed& closed) override;
    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;
};

// --- connecting -----------------------------------------------------------------------------

SendSocket::Impl::Impl(SendSocket& user, Transport& transport_, Options options_,
                       SendSocket::Handler& handler_)
    : socket{user}, transport{transport_}, options{std::move(options_)}, handler{handler_},
      connector{transport_, *this, options.session.connect_timeout},
      back_off{{.first = options.retry_interval,
                .limit = std::max(options.retry_interval, options.retry_limit),
                .seed = transport_.draw_number()}},
      retry_policy{proof()}, retry_timer{transport_.loop(), [this] { retry(); }} {
    validate(options);
}

void SendSocket::Impl::start() {
    retry_policy.begin_attempt();
    connector.connect(remote, options.local_host, options.key);
}

void SendSocket::Impl::retry() {
    if (!closing) return start();
    handler.on_closed(
        socket, {.reason = CloseReason::local, .detail = "closed before it was connected again"});
}

void SendSocket::Impl::on_route(const Session::Target& target) {
    provider = target.provider;
    session = std::make_unique<Session>(transport, target, messages::hello(0), options.session,
                                        static_cast<Session::Handler&>(*this));
}

void SendSocket::Impl::on_connect_failed(const Closed& closed) {
    conclude(closed, retry_policy.may_change(closed));
}

void SendSocket::Impl::conclude(const Closed& closed, bool may_change) {
    if (options.reconnect && may_change && !closing) {
        retry_timer.start(back_off.next());
    }
    handler.on_closed(socket, closed);
}

SendSocket::Counters SendSocket::Impl::counters() const noexcept {
    Counters sums = ended;
    if (!session) return sums;
    const SessionCounters now = session->counters();
    sums.messages += now.frames_sent;
    sums.bytes += now.bytes_sent;
    sums.again += now.again;
    sums.gathered += now.gathered;
    return sums;
}

void SendSocket::Impl::on_open(Session&) {
    connector.cancel();
    retry_policy.on_admitted();
    ++connections;
    opened = transport.loop().now();
    handler.on_connected(socket);
}

void SendSocket::Impl::on_frame(Session& from, const IncomingFrame&) {
    from.fail(CloseReason::protocol_error, "a receive socket sends no messages");
}

void SendSocket::Impl::on_sent(Session&, Cookie cookie, Completion::Outcome outcome) {
    outcome == Completion::Outcome::done ? times.on_sent(loop().now()) : times.on_canceled();
    handler.on_send_completed(socket, cookie, outcome);
}

void SendSocket::Impl::on_writable(Session&) {
    handler.on_writable(socket);
}

void SendSocket::Impl::on_closed(Session& last, const Closed& closed) {
    retry_policy.on_refused(refusal_of(last.rejection()));
    // After a listener has accepted this socket, or a connection lasted, the first retry is soon.
    const bool stood =
        !connector.is_connecting() && transport.loop().now() - opened >= options.retry_limit;
    if (stood || last.has_received()) back_off.reset();
    ended = counters();
    session.reset();
    if (!connector.is_connecting()) return conclude(closed, true);
    // After close() or abort() no other route is tried, even if this attempt failed before.
    closing ? connector.close() : connector.try_next(closed);
}

// --- the user's calls -----------------------------------------------------------------------

SendSocket::SendSocket(Transport& transport, Options options, Handler& handler)
    : impl_{std::make_unique<Impl>(*this, transport, std::move(options), handler)} {}

SendSocket::~SendSocket() {
    check_destructor(impl_->loop(), "SendSocket", impl_);
}

void SendSocket::connect(const Address& remote) {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    NETIO_CHECK_MSG(!impl_->session && !impl_->connector.is_connecting(),
                    "the socket is connected or connecting");
    impl_->retry_timer.cancel();
    impl_->closing = false;
    impl_->remote = remote;
    impl_->retry_policy = RetryPolicy{impl_->proof()};
    impl_->start();
}

void SendSocket::close() {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    impl_->closing = true;
    if (impl_->session) return impl_->session->close();
    if (impl_->connector.is_connecting()) return impl_->connector.close();
    if (impl_->retry_timer.armed()) impl_->retry_timer.start(Duration::zero());
}

void SendSocket::abort() {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    if (!impl_->session) return close();
    impl_->closing = true;
    impl_->session->abort();
}

Status SendSocket::send(const Slice& slice, Cookie cookie, std::optional<std::uint64_t> immediate) {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    return sendv({&slice, 1}, cookie, immediate);
}

Status SendSocket::sendv(std::span<const Slice> slices, Cookie cookie,
                         std::optional<std::uint64_t> immediate) {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    std::ranges::for_each(slices, check_slice);
    std::array<std::byte, messages::immediate_bytes> extension;
    if (immediate) wire::store(extension.data(), *immediate);
    return impl_->send({.kind = messages::message_kind,
                        .flags = immediate ? messages::immediate_flag : std::uint8_t{0},
                        .extension = std::span{extension}.first(immediate ? extension.size() : 0),
                        .slices = slices},
                       cookie, impl_->loop().now());
}

Status SendSocket::send_inline(std::span<const std::byte> message,
                               std::optional<std::uint64_t> immediate) {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    if (message.size() > inline_limit) return Status::too_large;
    std::array<std::byte, frame_extension_limit> body;
    if (immediate) wire::store(body.data(), *immediate);
    const std::size_t head = immediate ? messages::immediate_bytes : 0;
    std::ranges::copy(message, body.begin() + static_cast<std::ptrdiff_t>(head));
    return impl_->send({.kind = messages::message_kind,
                        .flags = immediate ? messages::immediate_flag : std::uint8_t{0},
                        .extension = std::span{body}.first(head + message.size()),
                        .slices = {}},
                       std::nullopt, impl_->loop().now());
}

bool SendSocket::is_connected() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    return impl_->is_connected();
}

bool SendSocket::is_retrying() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    return impl_->retry_timer.armed() && !impl_->closing;
}

std::size_t SendSocket::message_limit() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    return is_connected() ? impl_->session->body_limit() - messages::immediate_bytes : 0;
}

std::size_t SendSocket::segment_limit() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    return is_connected() ? impl_->session->segment_limit() : 0;
}

const std::string& SendSocket::provider() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    return impl_->provider;
}

SendSocket::Counters SendSocket::counters() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    return impl_->counters();
}

SendSnapshot SendSocket::snapshot() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop(), "SendSocket");
    const SendSocket::Counters sums = impl_->counters();
    SendSnapshot snapshot{.connected = impl_->is_connected(),
                          .messages = sums.messages,
                          .bytes = sums.bytes,
                          .frames = sums.messages,
                          .again = sums.again,
                          .connections = impl_->connections,
                          .latency = impl_->times.latency()};
    if (!impl_->session) return snapshot;
    const SessionCounters now = impl_->session->counters();
    snapshot.credits = now.credits;
    snapshot.unconfirmed = now.unconfirmed;
    return snapshot;
}

// --- for the buffered send socket -----------------------------------------------------------

Status SendSocket::send_frame(const OutgoingFrame& frame, std::optional<Cookie> cookie,
                              TimePoint since) {
    return impl_->send(frame, cookie, since);
}

Session& SendSocket::session() noexcept {
    return *impl_->session;
}

void SendSocket::stop_reconnecting() noexcept {
    impl_->closing = true;
}

} // namespace netio::inline v0_3
