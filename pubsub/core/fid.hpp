// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stream identifiers, ranges of them, and the identifiers of subscribers.

#include "netio/base/require_cxx20.hpp"

#include <charconv>
#include <cstdint>
#include <string>

namespace netio::pubsub::inline v0_2 {

// A stream identifier: 64 bits with a meaning that the users define (FELIX: detector, connector and
// link numbers).
enum class Fid : std::uint64_t {};

constexpr std::uint64_t to_integer(Fid fid) noexcept {
    return static_cast<std::uint64_t>(fid);
}

// "0x" and the digits in hexadecimal, without leading zeros.
inline std::string to_string(Fid fid) {
    char digits[16];
    const auto result = std::to_chars(digits, digits + sizeof digits, to_integer(fid), 16);
    return "0x" + std::string{digits, result.ptr};
}

// All fids from first to last, both included; a single fid is a range of one. first <= last.
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

// A number of messages of a fid.
struct FidCount {
    Fid fid{};
    std::uint64_t count = 0;

    friend bool operator==(const FidCount&, const FidCount&) = default;
};

// A connection of a subscriber to a publish socket; not reused while the socket exists.
enum class SubscriberId : std::uint64_t {};

} // namespace netio::pubsub::inline v0_2
