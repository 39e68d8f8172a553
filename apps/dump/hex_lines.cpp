// SPDX-License-Identifier: Apache-2.0
#include "apps/dump/hex_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace apps {
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
