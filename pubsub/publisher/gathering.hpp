// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small messages that wait for the same peer leave together, copied into one page: for those a
// frame costs more than the copy, and a peer has only so many receive buffers. A message that need
// not wait is not copied.
//
//     if (gathering.begin(body_limit)) {
//         while (there is one && gathering.append(message, held)) ...
//         send gathering.page(); number = gathering.posted();
//         ... // it is sent: gathering.messages(number) are free
//         gathering.release(number);
//     }
//
// Without posted() the next begin() starts the same page again.

#include "netio/memory/buffer.hpp"
#include "pubsub/core/page.hpp"
#include "pubsub/publisher/lent_message.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class Gathering {
  public:
    // Larger ones are worth a frame of their own: where the kernel copies what is sent, and where a
    // device reads the memory itself, so that ours would be the only copy.
    static constexpr std::size_t message_limit = 49152;
    static constexpr std::size_t device_message_limit = 8192;
    // Memory for one peer: so many pages of at most this size, made when they are needed.
    static constexpr std::size_t page_limit = 4;
    static constexpr std::size_t page_bytes = 131072;

    // With so many frames of the peer's under way, a message waits for others to leave with, until
    // there is enough for a frame: whatever room the peer has, so that a burst makes few frames
    // from its beginning on. What is to leave at once is prompt (try_publish).
    static constexpr std::size_t frames_ahead = 1;
    static constexpr std::size_t enough_bytes = 32768;

    // Those of which a frame of the peer's has place for several.
    static bool takes(const LentMessage& message, std::size_t body_limit, bool by_device) noexcept {
        const std::size_t limit = by_device ? device_message_limit : message_limit;
        return message.total_bytes <= std::min(limit, body_limit / 3);
    }

    // What the queue wants to know of a message in a page.
    struct Held {
        Cookie cookie{};
        std::size_t amount = 0;
    };

    // false: all pages are under way.
    bool begin(std::size_t body_limit);
    // false: it does not fit.
    bool append(const LentMessage& message, const Held& held);
    std::size_t count() const noexcept { return pages_[filling_].messages.size(); }
    Slice page();
    // The page is under way; its number until it is released.
    std::uint8_t posted() noexcept;
    std::span<const Held> messages(std::uint8_t number) const noexcept {
        return pages_[number].messages;
    }
    void release(std::uint8_t number) noexcept { pages_[number].under_way = false; }

  private:
    struct Page {
        std::unique_ptr<RegisteredBuffer> memory;
        std::vector<Held> messages;
        bool under_way = false;
    };
    std::vector<Page> pages_;
    std::uint8_t filling_ = 0;
    PageWriter writer_; // of the page that is being filled
};

} // namespace netio::pubsub::inline v0_2
