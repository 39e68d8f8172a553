// SPDX-License-Identifier: Apache-2.0
#include "apps/common/quantity.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <span>
#include <string>

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
constexpr Unit second_units[] = {{"", 1},   {"s", 1},    {"ms", 1e-3}, {"us", 1e-6},
                                 {"m", 60}, {"min", 60}, {"h", 3600},  {"d", 86400}};

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

// A number without a sign, and its unit. The words that std::from_chars knows are no numbers here.
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
    if (error == std::errc{} && stop == end) return value; // exact, also above 2 to the 53rd
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
    const auto value = parse_real(text, second_units);
    const std::chrono::duration<double> longest = longest_duration;
    if (!value || !(*value > 0) || *value > longest.count()) return std::nullopt;
    // What is less than the clock can tell is still not zero.
    return std::chrono::ceil<netio::Duration>(std::chrono::duration<double>{*value});
}

} // namespace apps
