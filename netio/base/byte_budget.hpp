// SPDX-License-Identifier: Apache-2.0
#pragma once

// ByteBudget limits the bytes that several owners hold together. A ByteShare is what one owner
// holds of it; its destructor returns everything. The budget must outlive its shares. Not
// thread-safe.

#include "netio/base/require_cxx20.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace netio::inline v0_3 {

class ByteBudget {
  public:
    explicit ByteBudget(std::size_t limit) noexcept : limit_{limit} {}
    ByteBudget(const ByteBudget&) = delete;
    ByteBudget& operator=(const ByteBudget&) = delete;

    std::size_t used() const noexcept { return used_; }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t left() const noexcept { return limit_ - std::min(limit_, used_); }

  private:
    friend class ByteShare;
    std::size_t limit_;
    std::size_t used_ = 0;
};

class ByteShare {
  public:
    explicit ByteShare(ByteBudget& budget) noexcept : budget_{budget} {}
    ~ByteShare() { give(held_); }
    ByteShare(const ByteShare&) = delete;
    ByteShare& operator=(const ByteShare&) = delete;

    // Returns false, without an effect, if the budget has fewer bytes left.
    [[nodiscard]] bool take(std::size_t bytes) noexcept {
        if (bytes > budget_.left()) return false;
        take_anyway(bytes);
        return true;
    }
    // Returns whether this owner may take the bytes and then holds at most what the budget has
    // left. With this rule a single owner gets half of the budget, and some is left for the next
    // owner.
    [[nodiscard]] bool has_fair_share(std::size_t bytes) const noexcept {
        const std::size_t left = budget_.left();
        return bytes <= left / 2 && held_ <= left - 2 * bytes;
    }
    // Takes the bytes even if the budget has fewer left.
    void take_anyway(std::size_t bytes) noexcept {
        budget_.used_ += bytes;
        held_ += bytes;
    }
    // Gives back bytes that were taken.
    void give(std::size_t bytes) noexcept {
        budget_.used_ -= bytes;
        held_ -= bytes;
    }
    std::size_t held() const noexcept { return held_; }

  private:
    ByteBudget& budget_;
    std::size_t held_ = 0;
};

} // namespace netio::inline v0_3
