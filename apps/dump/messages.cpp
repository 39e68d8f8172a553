// SPDX-License-Identifier: Apache-2.0
#include "apps/dump/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace apps {
namespace {

template <class Number>
std::optional<Number> number(std::string_view text, int base) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value, base);
    if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
    return value;
}

// Returns an empty vector if the text is not bytes in hex.
std::vector<std::byte> bytes_in_hex(std::string_view text) {
    std::vector<std::byte> bytes;
    if (text.size() % 2 != 0) return bytes;
    for (; !text.empty(); text.remove_prefix(2)) {
        const auto value = number<std::uint8_t>(text.substr(0, 2), 16);
        if (!value) return {};
        bytes.push_back(std::byte{*value});
    }
    return bytes;
}

} // namespace

bool MessageFilter::add(std::string_view condition) {
    static constexpr std::string_view of_status = "status:";
    if (condition.starts_with(of_status)) {
        const auto status = number<std::uint8_t>(condition.substr(of_status.size()), 10);
        if (status) statuses_.push_back(*status);
        return status.has_value();
    }
    Bytes wanted;
    if (const std::size_t colon = condition.find(':'); colon != std::string_view::npos) {
        wanted.at = number<std::size_t>(condition.substr(0, colon), 10);
        if (!wanted.at) return false;
        condition.remove_prefix(colon + 1);
    }
    wanted.bytes = bytes_in_hex(condition);
    if (wanted.bytes.empty()) return false;
    bytes_.push_back(std::move(wanted));
    return true;
}

bool MessageFilter::wants(std::span<const std::byte> message, std::uint8_t status) const {
    const auto has = [message](const Bytes& wanted) {
        if (!wanted.at)
            return std::search(message.begin(), message.end(), wanted.bytes.begin(),
                               wanted.bytes.end()) != message.end();
        return *wanted.at <= message.size() && wanted.bytes.size() <= message.size() - *wanted.at &&
               std::ranges::equal(message.subspan(*wanted.at, wanted.bytes.size()), wanted.bytes);
    };
    return std::ranges::all_of(bytes_, has) &&
           std::ranges::all_of(statuses_, [status](std::uint8_t each) { return each == status; });
}

namespace {

constexpr std::size_t bytes_per_line = 16;

void append_line(std::string& text, std::size_t offset, std::span<const std::byte> bytes) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "  {:06x} ", offset);
    for (std::size_t i = 0; i < bytes_per_line; ++i) {
        if (i % 8 == 0) text += ' ';
        if (i < bytes.size()) {
            fmt::format_to(out, "{:02x} ", std::to_integer<unsigned>(bytes[i]));
        } else {
            text += "   ";
        }
    }
    text += " |";
    for (const std::byte each : bytes) {
        const auto value = std::to_integer<unsigned char>(each);
        text += value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '.';
    }
    text += "|\n";
}

} // namespace

std::string hex_lines(std::span<const std::byte> bytes, std::size_t shown_bytes) {
    std::string text;
    const std::size_t shown = std::min(bytes.size(), shown_bytes);
    for (std::size_t offset = 0; offset < shown; offset += bytes_per_line)
        append_line(text, offset, bytes.subspan(offset, std::min(bytes_per_line, shown - offset)));
    if (shown < bytes.size()) text += fmt::format("  and {} bytes more\n", bytes.size() - shown);
    return text;
}

} // namespace apps
