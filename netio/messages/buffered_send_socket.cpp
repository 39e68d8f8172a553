// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/buffered_send_socket.hpp"

#include "netio/loop/check_caller.hpp"
#include "netio/messages/buffered_send_core.hpp"

namespace netio::inline v0_2 {

BufferedSendSocket::BufferedSendSocket(Transport& transport, const Options& options,
                                       Handler& handler)
    : core_{std::make_unique<BufferedSendCore>(*this, transport, options, handler)} {}

BufferedSendSocket::~BufferedSendSocket() {
    check_destructor(core_->loop(), "BufferedSendSocket", core_);
}

void BufferedSendSocket::connect(const Address& remote) {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    core_->connect(remote);
}

void BufferedSendSocket::close() {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    core_->close();
}

void BufferedSendSocket::abort() {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    core_->abort();
}

Status BufferedSendSocket::sendv(MessageParts parts) {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->sendv(parts);
}

void BufferedSendSocket::flush() {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    core_->flush();
}

bool BufferedSendSocket::is_retrying() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->is_retrying();
}

bool BufferedSendSocket::is_connected() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->is_connected();
}

std::size_t BufferedSendSocket::message_limit() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->message_limit();
}

std::size_t BufferedSendSocket::pages_in_use() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->pages_in_use();
}

SendSnapshot BufferedSendSocket::snapshot() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->snapshot();
}

const std::string& BufferedSendSocket::provider() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->provider();
}

void BufferedSendSocket::check_caller(const char* type, const char* call) const noexcept {
    core_->loop().check_caller(type, call);
}

} // namespace netio::inline v0_2
