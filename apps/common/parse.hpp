// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/time.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace apps {

// One option has one name everywhere. The member of the C++ structure decides it:
// `receive_buffer_bytes` is the key `receive_buffer` in YAML and the flag `--receive-buffer` on the
// command line, because the value has its unit there. The functions derive the names from the
// member, so that they cannot differ. No I/O.

// Returns the name without a unit at its end.
constexpr std::string_view without_unit(std::string_view name) {
    constexpr std::array<std::string_view, 6> units{"_bytes", "_messages", "_ms",
                                                    "_us",    "_ns",       "_s"};
    for (const std::string_view unit : units)
        if (name.ends_with(unit)) return name.substr(0, name.size() - unit.size());
    return name;
}

// Returns "queue_limit_bytes" for &Options::queue_limit_bytes.
template <auto Member>
constexpr std::string_view member_name() {
    constexpr std::string_view begin = "Member = ";
    // Of GCC and Clang: "... [with auto Member = &X::y]".
    std::string_view name = __PRETTY_FUNCTION__;
    name.remove_prefix(name.find(begin) + begin.size());
    name = name.substr(0, name.find_first_of(";]"));
    name = name.substr(name.rfind(':') + 1);
    return name.substr(0, name.find(')'));
}

// The key in YAML.
template <auto Member>
std::string yaml_key() {
    return std::string{without_unit(member_name<Member>())};
}

// The flag on the command line.
template <auto Member>
std::string cli_flag() {
    std::string flag = "--" + yaml_key<Member>();
    for (char& each : flag)
        if (each == '_') each = '-';
    return flag;
}

// Quantities as users write them, the same on the command line and in YAML. The functions return
// nullopt for other texts and for numbers that do not fit. No I/O.

// 1000, 0x3e8, 10k, 1.5M: k, M and G are 10^3, 10^6 and 10^9.
std::optional<std::uint64_t> parse_count(std::string_view text);
// 4096, 64k, 64kb, 64 KiB, 1.5M: the units are powers of 1024, up to the fourth.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
// A rate per second: 0, 0.5, 10k, 1.5M.
std::optional<double> parse_rate(std::string_view text);
// A time with its unit: 200ns, 40us, 500ms, 10s, 2m, 1h, 7d; above zero, up to longest_duration. A
// fraction of a nanosecond is rounded up.
std::optional<netio::Duration> parse_duration(std::string_view text);
inline constexpr netio::Duration longest_duration = std::chrono::hours{24 * 365 * 10};

// What is wrong with a time that is refused, for error messages.
std::string duration_problem(std::string_view text);

// Texts that the functions above accept: "4MiB", "40us", "0". Without rounding, in the largest unit
// that divides the value; times in days, hours, seconds or less.
std::string shown_bytes(std::uint64_t bytes);
std::string shown_time(netio::Duration time);

// " (did you mean 'x'?)" with the nearest of the words; empty if none is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> words);

} // namespace apps
