// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/buffered_send_socket.hpp"

#include "netio/messages/buffered_send_core.hpp"

namespace netio::inline v0_2 {

BufferedSendSocket::BufferedSendSocket(Transport& transport, const Options& options,
                                       Handler& handler)
    : core_{std::make_unique<BufferedSendCore>(*this, transport, options, handler)} {}

BufferedSendSocket::~BufferedSendSocket() = default;

void BufferedSendSocket::connect(const Address& remote) {
    core_->connect(remote);
}

void BufferedSendSocket::close() {
    core_->close();
}

void BufferedSendSocket::abort() {
    core_->abort();
}

Status BufferedSendSocket::sendv(MessageParts parts) {
    return core_->sendv(parts);
}

void BufferedSendSocket::flush() {
    core_->flush();
}

bool BufferedSendSocket::is_retrying() const noexcept {
    return core_->is_retrying();
}

bool BufferedSendSocket::is_connected() const noexcept {
    return core_->is_connected();
}

std::size_t BufferedSendSocket::message_limit() const noexcept {
    return core_->message_limit();
}

std::size_t BufferedSendSocket::pages_in_use() const noexcept {
    return core_->pages_in_use();
}

SendSnapshot BufferedSendSocket::snapshot() const noexcept {
    return core_->snapshot();
}

const std::string& BufferedSendSocket::provider() const noexcept {
    return core_->provider();
}

} // namespace netio::inline v0_2
