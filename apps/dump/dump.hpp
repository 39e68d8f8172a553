// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

// Selects messages by their bytes or by their status byte. No I/O.

inline constexpr std::string_view filter_spelling =
    "cafe (bytes in hex at any position), 16:cafe (bytes at position 16), status:3";

class MessageFilter {
  public:
    // Adds a condition that messages must also fulfil. Returns false, without any change, if the
    // text is not a condition.
    bool add(std::string_view condition);
    bool wants(std::span<const std::byte> message, std::uint8_t status) const;

  private:
    struct Bytes {
        std::vector<std::byte> bytes;    // not empty
        std::optional<std::size_t> at{}; // empty: anywhere
    };
    std::vector<Bytes> bytes_;
    std::vector<std::uint8_t> statuses_;
};

// Formats bytes for people: sixteen per line, with their position, in hexadecimal and as text. No
// I/O.

// Formats the first `shown_bytes` bytes, and the number of the remaining ones.
std::string hex_lines(std::span<const std::byte> bytes, std::size_t shown_bytes);

} // namespace apps
