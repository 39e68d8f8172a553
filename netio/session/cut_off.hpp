// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a shutdown frame says when it is no orderly one: why this side ends the connection at once
// (docs/wire-formats.md, "Shutdown"). No I/O.

#include "netio/base/status.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace netio::inline v0_2 {

inline constexpr std::size_t cut_off_bytes = 8;

struct CutOff {
    static constexpr std::uint8_t too_slow = 1; // others may follow

    std::uint8_t why = too_slow;
    std::uint32_t milliseconds = 0; // for how long the peer has taken nothing

    friend bool operator==(const CutOff&, const CutOff&) = default;
};

inline std::array<std::byte, cut_off_bytes> encode(const CutOff& cut_off) noexcept {
    std::array<std::byte, cut_off_bytes> out{};
    out[0] = std::byte{cut_off.why};
    wire::store(out.data() + 4, cut_off.milliseconds);
    return out;
}

// Nothing: it is malformed. Bytes behind it are passed over, as are reasons that are not known.
inline std::optional<CutOff> decode_cut_off(std::span<const std::byte> in) noexcept {
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (in.size() < cut_off_bytes || is_zero(in[0]) ||
        !std::ranges::all_of(in.subspan(1, 3), is_zero)) {
        return std::nullopt;
    }
    return CutOff{.why = std::to_integer<std::uint8_t>(in[0]),
                  .milliseconds = wire::load<std::uint32_t>(in.data() + 4)};
}

// What it means for who gets it.
inline Closed closed_by(const CutOff& cut_off, const std::string& peer_address) {
    if (cut_off.why != CutOff::too_slow) {
        return {.reason = CloseReason::lost,
                .detail = peer_address + " has ended it for a reason that is not known here (" +
                          std::to_string(cut_off.why) + ")"};
    }
    return {.reason = CloseReason::too_slow,
            .detail = peer_address + " has ended it: this side took nothing for " +
                      std::to_string(cut_off.milliseconds) + " ms"};
}

} // namespace netio::inline v0_2
