// SPDX-License-Identifier: Apache-2.0
#pragma once

// Received bytes that the user keeps longer than a handler runs (docs/guide.md, "Keep a message").

#include "netio/base/time.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

// Received memory that the user keeps, of one connection or of several together.
struct KeepStats {
    std::size_t buffers = 0; // kept receive buffers, and slabs with copies of small messages
    std::size_t bytes = 0;   // the size of these buffers and slabs
    Duration oldest{};       // for how long the oldest of them has been kept

    KeepStats& operator+=(const KeepStats& other) noexcept {
        buffers += other.buffers;
        bytes += other.bytes;
        oldest = std::max(oldest, other.oldest);
        return *this;
    }
};

// Bytes with shared ownership. They are valid as long as one copy of this object exists, also after
// the socket, its loop and its transport are gone. Copies may be used and destroyed on any thread.
class KeptBytes {
  public:
    KeptBytes() = default;
    KeptBytes(const KeptBytes&) = default;
    KeptBytes& operator=(const KeptBytes&) = default;
    // Leaves the other one empty.
    KeptBytes(KeptBytes&& other) noexcept
        : owner_{std::move(other.owner_)}, bytes_{std::exchange(other.bytes_, {})} {}
    KeptBytes& operator=(KeptBytes&& other) noexcept {
        owner_ = std::move(other.owner_);
        bytes_ = std::exchange(other.bytes_, {});
        return *this;
    }
    ~KeptBytes() = default;
    // `bytes` must be valid as long as `owner` lives.
    KeptBytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) noexcept
        : owner_{std::move(owner)}, bytes_{bytes} {}
    // Copies the bytes into memory of its own.
    static KeptBytes copy_of(std::span<const std::byte> bytes) {
        auto memory = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
        const std::span<const std::byte> copy = *memory;
        return {std::move(memory), copy};
    }

    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    // Returns `part`, which must lie within these bytes (not checked), with shared ownership of the
    // whole memory.
    KeptBytes part(std::span<const std::byte> part) const { return {owner_, part}; }
    std::size_t size() const noexcept { return bytes_.size(); }
    bool empty() const noexcept { return bytes_.empty(); }
    std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    }

  private:
    std::shared_ptr<const void> owner_;
    std::span<const std::byte> bytes_;
};

} // namespace netio::inline v0_3
