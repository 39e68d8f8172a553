// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pages of a buffered socket: equal parts of one registered buffer. Each page counts the
// sessions that still have to send it, so a page is encoded once and sent to any number of
// sessions.

#include "netio/base/check.hpp"
#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace netio::inline v0_3 {

class PagePool {
  public:
    PagePool(std::size_t page_size_bytes, std::size_t page_count)
        : memory_{page_size_bytes * page_count}, page_bytes_{page_size_bytes},
          users_(page_count, 0) {
        free_.reserve(page_count);
        // The lowest page is taken first: a pool that is never full uses little memory.
        for (std::size_t i = page_count; i > 0; --i) {
            free_.push_back(static_cast<std::uint32_t>(i - 1));
        }
    }

    // Returns a page with one user, the caller; nullopt if all pages are in use.
    std::optional<std::uint32_t> take() noexcept {
        if (free_.empty()) return std::nullopt;
        const std::uint32_t page = free_.back();
        free_.pop_back();
        users_[page] = 1;
        return page;
    }

    void add_user(std::uint32_t page) noexcept {
        NETIO_CHECK(users_[page] > 0);
        ++users_[page];
    }

    // Ends the use by one user. The page is free after its last user.
    void release(std::uint32_t page) noexcept {
        NETIO_CHECK(users_[page] > 0);
        if (--users_[page] == 0) free_.push_back(page);
    }

    std::span<std::byte> memory(std::uint32_t page) noexcept {
        return memory_.memory().subspan(page * page_bytes_, page_bytes_);
    }
    Slice slice(std::uint32_t page, std::size_t bytes) noexcept {
        return memory_.slice(page * page_bytes_, bytes);
    }

    std::size_t page_size_bytes() const noexcept { return page_bytes_; }
    std::size_t page_count() const noexcept { return users_.size(); }
    std::size_t free_count() const noexcept { return free_.size(); }

  private:
    RegisteredBuffer memory_;
    std::size_t page_bytes_;
    std::vector<std::uint32_t> users_;
    std::vector<std::uint32_t> free_;
};

} // namespace netio::inline v0_3
