// SPDX-License-Identifier: Apache-2.0
#pragma once

// 256 bits that nobody else knows. They are wiped when they are no longer needed.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace netio::access::inline v0_2 {

inline constexpr std::size_t secret_bytes = 32;
using Bytes = std::span<const std::byte>;

class Secret {
  public:
    Secret() = default; // all zeros: no secret
    explicit Secret(std::span<const std::byte, secret_bytes> bytes) noexcept;
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;
    ~Secret();

    // From the system's generator. Throws std::system_error.
    static Secret random();
    // As it stands in a key file: "nk1-", 64 digits in hexadecimal, and 8 more that tell a slip of
    // the pen. Nothing: it is not one.
    static std::optional<Secret> parse(std::string_view text);
    std::string text() const;
    // Eight digits by which people compare two files without seeing the secret.
    std::string fingerprint() const;

    std::span<const std::byte, secret_bytes> bytes() const noexcept { return bytes_; }
    // In a time that does not tell where they differ.
    friend bool operator==(const Secret& one, const Secret& other) noexcept;

  private:
    std::array<std::byte, secret_bytes> bytes_{};
};

// In a time that does not tell where they differ. Of different sizes: false.
bool same_bytes(Bytes one, Bytes other) noexcept;
// Also where the compiler thinks that nobody looks at it again.
void wipe(std::span<std::byte> bytes) noexcept;
// Throws std::system_error.
void fill_randomly(std::span<std::byte> bytes);

} // namespace netio::access::inline v0_2
