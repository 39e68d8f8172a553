// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/send_socket.hpp"

#include "netio/loop/check_caller.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/messages/send_core.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace netio::inline v0_2 {

static_assert(SendSocket::slice_limit == netio::slice_limit);
static_assert(SendSocket::inline_limit == frame_extension_limit - messages::immediate_bytes);

SendSocket::SendSocket(Transport& transport, Options options, Handler& handler)
    : core_{std::make_unique<SendCore>(*this, transport, std::move(options), handler)} {}

SendSocket::~SendSocket() {
    check_destructor(core_->loop(), "SendSocket", core_);
}

void SendSocket::connect(const Address& remote) {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    core_->connect(remote);
}

void SendSocket::close() {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    core_->close();
}

void SendSocket::abort() {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    core_->abort();
}

Status SendSocket::send(const Slice& slice, Cookie cookie, std::optional<std::uint64_t> immediate) {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    return sendv({&slice, 1}, cookie, immediate);
}

Status SendSocket::sendv(std::span<const Slice> slices, Cookie cookie,
                         std::optional<std::uint64_t> immediate) {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    std::ranges::for_each(slices, check_slice);
    std::array<std::byte, messages::immediate_bytes> extension;
    if (immediate) wire::store(extension.data(), *immediate);
    return core_->send({.kind = messages::message_kind,
                        .flags = immediate ? messages::immediate_flag : std::uint8_t{0},
                        .extension = std::span{extension}.first(immediate ? extension.size() : 0),
                        .slices = slices},
                       cookie, core_->loop().now());
}

Status SendSocket::send_inline(std::span<const std::byte> message,
                               std::optional<std::uint64_t> immediate) {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    if (message.size() > inline_limit) return Status::too_large;
    std::array<std::byte, frame_extension_limit> body;
    if (immediate) wire::store(body.data(), *immediate);
    const std::size_t head = immediate ? messages::immediate_bytes : 0;
    std::ranges::copy(message, body.begin() + static_cast<std::ptrdiff_t>(head));
    return core_->send({.kind = messages::message_kind,
                        .flags = immediate ? messages::immediate_flag : std::uint8_t{0},
                        .extension = std::span{body}.first(head + message.size()),
                        .slices = {}},
                       std::nullopt, core_->loop().now());
}

bool SendSocket::is_connected() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    return core_->is_connected();
}

bool SendSocket::is_retrying() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    return core_->is_retrying();
}

std::size_t SendSocket::message_limit() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    return is_connected() ? core_->session().body_limit() - messages::immediate_bytes : 0;
}

std::size_t SendSocket::segment_limit() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    return is_connected() ? core_->session().segment_limit() : 0;
}

const std::string& SendSocket::provider() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    return core_->provider();
}

SendSocket::Counters SendSocket::counters() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    return core_->counters();
}

SendSnapshot SendSocket::snapshot() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SendSocket");
    return core_->snapshot();
}

} // namespace netio::inline v0_2
