// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stream identifiers, ranges of them, and the identifiers of subscribers.

#include "netio/base/require_cxx20.hpp"

#include <charconv>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>

namespace netio::inline v0_3 {

namespace fid_detail {

template <typename Type>
concept CharacterType = std::same_as<Type, char> || std::same_as<Type, wchar_t> ||
    std::same_as<Type, char8_t> || std::same_as<Type, char16_t> || std::same_as<Type, char32_t>;
template <typename Type>
concept FidInteger = std::integral<Type> && !std::same_as<Type, bool> && !CharacterType<Type>;

} // namespace fid_detail

// A stream identifier: 64 bits with a meaning that the users define (FELIX: detector, connector and
// link numbers).
class Fid {
  public:
    constexpr Fid() noexcept = default;
    // Any integer converts to a fid, except bool and characters. Throws std::invalid_argument for a
    // negative number; a negative constant does not compile in a constant expression.
    template <fid_detail::FidInteger Integer>
    constexpr Fid(Integer value) noexcept(!std::signed_integral<Integer>) { // NOLINT: converts
        if constexpr (std::signed_integral<Integer>) {
            if (value < 0) throw std::invalid_argument{"a fid must not be negative"};
            value_ = static_cast<std::uint64_t>(value);
        } else {
            value_ = value;
        }
    }

    constexpr std::uint64_t value() const noexcept { return value_; }
    constexpr explicit operator std::uint64_t() const noexcept { return value_; }

    friend constexpr bool operator==(Fid, Fid) noexcept = default;
    friend constexpr std::strong_ordering operator<=>(Fid, Fid) noexcept = default;

  private:
    std::uint64_t value_ = 0;
};

constexpr std::uint64_t to_integer(Fid fid) noexcept {
    return fid.value();
}

// "0x" and the digits in hexadecimal, without leading zeros.
inline std::string to_string(Fid fid) {
    char digits[16];
    const auto result = std::to_chars(digits, digits + sizeof digits, fid.value(), 16);
    return "0x" + std::string{digits, result.ptr};
}

template <typename Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, Fid fid) {
    return out << to_string(fid);
}

// All fids from first to last, both included, with first <= last. A single fid is a range of one.
struct FidRange {
    Fid first{};
    Fid last{};

    friend bool operator==(const FidRange&, const FidRange&) = default;
};

constexpr bool contains(const FidRange& range, Fid fid) noexcept {
    return range.first <= fid && fid <= range.last;
}

inline std::string to_string(const FidRange& range) {
    return range.first == range.last ? to_string(range.first)
                                     : to_string(range.first) + "-" + to_string(range.last);
}

} // namespace netio::inline v0_3

template <>
struct std::hash<netio::Fid> {
    std::size_t operator()(netio::Fid fid) const noexcept { return fid.value(); }
};

namespace netio::pubsub::inline v0_3 {

using netio::contains;
using netio::Fid;
using netio::FidRange;
using netio::to_integer;

// A number of messages of a fid.
struct FidCount {
    Fid fid{};
    std::uint64_t count = 0;

    friend bool operator==(const FidCount&, const FidCount&) = default;
};

// A connection of a subscriber to a publish socket; not reused while the socket exists.
enum class SubscriberId : std::uint64_t {};

} // namespace netio::pubsub::inline v0_3
