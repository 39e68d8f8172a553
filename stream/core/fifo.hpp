// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fifo: a queue in one contiguous, growing piece of memory.
//
// The stream's state machines keep their sends, receives and adverts in it. It allocates only until
// it has reached its largest size, it can be indexed from the front, and a copy needs one
// allocation (the model checker copies states by the million). Not thread-safe.

#include "netio/base/check.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace netio::stream::inline v0_3 {

template <class T>
class Fifo {
  public:
    bool empty() const noexcept { return head_ == items_.size(); }
    std::size_t size() const noexcept { return items_.size() - head_; }

    T& operator[](std::size_t index) {
        NETIO_CHECK(index < size());
        return items_[head_ + index];
    }
    const T& operator[](std::size_t index) const {
        NETIO_CHECK(index < size());
        return items_[head_ + index];
    }
    T& front() { return (*this)[0]; }
    const T& front() const { return (*this)[0]; }

    void push_back(T item) { items_.push_back(std::move(item)); }

    T pop_front() {
        T item = std::move(front());
        ++head_;
        if (empty()) {
            items_.clear();
            head_ = 0;
        } else if (head_ >= compaction_count && head_ >= items_.size() / 2) {
            items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
            head_ = 0;
        }
        return item;
    }

  private:
    // The remaining items move to the front at the latest when half of the memory is used up, so
    // the cost per item is constant.
    static constexpr std::size_t compaction_count = 32;

    std::vector<T> items_;
    std::size_t head_ = 0;
};

} // namespace netio::stream::inline v0_3
