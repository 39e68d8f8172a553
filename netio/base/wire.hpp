// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unaligned little-endian loads and stores, used by all wire formats here.

#include <bit>
#include <cstddef>
#include <cstring>
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
