// SPDX-License-Identifier: Apache-2.0
#pragma once

// The handshake's connection data (docs/wire-formats.md, "Connection data"). No I/O.

#include "netio/base/outlook.hpp"
#include "netio/transport.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace netio::inline v0_2 {

enum class Service : std::uint8_t {
    messages = 1,
    publish_subscribe = 2,
    stream = 3,
};

inline constexpr std::uint16_t wire_version = 2;
inline constexpr std::size_t hello_bytes = 24;
inline constexpr std::size_t service_data_limit = connection_data_limit - hello_bytes;

// The service's own bytes in the handshake.
struct ServiceData {
    std::array<std::byte, service_data_limit> bytes{};
    std::size_t size = 0;

    std::span<const std::byte> span() const noexcept { return {bytes.data(), size}; }
};

// What every side of every session has at least: frames that open, end and keep up a session fit,
// and credits can flow (netio/session/credits.hpp, and one to be comfortable).
inline constexpr std::uint32_t least_receive_bytes = 256;
inline constexpr std::uint16_t least_session_receive_count = 4;
inline constexpr std::uint16_t most_session_receive_count = 16'384;

// What a side says of itself when it connects or accepts.
struct Hello {
    Service service = Service::messages;
    std::uint8_t flags = 0; // of the gate (netio/access/protection.hpp)
    std::uint32_t receive_bytes = 0;
    std::uint16_t receive_count = 0;
    std::uint16_t heartbeat_ms = 0;
    std::uint64_t instance = 0;
    ServiceData service_data;
};

enum class RejectCode : std::uint8_t {
    none = 0,
    not_this_protocol = 1,
    other_service = 2,
    receive_too_small = 3,
    full = 4,
    service_data = 5,
    messages_too_large = 6,
    no_resources = 7,
    prove_key = 8,    // and how, behind it
    not_admitted = 9, // whatever the reason
};
std::string_view to_string(RejectCode code) noexcept;
// What it means for later attempts, if it comes from whom we want.
constexpr Outlook::Refusal refusal_of(RejectCode code) noexcept {
    if (code == RejectCode::not_admitted) return Outlook::Refusal::by_gate;
    const bool may_pass = code == RejectCode::full || code == RejectCode::no_resources;
    return may_pass ? Outlook::Refusal::passing : Outlook::Refusal::lasting;
}

struct Rejection {
    RejectCode code = RejectCode::not_this_protocol;
    std::uint32_t required_bytes = 0; // receive_too_small: of a buffer; messages_too_large: of one
};

using ConnectionData = std::array<std::byte, connection_data_limit>;

// Return the number of bytes written.
std::size_t encode(const Hello& hello, ConnectionData& out) noexcept;
std::size_t encode(const Rejection& rejection, ConnectionData& out) noexcept;

// Some fabrics pad connection data with zeros: bytes after the last field are not an error.
// none: `hello` is valid. Otherwise the reason to reject with.
RejectCode decode(std::span<const std::byte> in, std::size_t service_bytes, Hello& hello) noexcept;
// Whether a peer that says this of itself can be sent to. none, service_data, receive_too_small.
RejectCode judge_receives(const Hello& peer, std::size_t required_receive_bytes) noexcept;
// none: not a rejection of ours.
Rejection decode_rejection(std::span<const std::byte> in) noexcept;

// Differs in each process, also in one that was forked. Throws FabricError at its first call in a
// process, which open_fabric() makes: there are no random numbers.
std::uint64_t process_instance();

} // namespace netio::inline v0_2
