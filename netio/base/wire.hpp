// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unaligned little-endian loads and stores, used by all wire formats here.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace netio::wire {

static_assert(std::endian::native == std::endian::little,
              "on a big-endian machine these two functions must swap bytes");

template <typename Integer>
void store(std::byte* out, Integer value) noexcept {
    static_assert(std::has_unique_object_representations_v<Integer>);
    std::memcpy(out, &value, sizeof value);
}

template <typename Integer>
Integer load(const std::byte* in) noexcept {
    static_assert(std::has_unique_object_representations_v<Integer>);
    Integer value{};
    std::memcpy(&value, in, sizeof value);
    return value;
}

} // namespace netio::wire

// A list of options in a frame: for each of them a type of 2 bytes, a size of 2 bytes, and a value
// of that size. A new option needs no new version of the wire formats (docs/wire-formats.md,
// "Options"): a receiver ignores a type that it does not know, unless the type is mandatory. No
// I/O.

namespace netio::inline v0_3::wire_options {

inline constexpr std::size_t header_bytes = 4;
// A receiver that does not know a type with this bit refuses the frame.
inline constexpr std::uint16_t mandatory = 0x8000;

enum class Use : std::uint8_t { taken, unknown, malformed };

struct Outcome {
    bool is_valid = true;
    std::uint16_t refused = 0; // the first mandatory type that is unknown; 0: none
};

// Calls take(type, value) for each option; it returns a Use. Stops at the first option that is
// malformed.
template <typename Take>
Outcome visit(std::span<const std::byte> list, Take take) {
    Outcome outcome;
    while (!list.empty()) {
        if (list.size() < header_bytes) return {.is_valid = false};
        const auto type = wire::load<std::uint16_t>(list.data());
        const std::size_t bytes = wire::load<std::uint16_t>(list.data() + 2);
        list = list.subspan(header_bytes);
        if (bytes > list.size()) return {.is_valid = false};
        const Use use = take(type, list.first(bytes));
        if (use == Use::malformed) return {.is_valid = false};
        if (use == Use::unknown && (type & mandatory) != 0 && outcome.refused == 0)
            outcome.refused = type;
        list = list.subspan(bytes);
    }
    return outcome;
}

} // namespace netio::inline v0_3::wire_options
