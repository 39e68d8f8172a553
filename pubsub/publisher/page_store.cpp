// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/page_store.hpp"

#include "netio/base/check.hpp"

namespace netio::pubsub::inline v0_2 {

std::optional<std::uint32_t> PageStore::open(std::size_t least, std::size_t most) {
    const auto piece = arena_.take(least, most);
    if (!piece) return std::nullopt;
    return pages_.take({.piece = *piece, .users = 1});
}

void PageStore::seal(std::uint32_t page, std::size_t bytes, Contents contents, Fid fid,
                     Shares& shares) {
    Page& it = pages_[page];
    arena_.shorten(it.piece, bytes);
    it.bytes = bytes;
    it.contents = contents;
    it.fid = fid;
    shares.use(it.piece.size);
}

void PageStore::release(std::uint32_t page, Shares& shares) {
    Page& it = pages_[page];
    NETIO_CHECK(it.users > 0);
    if (--it.users > 0) return;
    shares.give_back(it.piece.size);
    arena_.give_back(pages_.release(page).piece);
}

} // namespace netio::pubsub::inline v0_2
