// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/gathering.hpp"

namespace netio::pubsub::inline v0_2 {

bool Gathering::begin(std::size_t body_limit) {
    const auto free = std::ranges::find(pages_, false, &Page::under_way);
    filling_ = static_cast<std::uint8_t>(free - pages_.begin());
    if (free == pages_.end()) {
        if (pages_.size() == page_limit) return false;
        pages_.emplace_back().memory =
            std::make_unique<RegisteredBuffer>(std::min(page_bytes, body_limit), Access::send);
    }
    Page& page = pages_[filling_];
    page.messages.clear();
    writer_ = PageWriter{page.memory->memory()};
    return true;
}

bool Gathering::append(const LentMessage& message, const Held& held) {
    std::byte* const out = writer_.append(message.fid, message.status, message.total_bytes);
    if (out == nullptr) return false;
    copy_message(message, out);
    pages_[filling_].messages.push_back(held);
    return true;
}

Slice Gathering::page() {
    return pages_[filling_].memory->slice(0, writer_.used());
}

std::uint8_t Gathering::posted() noexcept {
    pages_[filling_].under_way = true;
    return filling_;
}

} // namespace netio::pubsub::inline v0_2
