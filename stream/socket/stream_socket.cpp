// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/stream_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/never_destroyed.hpp"
#include "netio/loop/check_caller.hpp"
#include "stream/core/wire.hpp"
#include "stream/socket/stream_connection.hpp"

#include <stdexcept>
#include <utility>

namespace netio::stream::inline v0_3 {

StreamSocket::Options published_stream(std::uint64_t ring_bytes) {
    return {.sender = published_sender(0), .receiver = published_receiver(ring_bytes)};
}

void validate(const StreamSocket::Options& options) {
    SenderOptions sender = options.sender;
    sender.ring_bytes = 1; // any valid value: the peer announces its own
    validate(sender);
    validate(options.receiver);
    validate(options.session);
    const auto require = [](bool good, const char* rule) {
        if (!good) throw std::invalid_argument{rule};
    };
    require(
        !options.session.receive_memory,
        "session.receive_memory is for messages; a stream receives into the memory of receive()");
    require(options.session.receive_buffer_bytes >= frame_limit_bytes,
            "session.receive_buffer_bytes must be at least 1312 for a stream's control messages");
    require(options.frame_bytes >= control_limit_bytes &&
                options.frame_bytes <= transfer_limit_bytes,
            "frame_bytes must be from 1304 to 536870911");
    require(options.frame_count >= least_session_receive_count && options.frame_count <= 16384,
            "frame_count must be from 4 to 16384");
    require(options.session.send_count >= 4, "session.send_count must be at least 4 for a stream");
    require(options.send_limit_count > 0 && options.receive_limit_count > 0,
            "send_limit_count and receive_limit_count must be at least 1");
    require(options.copy_step_bytes > 0, "copy_step_bytes must be at least 1");
    require(options.round_trip.count() >= 0, "round_trip must not be negative");
    require(options.sender.advert_limit_count <= 65'535,
            "sender.advert_limit_count must be at most 65535");
}

// --- connecting -----------------------------------------------------------------------------

StreamSocket::Impl::Impl(StreamSocket& user, Transport& transport_, Options options_,
                         StreamSocket::Handler& handler_)
    : socket{user}, transport{transport_}, loop{transport_.loop()}, options{(validate(options_),
                                                                             std::move(options_))},
      handler{handler_}, connector{transport_, *this, options.session.connect_timeout} {}

void StreamSocket::Impl::on_route(const Session::Target& target) {
    connection = std::make_unique<StreamConnection>(*this, target);
}

void StreamSocket::Impl::on_connect_failed(const Closed& closed) {
    handler.on_closed(socket, closed); // may destroy this
}

void StreamSocket::Impl::on_open() {
    connector.cancel();
    if (shut_down) connection->shutdown_send();
    handler.on_connected(socket);
}

void StreamSocket::Impl::on_ended(const Closed& closed) {
    const std::unique_ptr<StreamConnection> ended = std::move(connection);
    // After close() or abort() no other route is tried, even if this attempt failed before.
    if (connector.is_connecting()) return closing ? connector.close() : connector.try_next(closed);
    last_counters = ended->counters();
    handler.on_closed(socket, Closed{closed});
}

StreamSocket::StreamSocket(Transport& transport, Options options, Handler& handler)
    : impl_{std::make_unique<Impl>(*this, transport, std::move(options), handler)} {}

StreamSocket::~StreamSocket() {
    check_destructor(impl_->loop, "StreamSocket", impl_);
}

void StreamSocket::connect(const Address& remote) {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    NETIO_CHECK_MSG(!impl_->connection && !impl_->connector.is_connecting(),
                    "the socket is connected or connecting");
    impl_->shut_down = impl_->closing = false;
    impl_->last_counters = {};
    impl_->connector.connect(remote, impl_->options.local_host, impl_->options.key);
}

void StreamSocket::accept(IncomingSession& incoming) {
    impl_->connection = std::make_unique<StreamConnection>(*impl_, incoming);
}

// --- the user's calls -----------------------------------------------------------------------

Status StreamSocket::send(const Slice& slice, Cookie cookie) {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    check_slice(slice);
    const bool may_send = impl_->connection && !impl_->shut_down;
    return may_send ? impl_->connection->send(slice, cookie) : Status::closed;
}

Status StreamSocket::receive(const Slice& slice, Cookie cookie, Fill fill) {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    check_slice(slice);
    return impl_->connection ? impl_->connection->receive(slice, cookie, fill) : Status::closed;
}

std::span<const std::byte> StreamSocket::peek() const {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    return impl_->connection ? impl_->connection->peek() : std::span<const std::byte>{};
}

void StreamSocket::consume(std::size_t bytes) {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    NETIO_CHECK_MSG(impl_->connection || bytes == 0, "consume() without a connection");
    if (impl_->connection) impl_->connection->consume(bytes);
}

void StreamSocket::shutdown_send() {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    if (!impl_->connection && !impl_->connector.is_connecting()) return;
    impl_->shut_down = true;
    if (is_connected()) impl_->connection->shutdown_send();
}

void StreamSocket::close() {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    impl_->shut_down = impl_->closing = true;
    if (impl_->connection) return impl_->connection->close();
    if (impl_->connector.is_connecting()) impl_->connector.close();
}

void StreamSocket::abort() {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    impl_->closing = true;
    if (impl_->connection) return impl_->connection->abort();
    if (impl_->connector.is_connecting()) impl_->connector.close();
}

// --- for the blocking stream ----------------------------------------------------------------

void StreamSocket::disconnect() {
    if (impl_->connection) impl_->connection->disconnect();
}

std::uint64_t StreamSocket::filled_bytes() const noexcept {
    return impl_->connection ? impl_->connection->filled_bytes() : 0;
}

bool StreamSocket::move_receive(const Slice& to) {
    return impl_->connection && impl_->connection->move_receive(to);
}

// --- what a user may ask --------------------------------------------------------------------

bool StreamSocket::is_connected() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    return impl_->connection && impl_->connection->is_open();
}

bool StreamSocket::peer_closes() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    return impl_->connection && impl_->connection->peer_closes();
}

std::uint64_t StreamSocket::queued_bytes() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    return impl_->connection ? impl_->connection->queued_bytes() : 0;
}

StreamSocket::Counters StreamSocket::counters() const {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    return impl_->connection ? impl_->connection->counters() : impl_->last_counters;
}

std::string StreamSocket::peer_address() const {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    const Session* const session = impl_->connection ? impl_->connection->session() : nullptr;
    return session != nullptr ? session->peer_address() : std::string{};
}

const std::string& StreamSocket::provider() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop, "StreamSocket");
    static NeverDestroyed<const std::string> no_provider;
    const Session* const session = impl_->connection ? impl_->connection->session() : nullptr;
    return session != nullptr ? session->capabilities().provider : *no_provider;
}

} // namespace netio::stream::inline v0_3
