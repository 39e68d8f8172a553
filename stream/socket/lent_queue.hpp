// SPDX-License-Identifier: Apache-2.0
#pragma once

// LentQueue: the memory that a user has lent to one direction of a stream, in the order of lending.
//
// A state machine knows each piece by its number, from 0; this finds the memory behind a number and
// the user's cookie. The front leaves when the user gets it back.

#include "stream/core/fifo.hpp"

#include "netio/base/check.hpp"
#include "netio/base/cookie.hpp"
#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <cstdint>

namespace netio::stream::inline v0_2 {

class LentQueue {
  public:
    // At most so many at once: is_full().
    explicit LentQueue(std::size_t limit_count) : limit_count_{limit_count} {}

    bool empty() const noexcept { return lent_.empty(); }
    std::size_t size() const noexcept { return lent_.size(); }
    bool is_full() const noexcept { return lent_.size() >= limit_count_; }

    // Gives its number.
    std::uint64_t push(const Slice& slice, Cookie cookie) {
        NETIO_CHECK(!is_full());
        lent_.push_back({slice, cookie});
        return first_ + lent_.size() - 1;
    }
    // The memory of one that is still lent (checked).
    const Slice& at(std::uint64_t number) const {
        NETIO_CHECK(number >= first_);
        return lent_[static_cast<std::size_t>(number - first_)].slice;
    }
    // `size` bytes of it, from `offset` on.
    Slice slice(std::uint64_t number, std::uint64_t offset, std::uint64_t size) const {
        const Slice& whole = at(number);
        NETIO_CHECK(offset <= whole.size && size <= whole.size - offset);
        return {whole.buffer, whole.data + offset, static_cast<std::size_t>(size)};
    }
    const Slice& front() const { return at(first_); }
    // Other memory of the same size (checked) for the front.
    void replace_front(const Slice& slice) {
        NETIO_CHECK(slice.size == front().size);
        lent_.front().slice = slice;
    }
    Cookie pop_front() {
        ++first_;
        return lent_.pop_front().cookie;
    }

  private:
    struct Lent {
        Slice slice;
        Cookie cookie;
    };

    std::size_t limit_count_;
    Fifo<Lent> lent_;
    std::uint64_t first_ = 0; // number of the front
};

} // namespace netio::stream::inline v0_2
