// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores values under small numbers, which are reused: for instance the state of an operation in
// flight, found by the number that its completion carries.

#include "netio/base/check.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

template <class Value>
class SlotPool {
  public:
    // Stores the value and returns its number, valid until release(). Prefers the slot released
    // last, because it is still in the cache.
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
    // Removes the value from the pool and returns it.
    Value release(std::uint32_t slot) {
        NETIO_CHECK(slot < slots_.size());
        free_.push_back(slot);
        return std::exchange(slots_[slot], Value{});
    }

    Value& operator[](std::uint32_t slot) noexcept { return slots_[slot]; }
    const Value& operator[](std::uint32_t slot) const noexcept { return slots_[slot]; }
    std::size_t size() const noexcept { return slots_.size() - free_.size(); }
    // All numbers are below end(). A free slot contains Value{}.
    std::uint32_t end() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }

  private:
    std::vector<Value> slots_;
    std::vector<std::uint32_t> free_;
};

} // namespace netio::inline v0_3
