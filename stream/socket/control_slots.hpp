// SPDX-License-Identifier: Apache-2.0
#pragma once

// ControlSlots: registered memory for the control messages that are under way at once. Outlives
// the session that sends from it.

#include "stream/socket/frames.hpp"

#include "netio/memory/buffer.hpp"

#include <cstdint>
#include <vector>

namespace netio::stream::inline v0_2 {

class ControlSlots {
  public:
    ControlSlots() {
        for (std::uint32_t i = 0; i < control_slot_count; ++i)
            free_.push_back(i);
    }

    bool has_free() const noexcept { return !free_.empty(); }
    // The slot that take() will take, with room for control_limit_bytes.
    Slice next() { return memory_.slice(free_.back() * control_limit_bytes, control_limit_bytes); }
    std::uint32_t take() {
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        return slot;
    }
    void release(std::uint32_t slot) { free_.push_back(slot); }

  private:
    RegisteredBuffer memory_{control_slot_count * control_limit_bytes, Access::send};
    std::vector<std::uint32_t> free_;
};

} // namespace netio::stream::inline v0_2
