// SPDX-License-Identifier: Apache-2.0
#include "apps/common/parse.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace apps {
namespace {

struct Unit {
    std::string_view name; // in lower case
    double factor = 1;
};

constexpr Unit thousand_units[] = {{"", 1}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}};
constexpr Unit byte_units[] = {{"", 1},         {"b", 1},       {"k", 0x1p10},   {"kb", 0x1p10},
                               {"kib", 0x1p10}, {"m", 0x1p20},  {"mb", 0x1p20},  {"mib", 0x1p20},
                               {"g", 0x1p30},   {"gb", 0x1p30}, {"gib", 0x1p30}, {"t", 0x1p40},
                               {"tb", 0x1p40},  {"tib", 0x1p40}};
// In nanoseconds, so that whole numbers of every unit are exact.
constexpr Unit time_units[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},   {"s", 1e9},
                               {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}};

std::optional<double> factor_of(std::string_view unit, std::span<const Unit> units) {
    while (!unit.empty() && unit.front() == ' ')
        unit.remove_prefix(1);
    std::string name{unit};
    for (char& each : name)
        each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    for (const Unit& each : units)
        if (each.name == name) return each.factor;
    return std::nullopt;
}

// Parses a number without a sign, and its unit. Words that std::from_chars accepts ("inf", "nan")
// are rejected.
std::optional<double> parse_real(std::string_view text, std::span<const Unit> units) {
    if (text.empty() ||
        (std::isdigit(static_cast<unsigned char>(text.front())) == 0 && text.front() != '.')) {
        return std::nullopt;
    }
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{}) return std::nullopt;
    const auto factor = factor_of({stop, static_cast<std::size_t>(end - stop)}, units);
    return factor ? std::optional{value * *factor} : std::nullopt;
}

std::optional<std::uint64_t> parse_whole(std::string_view text, std::span<const Unit> units) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    const std::string_view digits = hex ? text.substr(2) : text;
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, hex ? 16 : 10);
    if (error == std::errc{} && stop == end) return value; // exact, also above 2^53
    if (hex || error == std::errc::result_out_of_range) return std::nullopt;
    const auto real = parse_real(text, units);
    if (!real || *real != std::floor(*real) || *real >= 0x1p64) return std::nullopt;
    return static_cast<std::uint64_t>(*real);
}

} // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) {
    return parse_whole(text, thousand_units);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    return parse_whole(text, byte_units);
}

std::optional<double> parse_rate(std::string_view text) {
    return parse_real(text, thousand_units);
}

std::optional<netio::Duration> parse_duration(std::string_view text) {
    const auto nanoseconds = parse_real(text, time_units);
    if (!nanoseconds || !(*nanoseconds > 0) ||
        *nanoseconds > static_cast<double>(longest_duration.count())) {
        return std::nullopt;
    }
    // Rounded up, so that a time below the clock's resolution is not zero; 1.1us is 1100 ns,
    // although the product is a little larger.
    const double rounded = std::round(*nanoseconds);
    const bool is_whole = rounded > 0 && std::abs(*nanoseconds - rounded) < 1e-3;
    return netio::Duration{
        static_cast<netio::Duration::rep>(is_whole ? rounded : std::ceil(*nanoseconds))};
}

std::string duration_problem(std::string_view text) {
    const std::string shown = "'" + std::string{text} + "'";
    if (parse_real(text, time_units)) return shown + " is out of range";
    return shown + (parse_rate(text) ? " has no unit" : " is not a time");
}

std::string shown_bytes(std::uint64_t bytes) {
    constexpr std::pair<std::uint64_t, std::string_view> units[] = {
        {std::uint64_t{1} << 40U, "TiB"},
        {1U << 30U, "GiB"},
        {1U << 20U, "MiB"},
        {1U << 10U, "KiB"}};
    for (const auto& [unit, name] : units)
        if (bytes > 0 && bytes % unit == 0) return std::to_string(bytes / unit) + std::string{name};
    return std::to_string(bytes);
}

std::string shown_time(netio::Duration time) {
    constexpr std::pair<netio::Duration, std::string_view> units[] = {
        {std::chrono::hours{24}, "d"},        {std::chrono::hours{1}, "h"},
        {std::chrono::seconds{1}, "s"},       {std::chrono::milliseconds{1}, "ms"},
        {std::chrono::microseconds{1}, "us"}, {std::chrono::nanoseconds{1}, "ns"}};
    for (const auto& [unit, name] : units)
        if (time.count() > 0 && time % unit == netio::Duration{})
            return std::to_string(time / unit) + std::string{name};
    return "0";
}

namespace {

// Edit distance: the number of letters that must be changed, added or removed.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
        }
    }
    return row[b.size()];
}

} // namespace

std::string suggestion(std::string_view word, std::span<const std::string_view> words) {
    const auto far = [&](std::string_view each) {
        const bool begins = word.size() > 2 && each.starts_with(word);
        return begins ? std::size_t{1} : distance(word, each);
    };
    const auto closest = std::ranges::min_element(words, {}, far);
    if (closest == words.end() || far(*closest) > 2) return {};
    return " (did you mean '" + std::string{*closest} + "'?)";
}

} // namespace apps
