// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sequence and Phase: the two numbers that sender and receiver of a stream compare.
//
// A Sequence is a position in the byte stream of one direction. It has 64 bits and never wraps.
// A Phase counts the switches between direct (even) and indirect (odd) transfers. It has 32 bits
// and may wrap: phases are compared by their signed distance, never by `<`
// (docs/stream-protocol.md, R6). Both are plain values.

#include <compare>
#include <cstdint>

namespace netio::stream::inline v0_2 {

class Sequence {
  public:
    constexpr Sequence() = default;
    constexpr explicit Sequence(std::uint64_t value) : value_{value} {}

    constexpr std::uint64_t value() const noexcept { return value_; }

    constexpr Sequence& operator+=(std::uint64_t bytes) noexcept {
        value_ += bytes;
        return *this;
    }
    friend constexpr Sequence operator+(Sequence position, std::uint64_t bytes) noexcept {
        return Sequence{position.value_ + bytes};
    }
    // Bytes from `earlier` to `later`; the caller knows that they are in this order.
    friend constexpr std::uint64_t operator-(Sequence later, Sequence earlier) noexcept {
        return later.value_ - earlier.value_;
    }
    friend constexpr auto operator<=>(const Sequence&, const Sequence&) = default;

  private:
    std::uint64_t value_ = 0;
};

class Phase {
  public:
    constexpr Phase() = default;
    constexpr explicit Phase(std::uint32_t value) : value_{value} {}

    constexpr std::uint32_t value() const noexcept { return value_; }
    constexpr bool is_direct() const noexcept { return (value_ & 1U) == 0; }
    constexpr Phase next() const noexcept { return Phase{value_ + 1}; }

    // Steps from `earlier` to `later`, negative if they are in the other order.
    friend constexpr std::int32_t operator-(Phase later, Phase earlier) noexcept {
        return static_cast<std::int32_t>(later.value_ - earlier.value_);
    }
    friend constexpr bool operator==(const Phase&, const Phase&) = default;

  private:
    std::uint32_t value_ = 0;
};

static_assert(sizeof(Sequence) == 8 && sizeof(Phase) == 4);
static_assert(Phase{}.is_direct() && !Phase{}.next().is_direct());
static_assert(Phase{UINT32_MAX}.next() == Phase{0} && !Phase{UINT32_MAX}.is_direct(),
              "wrapping keeps the parity");
static_assert(Phase{0} - Phase{UINT32_MAX} == 1);

} // namespace netio::stream::inline v0_2
