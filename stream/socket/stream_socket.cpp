// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/stream_socket.hpp"

#include "netio/loop/check_caller.hpp"
#include "stream/socket/frames.hpp"
#include "stream/socket/stream_socket_core.hpp"

#include <stdexcept>
#include <utility>

namespace netio::stream::inline v0_2 {

StreamSocket::Options published_stream(std::uint64_t ring_bytes) {
    return {.sender = published_sender(0), .receiver = published_receiver(ring_bytes)};
}

void validate(const StreamSocket::Options& options) {
    SenderOptions sender = options.sender;
    sender.ring_bytes = 1; // whatever the peer has
    validate(sender);
    validate(options.receiver);
    validate(options.session);
    const auto require = [](bool good, const char* rule) {
        if (!good) throw std::invalid_argument{rule};
    };
    require(options.session.receive_bytes >= frame_limit_bytes,
            "session.receive_bytes must be at least 1312 for a stream's control messages");
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

StreamSocket::StreamSocket(Transport& transport, Options options, Handler& handler)
    : core_{std::make_unique<Core>(*this, transport, std::move(options), handler)} {}

StreamSocket::~StreamSocket() {
    check_destructor(core_->loop(), "StreamSocket", core_);
}

void StreamSocket::connect(const Address& remote) {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    core_->connect(remote);
}

void StreamSocket::accept(IncomingSession& incoming) {
    core_->accept(incoming);
}

void StreamSocket::disconnect() {
    if (Conversation* const conversation = core_->conversation()) conversation->disconnect();
}

std::uint64_t StreamSocket::filled_bytes() const noexcept {
    const Conversation* const conversation = core_->conversation();
    return conversation != nullptr ? conversation->filled_bytes() : 0;
}

bool StreamSocket::move_receive(const Slice& to) {
    Conversation* const conversation = core_->conversation();
    return conversation != nullptr && conversation->move_receive(to);
}

Status StreamSocket::send(const Slice& slice, Cookie cookie) {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    check_slice(slice);
    return core_->send(slice, cookie);
}

Status StreamSocket::receive(const Slice& slice, Cookie cookie, Fill fill) {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    check_slice(slice);
    Conversation* const conversation = core_->conversation();
    return conversation != nullptr ? conversation->receive(slice, cookie, fill) : Status::closed;
}

void StreamSocket::shutdown_send() {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    core_->shutdown_send();
}

void StreamSocket::close() {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    core_->close();
}

void StreamSocket::abort() {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    core_->abort();
}

bool StreamSocket::is_connected() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    return core_->is_connected();
}

bool StreamSocket::peer_closes() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    const Conversation* const conversation = core_->conversation();
    return conversation != nullptr && conversation->peer_closes();
}

std::uint64_t StreamSocket::queued_bytes() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    const Conversation* const conversation = core_->conversation();
    return conversation != nullptr ? conversation->queued_bytes() : 0;
}

StreamSocket::Counters StreamSocket::counters() const {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    return core_->counters();
}

std::string StreamSocket::peer_address() const {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    return core_->conversation()->session().peer_address();
}

const std::string& StreamSocket::provider() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "StreamSocket");
    return core_->conversation()->session().capabilities().provider;
}

} // namespace netio::stream::inline v0_2
