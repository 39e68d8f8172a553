// SPDX-License-Identifier: Apache-2.0
#pragma once

// A queue that reuses its memory, unlike std::deque: a steady flow of elements needs no allocation.
// When the queue becomes empty, it frees the memory that a burst required. Popped elements are
// replaced by Value{}.

#include "netio/base/check.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

template <class Value>
class RingQueue {
  public:
    static constexpr std::size_t kept_count = 64; // slots that an empty queue keeps

    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    // The i-th element from the head. The reference is valid until the next emplace_back().
    Value& operator[](std::size_t i) noexcept { return slots_[place(i)]; }
    const Value& operator[](std::size_t i) const noexcept { return slots_[place(i)]; }
    Value& front() noexcept { return (*this)[0]; }
    Value& back() noexcept { return (*this)[count_ - 1]; }

    // Appends a Value{}.
    Value& emplace_back() {
        if (count_ == slots_.size()) grow();
        ++count_;
        return back();
    }
    void pop_front() {
        NETIO_CHECK(count_ > 0);
        front() = Value{};
        head_ = place(1);
        --count_;
        if (count_ == 0) on_drained();
    }
    void pop_back() {
        NETIO_CHECK(count_ > 0);
        back() = Value{};
        --count_;
        if (count_ == 0) on_drained();
    }

  private:
    static constexpr std::size_t first_count = 4;

    // The number of slots is a power of two.
    std::size_t place(std::size_t i) const noexcept { return (head_ + i) & (slots_.size() - 1); }

    void grow() {
        std::vector<Value> larger(slots_.empty() ? first_count : 2 * slots_.size());
        for (std::size_t i = 0; i < count_; ++i)
            larger[i] = std::move((*this)[i]);
        slots_ = std::move(larger);
        head_ = 0;
    }
    void on_drained() {
        if (slots_.size() > kept_count) slots_ = std::vector<Value>{};
        head_ = 0;
    }

    std::vector<Value> slots_;
    std::size_t head_ = 0;
    std::size_t count_ = 0;
};

} // namespace netio::inline v0_3
