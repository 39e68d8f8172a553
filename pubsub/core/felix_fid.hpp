// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a FELIX fid. The text form and selections are in pubsub/core/fid_layout.hpp.

#include "pubsub/core/fid.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_3 {

struct FelixFid {
    std::uint8_t version = 1;    // bits 63 to 60
    std::uint8_t detector = 0;   // 59 to 52
    std::uint16_t connector = 0; // 51 to 36
    std::uint8_t is_virtual = 0; // 35
    std::uint16_t link = 0;      // 34 to 22
    std::uint8_t elink = 0;      // 21 to 16
    std::uint8_t to_flx = 0;     // 15: towards the front end
    std::uint8_t protocol = 0;   // 14 to 8
    std::uint8_t stream = 0;     // 7 to 0

    friend bool operator==(const FelixFid&, const FelixFid&) = default;
};

// Each value is reduced to the bits of its field; its higher bits are ignored.
constexpr Fid to_fid(const FelixFid& parts) noexcept {
    const auto at = [](std::uint64_t value, unsigned lowest, unsigned bits) {
        return (value & ((std::uint64_t{1} << bits) - 1)) << lowest;
    };
    return Fid{at(parts.version, 60, 4) | at(parts.detector, 52, 8) | at(parts.connector, 36, 16) |
               at(parts.is_virtual, 35, 1) | at(parts.link, 22, 13) | at(parts.elink, 16, 6) |
               at(parts.to_flx, 15, 1) | at(parts.protocol, 8, 7) | at(parts.stream, 0, 8)};
}

constexpr FelixFid to_felix(Fid fid) noexcept {
    const auto of = [whole = to_integer(fid)](unsigned lowest, unsigned bits) {
        return (whole >> lowest) & ((std::uint64_t{1} << bits) - 1);
    };
    return {.version = static_cast<std::uint8_t>(of(60, 4)),
            .detector = static_cast<std::uint8_t>(of(52, 8)),
            .connector = static_cast<std::uint16_t>(of(36, 16)),
            .is_virtual = static_cast<std::uint8_t>(of(35, 1)),
            .link = static_cast<std::uint16_t>(of(22, 13)),
            .elink = static_cast<std::uint8_t>(of(16, 6)),
            .to_flx = static_cast<std::uint8_t>(of(15, 1)),
            .protocol = static_cast<std::uint8_t>(of(8, 7)),
            .stream = static_cast<std::uint8_t>(of(0, 8))};
}

} // namespace netio::pubsub::inline v0_3
