// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/page_store.hpp"

#include "netio/base/check.hpp"

#include <algorithm>

namespace netio::pubsub::inline v0_2 {

std::optional<std::uint32_t> PageStore::open(std::size_t least, std::size_t most) {
    const auto piece = arena_.take(least, most);
    if (!piece) return std::nullopt;
    return pages_.take({.piece = *piece, .users = 1});
}

std::vector<std::uint32_t> PageStore::open_for(std::size_t bytes, std::size_t least,
                                               std::size_t most) {
    std::vector<std::uint32_t> pages;
    while (bytes > 0) {
        const std::size_t part = std::min(bytes, most);
        const auto page = open(std::min(least, part), part);
        if (!page) {
            for (const std::uint32_t taken : pages)
                abandon(taken);
            return {};
        }
        pages.push_back(*page);
        bytes -= std::min(part, memory(*page).size());
    }
    return pages;
}

void PageStore::seal(std::uint32_t page, std::size_t bytes, Contents contents,
                     const Fragment& fragment, Shares& shares) {
    Page& it = pages_[page];
    arena_.shorten(it.piece, bytes);
    it.bytes = bytes;
    it.contents = contents;
    it.fragment = fragment;
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
