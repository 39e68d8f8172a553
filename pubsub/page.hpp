// SPDX-License-Identifier: Apache-2.0
#pragma once

// Several messages in one page, with the message header that netio3 documents, so that a stream
// can be bridged (docs/wire-formats.md, "Pages"). No I/O.
//
//     0               4   (5)           (13)
//     +---------------+---+-------------+- - - - - -
//     |F S    size    |sta|     fid     | message
//     +---------------+---+-------------+- - - - - -
//
// Bit 31 (F): a fid follows; without it the message belongs to the fid of the one before. Bit 30
// (S): a status byte follows. Bits 29 to 0: the size of the message.

#include "netio/wire.hpp"
#include "pubsub/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace pubsub {

namespace page {
inline constexpr std::uint32_t fid_present = std::uint32_t{1} << 31;
inline constexpr std::uint32_t status_present = std::uint32_t{1} << 30;
inline constexpr std::uint32_t size_mask = status_present - 1;
// What a message needs beside itself at most.
inline constexpr std::size_t header_bytes = 4 + 1 + 8;
} // namespace page

// Fills a page. A status of 0 is not written: it is what the reader assumes.
class PageWriter {
  public:
    PageWriter() = default;
    explicit PageWriter(std::span<std::byte> memory) noexcept : memory_{memory} {}

    // Writes the header and returns where the message's `size` bytes go; nullptr: no room.
    std::byte* append(Fid fid, std::uint8_t status, std::size_t size) noexcept {
        const bool with_fid = used_ == 0 || fid != fid_;
        const std::size_t header = std::size_t{4} + (status != 0 ? 1U : 0U) + (with_fid ? 8U : 0U);
        if (size > page::size_mask || header + size > memory_.size() - used_) return nullptr;
        std::byte* out = memory_.data() + used_;
        netio::wire::store(out, static_cast<std::uint32_t>(size) |
                                    (with_fid ? page::fid_present : 0U) |
                                    (status != 0 ? page::status_present : 0U));
        out += 4;
        if (status != 0) *out++ = std::byte{status};
        if (with_fid) {
            netio::wire::store(out, fid);
            out += 8;
            fid_ = fid;
        }
        used_ += header + size;
        ++messages_;
        return out;
    }

    std::size_t used() const noexcept { return used_; }
    std::size_t messages() const noexcept { return messages_; }

  private:
    std::span<std::byte> memory_;
    std::size_t used_ = 0;
    std::size_t messages_ = 0;
    Fid fid_{};
};

// Calls visit(fid, message, status) for each message in order, as long as it returns true. False:
// the page is malformed behind the messages that were visited.
template <typename Visit>
bool visit_page(std::span<const std::byte> bytes, Visit visit) {
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    Fid fid{};
    bool fid_known = false;
    while (at != end) {
        if (end - at < 4) return false;
        const auto header = netio::wire::load<std::uint32_t>(at);
        at += 4;
        std::uint8_t status = 0;
        if ((header & page::status_present) != 0) {
            if (at == end) return false;
            status = std::to_integer<std::uint8_t>(*at++);
        }
        if ((header & page::fid_present) != 0) {
            if (end - at < 8) return false;
            fid = netio::wire::load<Fid>(at);
            fid_known = true;
            at += 8;
        }
        const std::size_t size = header & page::size_mask;
        if (!fid_known || size > static_cast<std::size_t>(end - at)) return false;
        const std::span<const std::byte> message{at, size};
        at += size;
        if (!visit(fid, message, status)) return true;
    }
    return true;
}

} // namespace pubsub
