// SPDX-License-Identifier: Apache-2.0
#pragma once

// Several messages in one page, each after a record header (docs/wire-formats.md, "Pages"). A
// service may mark a record with two bits and put its own prefix before the message: publishing
// does so with fids, point-to-point does not. No I/O.
//
//     0               4
//     +---------------+- - - - -+- - - - -
//     |M M    size    | prefix  | message
//     +---------------+- - - - -+- - - - -
//
// Bits 31 and 30 (M): the service's marks. Bits 29 to 0: the size of the message.

#include "netio/base/copy.hpp"
#include "netio/base/time.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace netio::inline v0_3 {

namespace page {
inline constexpr std::size_t record_header_bytes = 4;
inline constexpr std::uint32_t size_mask = (std::uint32_t{1} << 30) - 1;
inline constexpr std::size_t message_limit = size_mask;
// Result of `prefix_bytes` for marks that the service does not allow: larger than any page.
inline constexpr std::size_t no_such_record = std::size_t{1} << 40;
} // namespace page

// --- messages -------------------------------------------------------------------------------

// A message in parts, which are sent one after the other as one message.
using MessageParts = std::span<const std::span<const std::byte>>;

inline std::size_t size_of(MessageParts parts) noexcept {
    std::size_t bytes = 0;
    for (const std::span<const std::byte> part : parts)
        bytes += part.size();
    return bytes;
}

// Copies `out.size()` bytes of the message, beginning at `offset`. The message must have them.
inline void copy_parts(MessageParts parts, std::size_t offset, std::span<std::byte> out) noexcept {
    for (const std::span<const std::byte> part : parts) {
        if (offset >= part.size()) {
            offset -= part.size();
            continue;
        }
        const std::size_t bytes = std::min(part.size() - offset, out.size());
        copy_bytes(out.data(), part.subspan(offset, bytes));
        out = out.subspan(bytes);
        offset = 0;
        if (out.empty()) return;
    }
}

// --- pages ----------------------------------------------------------------------------------

// Fills a page. Does not own it.
class PageWriter {
  public:
    PageWriter() = default;
    explicit PageWriter(std::span<std::byte> memory) noexcept : memory_{memory} {}

    // Writes the record header and returns where to put the `size` bytes of the message. Returns
    // nullptr, and leaves the page unchanged, if it has no space.
    std::byte* append(std::size_t size) noexcept { return append(0, 0, size); }
    // The same with marks and a prefix, which is placed before the message.
    std::byte* append(std::uint32_t marks, std::size_t prefix_bytes, std::size_t size) noexcept {
        const std::size_t record = page::record_header_bytes + prefix_bytes + size;
        if (size > page::message_limit || record > memory_.size() - used_) return nullptr;
        std::byte* const out = memory_.data() + used_;
        wire::store(out, static_cast<std::uint32_t>(size) | marks);
        used_ += record;
        ++messages_;
        return out + page::record_header_bytes;
    }

    // Sets the size of the page in bytes, but not below what it contains. The memory must have
    // them.
    void resize(std::size_t bytes) noexcept { memory_ = {memory_.data(), std::max(bytes, used_)}; }

    std::size_t used() const noexcept { return used_; }
    std::size_t messages() const noexcept { return messages_; }

  private:
    std::span<std::byte> memory_;
    std::size_t used_ = 0;
    std::size_t messages_ = 0;
};

// Calls visit(marks, prefix, message) for each record in order, as long as it returns true.
// `prefix` points to prefix_bytes(marks) bytes; prefix_bytes returns no_such_record if the service
// does not allow such a record at this position. Returns false if the page is malformed after the
// records that were visited.
template <typename PrefixBytes, typename Visit>
bool visit_records(std::span<const std::byte> bytes, PrefixBytes prefix_bytes, Visit visit) {
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    while (left >= page::record_header_bytes) {
        const auto header = wire::load<std::uint32_t>(at);
        const std::uint32_t marks = header & ~page::size_mask;
        const std::size_t size = header & page::size_mask;
        const std::size_t prefix = prefix_bytes(marks);
        at += page::record_header_bytes;
        left -= page::record_header_bytes;
        if (prefix + size > left) return false;
        const std::byte* const message = at + prefix;
        if (!visit(marks, at, std::span{message, size})) return true;
        at = message + size;
        left -= prefix + size;
    }
    return left == 0;
}

// A page of messages without prefix: calls visit(message).
template <typename Visit>
bool visit_page(std::span<const std::byte> bytes, Visit visit) {
    return visit_records(
        bytes,
        [](std::uint32_t marks) { return marks == 0 ? std::size_t{0} : page::no_such_record; },
        [&](std::uint32_t, const std::byte*, std::span<const std::byte> message) {
            return visit(message);
        });
}

} // namespace netio::inline v0_3

// Decides when the timer sends a page that nothing else sends. The first message after a pause need
// not wait, and frequent messages share a page, so the flush time limits the rate of such pages. If
// sending nearly empty pages takes all the time, the flush time is extended, so that pages are
// better filled. A plain value, not thread-safe.
//
//     timer.start_at(pace.next(loop.now()));   // for a page that is opened now
//     pace.on_flushed(loop.now());             // the timer has sent one
//     pace.on_flushed(loop.now(), pages);      // or has sent many

namespace netio::inline v0_3 {

class FlushPace {
  public:
    explicit FlushPace(Duration flush_time) noexcept : flush_time_{flush_time} {}

    // `busy`: since the last flush, the loop has done only work that the flush caused.
    TimePoint next(TimePoint now, bool busy = false) noexcept {
        if (last_ == TimePoint::min()) return now;
        const Duration cost = std::exchange(cost_, Duration::zero());
        if (busy && cost > flush_time_) { // as much time as the flush took remains to fill pages
            pause_ = std::max(2 * cost, now - last_);
            last_ = now;
        }
        return std::max(now, last_ + pause_);
    }
    // What the timer did with the open pages.
    struct Pages {
        int nearly_empty = 0; // sent with less than `nearly_empty_bytes`
        int kept = 0;         // kept open: their subscribers have earlier pages to receive
    };
    static constexpr std::size_t nearly_empty_bytes = 4096;

    void on_flushed(TimePoint now) noexcept { on_flushed(now, {}); }
    void on_flushed(TimePoint now, const Pages& pages) noexcept {
        last_ = now;
        pause_ = flush_time_;
        cost_ = pages.nearly_empty * page_time;
        check_interval_ = std::max<Duration>(flush_time_, pages.kept * look_time);
    }
    // How long kept pages wait until the timer checks them again.
    Duration check_interval() const noexcept { return check_interval_; }

  private:
    // The minimum cost of sending a page. Up to five pages do not change a flush time of 40 us.
    static constexpr std::chrono::microseconds page_time{8};
    // The cost of checking a page that is kept open; checks should take a small part of the time.
    static constexpr std::chrono::microseconds look_time{2};

    Duration flush_time_;
    Duration pause_ = flush_time_;
    Duration cost_{0}; // of the last flush, until next() has used it
    Duration check_interval_ = flush_time_;
    TimePoint last_ = TimePoint::min();
};

} // namespace netio::inline v0_3
