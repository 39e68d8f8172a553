// SPDX-License-Identifier: Apache-2.0
#include "netio/base/copy.hpp"

#include <algorithm>

namespace netio::detail {

void copy_in_pieces(std::byte* out, std::span<const std::byte> bytes) noexcept {
    // Not a constant: the compiler would replace memcpy by an inline `rep movsq`, which is slow,
    // too.
    static volatile const std::size_t piece_bytes = 512;
    const std::size_t piece = piece_bytes;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        std::memcpy(out + at, bytes.data() + at, std::min(piece, bytes.size() - at));
}

} // namespace netio::detail
