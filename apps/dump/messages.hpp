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

// Which messages somebody wants to see: by the bytes in them, or by their status byte. No I/O.

inline constexpr std::string_view filter_spelling =
    "cafe (bytes in hex, anywhere), 16:cafe (they begin at byte 16), status:3";

class MessageFilter {
  public:
    // Wants only what has this, too. False: it is no condition, and nothing has changed.
    bool add(std::string_view condition);
    bool wants(std::span<const std::byte> message, std::uint8_t status) const;

  private:
    struct Bytes {
        std::vector<std::byte> bytes;    // at least one
        std::optional<std::size_t> at{}; // empty: anywhere
    };
    std::vector<Bytes> bytes_;
    std::vector<std::uint8_t> statuses_;
};

// Bytes as people read them: sixteen a line, where they are, in hexadecimal, and what of them is
// text. No I/O.

// Of the first `shown_bytes` of them, and how many more there are.
std::string hex_lines(std::span<const std::byte> bytes, std::size_t shown_bytes);

} // namespace apps
