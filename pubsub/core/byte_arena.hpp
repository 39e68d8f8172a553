// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts pieces of any size from one stretch of memory. No I/O: it deals in offsets.
//
// The lowest hole that is large enough is taken first, so that what is cut while little is in use
// stays within a processor's cache. A piece may be shortened once it is known what it holds. The
// holes are one sorted array: there are few unless many pieces are held for long, and then they are
// searched once for a piece, not for a message.

#include <cstddef>
#include <optional>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class ByteArena {
  public:
    // All offsets and sizes are multiples of it: a cache line.
    static constexpr std::size_t grain = 64;
    static constexpr std::size_t rounded(std::size_t bytes) noexcept {
        return (bytes + grain - 1) / grain * grain;
    }

    explicit ByteArena(std::size_t bytes);

    struct Piece {
        std::size_t offset = 0;
        std::size_t size = 0;
    };
    // The lowest piece of `most` bytes, or if there is none the largest that has `least` at least.
    std::optional<Piece> take(std::size_t least, std::size_t most);
    // Gives back what is behind the first `size` bytes of a piece.
    void shorten(Piece& piece, std::size_t size);
    // Extends a piece to `size` bytes with the free bytes that follow it. Returns false, and leaves
    // the piece unchanged, if fewer are free there.
    bool extend(Piece& piece, std::size_t size);
    void give_back(const Piece& piece);

    std::size_t free_bytes() const noexcept { return free_bytes_; }
    std::size_t hole_count() const noexcept { return holes_.size(); }

  private:
    std::size_t free_bytes_;
    std::vector<Piece> holes_; // by offset; no two touch
};

} // namespace netio::pubsub::inline v0_2
