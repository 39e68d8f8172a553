// SPDX-License-Identifier: Apache-2.0
#include "netio/session/hello.hpp"

#include "netio/access/protection.hpp"
#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"
#include "netio/loop/process.hpp"
#include "netio/random_number.hpp"

#include <algorithm>

namespace netio::inline v0_2 {
namespace {

constexpr std::uint32_t magic = 0x4f49544eU; // "NTIO"
constexpr std::size_t rejection_bytes = 12;

} // namespace

std::string_view to_string(RejectCode code) noexcept {
    switch (code) {
    case RejectCode::none:
        return "not rejected";
    case RejectCode::not_this_protocol:
        return "it speaks another protocol or version";
    case RejectCode::other_service:
        return "it offers another service at this address";
    case RejectCode::receive_too_small:
        return "the receive buffers (receive_bytes) are too small for it";
    case RejectCode::full:
        return "it has no room for another peer, or for another of this host";
    case RejectCode::service_data:
        return "it does not accept what this side asks for";
    case RejectCode::messages_too_large:
        return "it sends messages larger than this side's largest_message_bytes";
    case RejectCode::no_resources:
        return "it lacks the memory or the descriptors for another peer";
    case RejectCode::prove_key:
        return "it asks for a key";
    case RejectCode::not_admitted:
        return "it does not admit this side: its key is not known there, or not with these rights "
               "or this protection";
    }
    return "unknown reason";
}

std::size_t encode(const Hello& hello, ConnectionData& out) noexcept {
    out.fill(std::byte{0});
    wire::store(out.data(), magic);
    wire::store(out.data() + 4, wire_version);
    wire::store(out.data() + 6, hello.service);
    wire::store(out.data() + 7, hello.flags);
    wire::store(out.data() + 8, hello.receive_bytes);
    wire::store(out.data() + 12, hello.receive_count);
    wire::store(out.data() + 14, hello.heartbeat_ms);
    wire::store(out.data() + 16, hello.instance);
    std::ranges::copy(hello.service_data.span(), out.data() + hello_bytes);
    return hello_bytes + hello.service_data.size;
}

std::size_t encode(const Rejection& rejection, ConnectionData& out) noexcept {
    out.fill(std::byte{0});
    wire::store(out.data(), magic);
    wire::store(out.data() + 4, wire_version);
    wire::store(out.data() + 6, rejection.code);
    wire::store(out.data() + 8, rejection.required_bytes);
    return rejection_bytes;
}

RejectCode decode(std::span<const std::byte> in, std::size_t service_bytes, Hello& hello) noexcept {
    NETIO_CHECK(service_bytes <= service_data_limit);
    if (in.size() < hello_bytes || wire::load<std::uint32_t>(in.data()) != magic ||
        wire::load<std::uint16_t>(in.data() + 4) != wire_version ||
        !access::decode_flags(std::to_integer<std::uint8_t>(in[7]))) {
        return RejectCode::not_this_protocol;
    }
    hello.service = wire::load<Service>(in.data() + 6);
    hello.flags = wire::load<std::uint8_t>(in.data() + 7);
    hello.receive_bytes = wire::load<std::uint32_t>(in.data() + 8);
    hello.receive_count = wire::load<std::uint16_t>(in.data() + 12);
    hello.heartbeat_ms = wire::load<std::uint16_t>(in.data() + 14);
    hello.instance = wire::load<std::uint64_t>(in.data() + 16);
    if (in.size() < hello_bytes + service_bytes) return RejectCode::service_data;
    hello.service_data.size = service_bytes;
    std::copy_n(in.data() + hello_bytes, service_bytes, hello.service_data.bytes.begin());
    return RejectCode::none;
}

RejectCode judge_receives(const Hello& peer, std::size_t required_receive_bytes) noexcept {
    if (peer.receive_count < least_session_receive_count ||
        peer.receive_count > most_session_receive_count) {
        return RejectCode::service_data;
    }
    const bool small =
        peer.receive_bytes < least_receive_bytes || peer.receive_bytes < required_receive_bytes;
    return small ? RejectCode::receive_too_small : RejectCode::none;
}

Rejection decode_rejection(std::span<const std::byte> in) noexcept {
    if (in.size() < rejection_bytes || wire::load<std::uint32_t>(in.data()) != magic ||
        wire::load<std::uint16_t>(in.data() + 4) != wire_version) {
        return {.code = RejectCode::none};
    }
    return {.code = wire::load<RejectCode>(in.data() + 6),
            .required_bytes = wire::load<std::uint32_t>(in.data() + 8)};
}

std::uint64_t process_instance() {
    struct Instance {
        std::uint64_t number = random_number();
    };
    static PerProcess<Instance> instance;
    return (*instance).number;
}

} // namespace netio::inline v0_2
