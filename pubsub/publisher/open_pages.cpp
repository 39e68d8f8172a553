// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/open_pages.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {

bool OpenPages::open(Group& group, std::size_t record_bytes, std::size_t most) {
    const std::size_t part = set_aside_ / (pages_.size() + 1);
    const std::size_t bytes = std::max(record_bytes, std::min({page_bytes_, most, part}));
    auto page = store_.open(record_bytes, bytes);
    if (!page) {
        // Groups that are seldom published to must not keep the memory of the others.
        shrink(part);
        page = store_.open(record_bytes, bytes);
    }
    if (!page) {
        shrink(0);
        page = store_.open(record_bytes, bytes);
    }
    if (!page) return false;
    group.place =
        pages_.take({.group = &group, .page = *page, .writer = PageWriter{store_.memory(*page)}});
    writer(group.place).limit(std::max(record_bytes, page_bytes_));
    return true;
}

OpenPages::Filled OpenPages::take(std::size_t place) {
    const Open open = pages_.release(static_cast<std::uint32_t>(place));
    open.group->place = Group::nowhere;
    return {.page = open.page, .bytes = open.writer.used(), .group = open.group};
}

void OpenPages::shrink(std::size_t bytes) {
    for_each([&](std::uint32_t place) {
        Open& open = pages_[place];
        const std::size_t kept = ByteArena::rounded(std::max(bytes, open.writer.used()));
        if (kept >= store_.size(open.page)) return;
        store_.shorten(open.page, kept);
        open.writer.limit(kept);
    });
}

} // namespace netio::pubsub::inline v0_2
