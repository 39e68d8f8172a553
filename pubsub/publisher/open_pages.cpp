// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/open_pages.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {

bool OpenPages::open(Group& group, std::size_t record_bytes, std::size_t most) {
    const std::size_t part = terms_.set_aside() / (pages_.size() + 1);
    const std::size_t whole = std::max(record_bytes, std::min({terms_.page_bytes(), most, part}));
    const std::size_t bytes = std::max(record_bytes, std::min(whole, terms_.early_bytes()));
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
    const std::size_t room = std::min(store_.memory(*page).size(), bytes);
    group.place =
        pages_.take({.group = &group, .page = *page, .bytes = room, .most = std::max(room, whole)});
    group.writer = PageWriter{store_.memory(*page)};
    return true;
}

bool OpenPages::fill_further(const Group& group) {
    Open& open = pages_[static_cast<std::uint32_t>(group.place)];
    // open() has limited `most` by what was free then.
    const std::size_t bytes = std::min(open.most, open.bytes + terms_.early_bytes());
    if (bytes == open.bytes || !store_.extend(open.page, bytes)) return false;
    open.bytes = bytes;
    limit_lane(open);
    return true;
}

std::byte* OpenPages::append(Group& group, Fid fid, std::uint8_t status, std::size_t bytes) {
    const Open& open = pages_[static_cast<std::uint32_t>(group.place)];
    group.writer.resize(open.bytes);
    std::byte* const out = group.writer.append(fid, status, bytes);
    limit_lane(open);
    return out;
}

// It is to leave when it reaches the watermark, so nothing that does goes past us.
void OpenPages::limit_lane(const Open& open) noexcept {
    open.group->writer.resize(std::min(open.bytes, terms_.watermark_bytes() - 1));
}

OpenPages::Filled OpenPages::take(std::size_t place) {
    const Open open = pages_.release(static_cast<std::uint32_t>(place));
    Group& group = *open.group;
    group.place = Group::nowhere;
    const std::size_t used = group.writer.used();
    group.writer = PageWriter{};
    return {.page = open.page, .bytes = used, .group = &group};
}

std::vector<std::uint32_t> OpenPages::take_pages(std::size_t bytes) {
    shrink(0);
    // What others keep may leave only gaps between them that are no fragment worth its frame.
    for (const std::size_t smallest : {std::size_t{1024}, std::size_t{64}}) {
        std::vector<std::uint32_t> pages = store_.open_for(bytes, smallest, terms_.page_bytes());
        if (!pages.empty()) return pages;
    }
    return {};
}

std::size_t OpenPages::free(std::size_t unsealed) {
    // To half of their part: so the next ones have room, and not each of them comes here again.
    if (store_.free() < terms_.pool() / 2 && store_.free() + terms_.set_aside() < unsealed)
        shrink(terms_.set_aside() / (2 * pages_.size()));
    return store_.free();
}

void OpenPages::shrink(std::size_t bytes) {
    for_each([&](std::uint32_t place) {
        Open& open = pages_[place];
        const std::size_t kept = ByteArena::rounded(std::max(bytes, open.group->writer.used()));
        if (kept >= store_.size(open.page)) return;
        store_.shorten(open.page, kept);
        open.bytes = std::min(open.bytes, kept);
        open.most = open.bytes;
        limit_lane(open);
    });
}

} // namespace netio::pubsub::inline v0_2
