// SPDX-License-Identifier: Apache-2.0
#include "netio/session/key_exchange.hpp"

#include "netio/base/check.hpp"

namespace netio::inline v0_2 {

KeyExchange::KeyExchange(Side side, const Terms& terms, const access::GateKeys& keys)
    : side_{side}, terms_{terms}, noise_{side, terms.cipher, keys.prologue, keys.psk,
                                         access::Secret::random()} {}

KeyExchange::Message KeyExchange::say() {
    std::array<std::byte, sizeof(std::uint64_t)> payload{};
    wire::store(payload.data(), terms_.key_bytes);
    Message message{};
    noise_.write(payload, message);
    return message;
}

bool KeyExchange::hear(std::span<const std::byte> message) {
    if (!noise_.may_read() || message.size() != message_bytes) return false;
    std::array<std::byte, sizeof(std::uint64_t)> payload{};
    if (!noise_.read(message, payload)) return false;
    peer_key_bytes_ = wire::load<std::uint64_t>(payload.data());
    return peer_key_bytes_ > 0 && peer_key_bytes_ <= most_key_bytes;
}

FrameSealer KeyExchange::sealer() const {
    NETIO_CHECK(noise_.result());
    const auto& key = side_ == Side::initiator ? noise_.result()->up : noise_.result()->down;
    return {terms_.level, access::Sealer{terms_.cipher, key, {.bytes = terms_.key_bytes}}};
}

FrameOpener KeyExchange::opener() const {
    NETIO_CHECK(noise_.result());
    const auto& key = side_ == Side::initiator ? noise_.result()->down : noise_.result()->up;
    return {terms_.level, access::Opener{terms_.cipher, key, {.bytes = peer_key_bytes_}}};
}

} // namespace netio::inline v0_2
