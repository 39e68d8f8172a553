// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which messages somebody wants to see: by the bytes in them, or by their status byte. No I/O.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace apps {

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

} // namespace apps
