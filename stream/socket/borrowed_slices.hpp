// SPDX-License-Identifier: Apache-2.0
#pragma once

// BorrowedSlices: the memory that one direction of a stream has borrowed from the user, in the
// order of the user's calls.
//
// A state machine identifies each slice by its number, from 0; this queue returns the memory and
// the user's cookie for a number. The front is removed when the user's memory is free again.

#include "stream/core/fifo.hpp"

#include "netio/base/check.hpp"
#include "netio/base/cookie.hpp"
#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <cstdint>

namespace netio::stream::inline v0_3 {

class BorrowedSlices {
  public:
    // At most `limit_count` slices at once: is_full().
    explicit BorrowedSlices(std::size_t limit_count) : limit_count_{limit_count} {}

    bool empty() const noexcept { return slices_.empty(); }
    std::size_t size() const noexcept { return slices_.size(); }
    bool is_full() const noexcept { return slices_.size() >= limit_count_; }

    // Returns the number of the slice.
    std::uint64_t push(const Slice& slice, Cookie cookie) {
        NETIO_CHECK(!is_full());
        slices_.push_back({slice, cookie});
        return first_ + slices_.size() - 1;
    }
    // A slice that is still borrowed (checked).
    const Slice& at(std::uint64_t number) const {
        NETIO_CHECK(number >= first_);
        return slices_[static_cast<std::size_t>(number - first_)].slice;
    }
    // `size` bytes of it, from `offset` on.
    Slice slice(std::uint64_t number, std::uint64_t offset, std::uint64_t size) const {
        const Slice& whole = at(number);
        NETIO_CHECK(offset <= whole.size && size <= whole.size - offset);
        return {whole.buffer, whole.data + offset, static_cast<std::size_t>(size)};
    }
    const Slice& front() const { return at(first_); }
    // Replaces the front by other memory of the same size (checked).
    void replace_front(const Slice& slice) {
        NETIO_CHECK(slice.size == front().size);
        slices_.front().slice = slice;
    }
    Cookie pop_front() {
        ++first_;
        return slices_.pop_front().cookie;
    }

  private:
    struct Borrowed {
        Slice slice;
        Cookie cookie;
    };

    std::size_t limit_count_;
    Fifo<Borrowed> slices_;
    std::uint64_t first_ = 0; // number of the front
};

} // namespace netio::stream::inline v0_3
