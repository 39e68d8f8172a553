// SPDX-License-Identifier: Apache-2.0
#pragma once

// Time stamps of messages. A publisher with the option time_stamps sends 8 bytes before the bytes
// of each message (docs/wire-formats.md, "Time stamps"), and announces their clock once per
// connection. In memory, the time stamp stays directly before its message, as long as the message
// exists.

#include "netio/base/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace netio::inline v0_3 {

enum class StampClock : std::uint8_t {
    none, // no time stamps
    tai,  // nanoseconds since 1970 of the publisher's CLOCK_TAI, which has no leap seconds
    own,  // a number of the user's, for example a count of the detector's clock
};

// What the time stamps of a connection mean.
struct StampFormat {
    StampClock clock = StampClock::none;
    std::int16_t utc_offset_s = 0; // with tai: TAI minus UTC, as the publisher's kernel knows it

    friend bool operator==(const StampFormat&, const StampFormat&) = default;
};

struct TimeStamp {
    std::int64_t time = 0; // in the unit of the clock
    StampFormat format;

    // Nanoseconds since 1970, UTC, as of std::chrono::system_clock; nullopt: the clock is the
    // user's own, or a peer has sent a time out of the range.
    std::optional<std::int64_t> utc_ns() const noexcept {
        std::int64_t utc = 0;
        if (format.clock != StampClock::tai ||
            __builtin_sub_overflow(time, std::int64_t{format.utc_offset_s} * 1'000'000'000, &utc))
            return std::nullopt;
        return utc;
    }
    friend bool operator==(const TimeStamp&, const TimeStamp&) = default;
};

namespace time_stamp {

inline constexpr std::size_t bytes = 8;
// The time stamp of a message that was published without a time.
inline constexpr std::int64_t unknown = INT64_MIN;

// The bytes before each message: 8, or 0 without time stamps.
constexpr std::size_t bytes_of(StampClock clock) noexcept {
    return clock == StampClock::none ? 0 : bytes;
}
constexpr std::size_t bytes_of(StampFormat format) noexcept {
    return bytes_of(format.clock);
}
// Returns the message together with the time stamp that is before it in memory, as it was sent.
inline std::span<const std::byte> with_stamp(std::span<const std::byte> message,
                                             StampFormat format) noexcept {
    const std::size_t before = bytes_of(format);
    return {message.data() - before, message.size() + before};
}
inline std::optional<TimeStamp> of(std::span<const std::byte> message,
                                   StampFormat format) noexcept {
    if (format.clock == StampClock::none) return std::nullopt;
    const auto time = wire::load<std::int64_t>(message.data() - bytes);
    if (time == unknown) return std::nullopt;
    return TimeStamp{.time = time, .format = format};
}

} // namespace time_stamp

} // namespace netio::inline v0_3
