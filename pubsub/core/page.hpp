// SPDX-License-Identifier: Apache-2.0
#pragma once

// Several messages with their fids in one page (netio/coalescing/page.hpp), with the message header
// that netio3 documents, so that a stream can be bridged (docs/wire-formats.md, "Records of a
// page"). No I/O.
//
//     0               4   (5)           (13)
//     +---------------+---+-------------+- - - - - -
//     |F S    size    |sta|     fid     | message
//     +---------------+---+-------------+- - - - - -
//
// Bit 31 (F): a fid follows; without it the message belongs to the fid of the one before. Bit 30
// (S): a status byte follows. Bits 29 to 0: the size of the message.

#include "netio/base/wire.hpp"
#include "netio/coalescing/page.hpp"
#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace netio::pubsub::inline v0_2 {

namespace page {
inline constexpr std::uint32_t fid_present = std::uint32_t{1} << 31;
inline constexpr std::uint32_t status_present = std::uint32_t{1} << 30;
// What a message needs beside itself at most.
inline constexpr std::size_t header_bytes = netio::page::record_header_bytes + 1 + 8;

constexpr std::size_t prefix_bytes(std::uint32_t marks) noexcept {
    return ((marks & status_present) != 0 ? 1U : 0U) + ((marks & fid_present) != 0 ? 8U : 0U);
}
} // namespace page

// Fills a page. A status of 0 is not written: it is what the reader assumes.
class PageWriter {
  public:
    PageWriter() = default;
    explicit PageWriter(std::span<std::byte> memory) noexcept : writer_{memory} {}

    // Writes the header and returns where the message's `size` bytes go; nullptr: no room.
    std::byte* append(Fid fid, std::uint8_t status, std::size_t size) noexcept {
        const bool with_fid = writer_.used() == 0 || fid != fid_;
        const std::uint32_t marks =
            (with_fid ? page::fid_present : 0U) | (status != 0 ? page::status_present : 0U);
        std::byte* out = writer_.append(marks, page::prefix_bytes(marks), size);
        if (out == nullptr) return nullptr;
        if (status != 0) *out++ = std::byte{status};
        if (with_fid) {
            wire::store(out, fid);
            out += 8;
            fid_ = fid;
        }
        return out;
    }

    // Takes so many bytes in all from now on, or what it has already. The page has as many.
    void resize(std::size_t bytes) noexcept { writer_.resize(bytes); }

    std::size_t used() const noexcept { return writer_.used(); }
    std::size_t messages() const noexcept { return writer_.messages(); }

  private:
    netio::PageWriter writer_;
    Fid fid_{};
};

// Calls visit(fid, message, status) for each message in order, as long as it returns true. False:
// the page is malformed behind the messages that were visited. `before`: this is the rest of a page
// whose last message had that fid.
template <typename Visit>
bool visit_page(std::span<const std::byte> bytes, Visit visit, std::optional<Fid> before = {}) {
    Fid fid = before.value_or(Fid{});
    std::uint32_t required = page::fid_present; // of the first
    if (before) required = 0;
    return netio::visit_records(
        bytes,
        [&](std::uint32_t marks) {
            return (marks & required) == required ? page::prefix_bytes(marks)
                                                  : netio::page::no_such_record;
        },
        [&](std::uint32_t marks, const std::byte* prefix, std::span<const std::byte> message) {
            required = 0;
            if (marks == 0) return visit(fid, message, std::uint8_t{0});
            std::uint8_t status = 0;
            if ((marks & page::status_present) != 0)
                status = std::to_integer<std::uint8_t>(*prefix++);
            if ((marks & page::fid_present) != 0) fid = wire::load<Fid>(prefix);
            return visit(fid, message, status);
        });
}

} // namespace netio::pubsub::inline v0_2
