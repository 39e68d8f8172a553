// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/byte_pattern.hpp"

#include <algorithm>
#include <cstring>

namespace apps::pump {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

// Words, not bytes, and no state from one to the next, so that a compiler can vectorise the loops.
std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) noexcept {
    std::uint64_t x = (seed + index) * 0x9E3779B97F4A7C15;
    return x ^ (x >> 32U);
}

std::byte byte_at(std::uint64_t seed, std::uint64_t position) noexcept {
    return static_cast<std::byte>(word_at(seed, position / word_bytes) >>
                                  (8 * (position % word_bytes)));
}

// The bytes before the first whole word.
std::size_t head_of(std::size_t size, std::uint64_t position) noexcept {
    return std::min<std::size_t>(size, (word_bytes - position % word_bytes) % word_bytes);
}

} // namespace

void fill_stream(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t position) noexcept {
    std::size_t at = 0;
    for (const std::size_t head = head_of(bytes.size(), position); at < head; ++at)
        bytes[at] = byte_at(seed, position + at);
    for (; at + word_bytes <= bytes.size(); at += word_bytes) {
        const std::uint64_t word = word_at(seed, (position + at) / word_bytes);
        std::memcpy(bytes.data() + at, &word, word_bytes);
    }
    for (; at < bytes.size(); ++at)
        bytes[at] = byte_at(seed, position + at);
}

std::optional<std::size_t> find_wrong_byte(std::span<const std::byte> bytes, std::uint64_t seed,
                                           std::uint64_t position) noexcept {
    const auto search = [&](std::size_t from, std::size_t to) -> std::optional<std::size_t> {
        for (std::size_t i = from; i < to; ++i)
            if (bytes[i] != byte_at(seed, position + i)) return i;
        return std::nullopt;
    };
    const std::size_t head = head_of(bytes.size(), position);
    if (const auto wrong = search(0, head)) return wrong;
    const std::size_t words = (bytes.size() - head) / word_bytes;
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < words; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + head + i * word_bytes, word_bytes);
        difference |= word ^ word_at(seed, (position + head) / word_bytes + i);
    }
    const std::size_t tail = head + words * word_bytes;
    if (difference != 0) return search(head, tail);
    return search(tail, bytes.size());
}

} // namespace apps::pump
