// SPDX-License-Identifier: Apache-2.0
#pragma once

// What in a text acts on a terminal, or cannot be seen. Pure.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace netio::inline v0_2 {

inline bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// The length of the UTF-8 sequence at the front, 0: it is none.
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

// C1, which terminals obey as well, and the marks that turn the direction of writing.
inline bool is_unseen(std::string_view sequence) {
    if (sequence.size() == 1) return is_control(sequence.front());
    if (sequence.size() == 2)
        return (sequence >= "\xc2\x80" && sequence <= "\xc2\x9f") || sequence == "\xd8\x9c";
    return (sequence >= "\xe2\x80\x8e" && sequence <= "\xe2\x80\x8f") ||
           (sequence >= "\xe2\x80\xa8" && sequence <= "\xe2\x80\xae") ||
           (sequence >= "\xe2\x81\xa6" && sequence <= "\xe2\x81\xa9");
}

// A byte alone that 8-bit terminals take for C1.
inline bool is_c1(char c) {
    return static_cast<unsigned char>(c) >= 0x80 && static_cast<unsigned char>(c) < 0xa0;
}

// Whether any of it acts on a terminal or cannot be seen: control characters, as UTF-8 or as a byte
// alone, and what changes the direction of writing. Other bytes that are no UTF-8 are not among it:
// names in an older encoding are names.
inline bool has_unseen(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0 ? is_c1(text.front()) : is_unseen(text.substr(0, length))) return true;
        text.remove_prefix(std::max<std::size_t>(1, length));
    }
    return false;
}

} // namespace netio::inline v0_2
