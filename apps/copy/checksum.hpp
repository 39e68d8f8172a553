// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checksums of files and of their chunks: XXH3 with 128 bits, which detects damage, or SHA-256,
// which also detects manipulation. The values are those of `xxh128sum` and `sha256sum`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace apps::copy {

enum class ChecksumKind : std::uint8_t { xxh3_128 = 1, sha256 = 2 };

// The bytes in printing order; unused bytes are zero.
using Digest = std::array<std::byte, 32>;

std::string to_hex(ChecksumKind kind, const Digest& digest);
// "xxh3-128", "sha256"
std::string to_string(ChecksumKind kind);

// The checksum of the bytes added so far. digest() may be called at any time and changes nothing.
// Throws std::bad_alloc, and std::runtime_error if the system's libcrypto does not provide SHA-256.
class Checksum {
  public:
    explicit Checksum(ChecksumKind kind);
    ~Checksum();
    Checksum(Checksum&&) noexcept;
    Checksum& operator=(Checksum&&) noexcept;

    void add(std::span<const std::byte> bytes);
    // Adds `bytes` zeros, the contents of a hole. XXH3 needs seconds for a terabyte, SHA-256 as
    // long as for data. Throws std::runtime_error if interrupted.
    void add_zeros(std::uint64_t bytes, const std::stop_token& stop);
    Digest digest() const;
    void restart();
    ChecksumKind kind() const noexcept { return kind_; }

  private:
    struct State;
    void add_some_zeros(std::uint64_t bytes);

    ChecksumKind kind_;
    std::unique_ptr<State> state_;
};

// XXH3-128 of one chunk.
using ChunkDigest = std::array<std::byte, 16>;
ChunkDigest chunk_digest(std::span<const std::byte> bytes);

} // namespace apps::copy
