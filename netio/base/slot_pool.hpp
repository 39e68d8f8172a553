// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values with small numbers for names, which are used again: what stands for an operation while it
// is under way, or for a place that somebody else keeps.

#include "netio/base/check.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

template <class Value>
class SlotPool {
  public:
    // The number of the value, until it is released. The lowest free one is not promised; the one
    // released last is still in the cache, and is taken first.
    std::uint32_t take(Value value) {
        if (free_.empty()) {
            slots_.push_back(std::move(value));
            return static_cast<std::uint32_t>(slots_.size() - 1);
        }
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        slots_[slot] = std::move(value);
        return slot;
    }
    // The value, which is gone from the pool.
    Value release(std::uint32_t slot) {
        NETIO_CHECK(slot < slots_.size());
        free_.push_back(slot);
        return std::exchange(slots_[slot], Value{});
    }

    Value& operator[](std::uint32_t slot) noexcept { return slots_[slot]; }
    const Value& operator[](std::uint32_t slot) const noexcept { return slots_[slot]; }
    std::size_t size() const noexcept { return slots_.size() - free_.size(); }
    // All numbers are below it. A free one stands for Value{}.
    std::uint32_t end() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }

  private:
    std::vector<Value> slots_;
    std::vector<std::uint32_t> free_;
};

} // namespace netio::inline v0_3
