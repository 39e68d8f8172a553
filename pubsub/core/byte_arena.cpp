// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/byte_arena.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <iterator>

namespace netio::pubsub::inline v0_2 {

ByteArena::ByteArena(std::size_t bytes) : free_bytes_{bytes / grain * grain} {
    if (free_bytes_ > 0) holes_.push_back({.offset = 0, .size = free_bytes_});
}

std::optional<ByteArena::Piece> ByteArena::take(std::size_t least, std::size_t most) {
    least = rounded(least);
    most = std::max(least, rounded(most));
    auto best = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
        if (hole->size >= most) {
            best = hole;
            break;
        }
        if (hole->size >= least && (best == holes_.end() || hole->size > best->size)) best = hole;
    }
    if (best == holes_.end()) return std::nullopt;
    const Piece piece{.offset = best->offset, .size = std::min(most, best->size)};
    best->offset += piece.size;
    best->size -= piece.size;
    if (best->size == 0) holes_.erase(best);
    free_bytes_ -= piece.size;
    return piece;
}

void ByteArena::shorten(Piece& piece, std::size_t size) {
    size = rounded(size);
    if (size >= piece.size) return;
    give_back({.offset = piece.offset + size, .size = piece.size - size});
    piece.size = size;
}

bool ByteArena::extend(Piece& piece, std::size_t size) {
    size = rounded(size);
    if (size <= piece.size) return true;
    const std::size_t more = size - piece.size;
    const std::size_t end = piece.offset + piece.size;
    const auto hole = std::ranges::lower_bound(holes_, end, {}, &Piece::offset);
    if (hole == holes_.end() || hole->offset != end || hole->size < more) return false;
    hole->offset += more;
    hole->size -= more;
    if (hole->size == 0) holes_.erase(hole);
    piece.size = size;
    free_bytes_ -= more;
    return true;
}

void ByteArena::give_back(const Piece& piece) {
    if (piece.size == 0) return;
    const auto next = std::ranges::lower_bound(holes_, piece.offset, {}, &Piece::offset);
    const std::size_t end = piece.offset + piece.size;
    NETIO_CHECK(next == holes_.end() || end <= next->offset);
    free_bytes_ += piece.size;
    const bool joins_next = next != holes_.end() && next->offset == end;
    const bool joins_last =
        next != holes_.begin() && std::prev(next)->offset + std::prev(next)->size == piece.offset;
    if (joins_last) {
        std::prev(next)->size += piece.size + (joins_next ? next->size : 0);
        if (joins_next) holes_.erase(next);
    } else if (joins_next) {
        next->offset = piece.offset;
        next->size += piece.size;
    } else {
        holes_.insert(next, piece);
    }
}

} // namespace netio::pubsub::inline v0_2
