// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data of the emulated card of readout.cpp, for programs that check it.

#include <cstddef>
#include <cstdint>

namespace readout {

// An event has interleaved blocks of several links: 0 1 0 1 0 1. The message of a link has its
// blocks, with a status byte before them.
inline constexpr std::size_t links = 2, blocks = 3, block_bytes = 4096;
inline constexpr std::size_t event_bytes = links * blocks * block_bytes;
inline constexpr std::size_t words = blocks * block_bytes / 8; // per message

constexpr std::uint64_t word(std::uint64_t event, std::size_t link, std::size_t index) {
    return index == 0 ? event : (event * 31 + link) * 0x9e3779b97f4a7c15U + index;
}
constexpr std::uint8_t status_of(std::uint64_t event) {
    return event % 1000 == 999 ? 1 : 0; // the card reports an error every 1000 events
}

} // namespace readout
