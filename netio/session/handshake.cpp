// SPDX-License-Identifier: Apache-2.0
#include "netio/session/handshake.hpp"

#include <string_view>
#include <utility>

namespace netio::inline v0_2 {
namespace {

// Of the side that connects. 0: none has a name.
std::uint8_t implied_roles(Service service) noexcept {
    switch (service) {
    case Service::messages:
        return static_cast<std::uint8_t>(Role::sends);
    case Service::publish_subscribe:
        return static_cast<std::uint8_t>(Role::subscribes);
    case Service::stream:
        break;
    }
    return 0;
}

} // namespace

Handshake::Handshake(const Hello& hello, const SessionOptions& options) noexcept : hello_{hello} {
    hello_.receive_bytes = static_cast<std::uint32_t>(options.receive_bytes);
    hello_.receive_count = static_cast<std::uint16_t>(options.receive_count);
    hello_.heartbeat_ms = static_cast<std::uint16_t>(options.heartbeat.count());
    hello_.instance = process_instance();
}

void Handshake::connects(std::size_t required_receive_bytes, const OpenOptions& offered) noexcept {
    required_receive_bytes_ = required_receive_bytes;
    offered_ = offered;
}

void Handshake::accepts(const Hello& peer) noexcept {
    peer_ = peer;
    accepting_ = true;
}

std::size_t Handshake::put_hello(ConnectionData& data) {
    return gate_.complete(data, encode(hello_, data));
}

Closed Handshake::take_answer(std::span<const std::byte> data) {
    const RejectCode problem = decode(data, hello_.service_data.size, peer_);
    if (problem != RejectCode::none || peer_.service != hello_.service) {
        return {.reason = CloseReason::protocol_error,
                .detail = "accepted with connection data that is not ours"};
    }
    // Nothing else that it says counts before.
    if (std::string unproved = gate_.take_answer(data); !unproved.empty()) {
        return {.reason = CloseReason::not_admitted, .detail = std::move(unproved)};
    }
    if (judge_receives(peer_, required_receive_bytes_) == RejectCode::none) return {};
    return {.reason = CloseReason::protocol_error,
            .detail = "accepted with " + std::to_string(peer_.receive_count) +
                      " receive buffers of " + std::to_string(peer_.receive_bytes) +
                      " bytes, which is too little"};
}

KeyExchange* Handshake::exchange(std::uint64_t key_bytes) {
    if (!seals_all(gate_.protection()) || !gate_.keys()) return nullptr;
    if (!exchange_) {
        exchange_.emplace(accepting_ ? KeyExchange::Side::responder : KeyExchange::Side::initiator,
                          KeyExchange::Terms{.level = gate_.protection(),
                                             .cipher = gate_.cipher(),
                                             .key_bytes = key_bytes},
                          *gate_.keys());
    }
    return &*exchange_;
}

bool Handshake::take_open(std::span<const std::byte> body) noexcept {
    const std::optional<OpenOptions> offered = decode_open_options(body);
    if (!offered) return false;
    // Whoever asks for more than it would get has to hear that, and asks for less.
    const std::uint8_t implied = implied_roles(hello_.service);
    if (offered->roles != 0 && offered->roles != implied) return false;
    offered_ = *offered;
    return true;
}

void Handshake::explain(Closed& closed) const {
    if (rejection_.code == RejectCode::none) return;
    closed.may_pass = refusal_of(rejection_.code) == Outlook::Refusal::passing;
    closed.detail += ": " + std::string{to_string(rejection_.code)};
    closed.detail += gate_.hint(rejection_.code);
    if (rejection_.required_bytes == 0) return;
    closed.detail += " (" + std::to_string(rejection_.required_bytes) + " bytes required";
    if (rejection_.code == RejectCode::receive_too_small) {
        closed.required_receive_bytes = rejection_.required_bytes;
        closed.detail += ", " + std::to_string(hello_.receive_bytes) + " here";
    }
    closed.detail += ")";
}

} // namespace netio::inline v0_2
