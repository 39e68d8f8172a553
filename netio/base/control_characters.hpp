// SPDX-License-Identifier: Apache-2.0
#pragma once

// Control characters and invisible characters in UTF-8 texts. Pure.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace netio::inline v0_3 {

inline bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// The length of the UTF-8 sequence at the start of the text; 0 if it does not start with one.
inline std::size_t utf8_length(std::string_view text) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xc2 && first < 0xe0 ? 2
                               : first >= 0xe0 && first < 0xf0 ? 3
                               : first >= 0xf0 && first < 0xf5 ? 4
                                                               : 0;
    if (length > text.size()) return 0;
    const bool whole =
        std::ranges::all_of(text.substr(1, length == 0 ? 0 : length - 1),
                            [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; });
    return whole ? length : 0;
}

// Decodes a UTF-8 sequence of the length that utf8_length() returned.
inline std::uint32_t code_point(std::string_view sequence) {
    constexpr std::array<unsigned, 5> bits_of_first{0, 0x7f, 0x1f, 0x0f, 0x07};
    std::uint32_t code =
        static_cast<unsigned char>(sequence.front()) & bits_of_first.at(sequence.size());
    for (const char c : sequence.substr(1))
        code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
    return code;
}

struct CodePoints {
    std::uint32_t first;
    std::uint32_t last;
};

// Unicode 15, in ascending order: control characters (C0, C1), line separators, characters that
// change the direction of writing (Bidi_Control), and characters that are not visible
// (Default_Ignorable_Code_Point, interlinear annotations, the empty Braille pattern). Two texts
// that differ only in these look the same to a reader.
inline constexpr std::array<CodePoints, 22> unprintable_code_points{{
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},
    {0x061c, 0x061c},   {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x2800, 0x2800},
    {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb},   {0x13430, 0x1343f}, {0x16fe4, 0x16fe4}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
}};

// Whether a UTF-8 sequence acts on a terminal or is not visible.
inline bool is_unprintable(std::string_view sequence) {
    const std::uint32_t code = code_point(sequence);
    const auto range =
        std::ranges::lower_bound(unprintable_code_points, code, {}, &CodePoints::last);
    return range != unprintable_code_points.end() && range->first <= code;
}

// Whether 8-bit terminals interpret this byte as a C1 control character.
inline bool is_c1(char c) {
    return static_cast<unsigned char>(c) >= 0x80 && static_cast<unsigned char>(c) < 0xa0;
}

// Whether the text contains a control character (as UTF-8 or as a single byte), a character that
// changes the direction of writing, or a character that is not visible. Other bytes that are not
// UTF-8 are accepted, because names may have an older encoding.
inline bool has_unprintable(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0 ? is_c1(text.front()) : is_unprintable(text.substr(0, length))) return true;
        text.remove_prefix(std::max<std::size_t>(1, length));
    }
    return false;
}

// Writes an unprintable UTF-8 sequence as \n, \r, \t or, as in JSON, \uXXXX.
inline std::string escaped(std::string_view sequence) {
    if (sequence == "\n") return "\\n";
    if (sequence == "\r") return "\\r";
    if (sequence == "\t") return "\\t";
    const auto number = [](std::uint32_t unit) {
        constexpr std::string_view digits = "0123456789abcdef";
        std::string text = "\\u";
        for (int shift = 12; shift >= 0; shift -= 4)
            text += digits[unit >> static_cast<unsigned>(shift) & 0xfU];
        return text;
    };
    const std::uint32_t code = code_point(sequence);
    if (code <= 0xffff) return number(code);
    const std::uint32_t rest = code - 0x10000; // a surrogate pair
    return number(0xd800 + (rest >> 10U)) + number(0xdc00 + (rest & 0x3ffU));
}

// Returns the text without what acts on a terminal, forges a line or is not visible: escaped() has
// its place, and bytes that are not UTF-8 become \xXX. Escaped text is unchanged. The result has at
// most `limit_bytes`. With `keeps_layout`, line ends and tabs stay.
inline std::string printable(std::string_view text, std::size_t limit_bytes = std::string::npos,
                             bool keeps_layout = false) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const std::string_view sequence = text.substr(0, std::max<std::size_t>(1, length));
        const bool is_layout = keeps_layout && (sequence == "\n" || sequence == "\t");
        std::string instead;
        if (length == 0) {
            const auto byte = static_cast<unsigned char>(text.front());
            instead = {'\\', 'x', digits[byte >> 4U], digits[byte & 0xfU]};
        } else if (!is_layout && is_unprintable(sequence)) {
            instead = escaped(sequence);
        }
        const std::string_view piece = instead.empty() ? sequence : std::string_view{instead};
        if (out.size() + piece.size() > limit_bytes) break;
        out += piece;
        text.remove_prefix(sequence.size());
    }
    return out;
}

} // namespace netio::inline v0_3
