// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which proofs were used already, of this time slot and the one before: older ones are void by
// their slot. Only those whose proof was right are remembered, so only holders of keys can fill it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

namespace netio::access::inline v0_2 {

class ReplayMemory {
  public:
    using Entry = std::array<std::byte, 16>; // key id, instance, the client's nonce
    enum class Seen { never, before, no_room };

    explicit ReplayMemory(std::size_t limit) noexcept : limit_{limit} {}

    // Time goes on: only entries of this slot and the one before are asked for from now on.
    void advance(std::uint64_t slot) {
        if (slot == slot_) return;
        if (slot == slot_ + 1) {
            earlier_.swap(current_);
        } else {
            earlier_.clear();
        }
        current_.clear();
        slot_ = slot;
    }
    // `slot` is that of advance(), or the one before.
    Seen remember(std::uint64_t slot, const Entry& entry) {
        auto& of_slot = slot == slot_ ? current_ : earlier_;
        if (of_slot.contains(entry)) return Seen::before;
        if (current_.size() + earlier_.size() >= limit_) return Seen::no_room;
        of_slot.insert(entry);
        return Seen::never;
    }
    std::size_t size() const noexcept { return current_.size() + earlier_.size(); }

  private:
    std::size_t limit_;
    std::uint64_t slot_ = 0;
    std::set<Entry> current_;
    std::set<Entry> earlier_;
};

} // namespace netio::access::inline v0_2
