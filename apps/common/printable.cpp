// SPDX-License-Identifier: Apache-2.0
#include "apps/common/printable.hpp"

#include "netio/base/control_characters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace apps {
namespace {

std::uint32_t code_of(std::string_view sequence) {
    const auto first = static_cast<unsigned char>(sequence.front());
    std::uint32_t code = sequence.size() == 1 ? first : first & (0x7fU >> sequence.size());
    for (const char c : sequence.substr(1))
        code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
    return code;
}

bool is_layout(std::string_view sequence, Lines lines) {
    return lines == Lines::several && (sequence == "\n" || sequence == "\t");
}

bool is_shown(std::string_view sequence, Lines lines) {
    return is_layout(sequence, lines) || !netio::is_unseen(sequence);
}

std::string escaped(std::string_view sequence) {
    if (sequence == "\n") return "\\n";
    if (sequence == "\r") return "\\r";
    if (sequence == "\t") return "\\t";
    const std::uint32_t code = code_of(sequence);
    if (code <= 0xffff) return fmt::format("\\u{:04x}", code);
    const std::uint32_t rest = code - 0x10000; // two surrogates, as in JSON
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10U), 0xdc00 + (rest & 0x3ffU));
}

} // namespace

std::string printable(std::string_view text, std::size_t limit_bytes, Lines lines) {
    std::string out;
    while (!text.empty()) {
        const std::size_t length = netio::utf8_length(text);
        const std::string_view sequence = text.substr(0, std::max<std::size_t>(1, length));
        const bool shown = length > 0 && is_shown(sequence, lines);
        const std::string instead =
            shown        ? std::string{}
            : length > 0 ? escaped(sequence)
                         : fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
        const std::string_view piece = shown ? sequence : std::string_view{instead};
        if (out.size() + piece.size() > limit_bytes) break;
        out += piece;
        text.remove_prefix(sequence.size());
    }
    return out;
}

bool is_printable(std::string_view text, Lines lines) {
    while (!text.empty()) {
        const std::size_t length = netio::utf8_length(text);
        if (length == 0 || !is_shown(text.substr(0, length), lines)) return false;
        text.remove_prefix(length);
    }
    return true;
}

} // namespace apps
