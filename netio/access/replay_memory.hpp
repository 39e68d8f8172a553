// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which proofs were used already, of this time slot and the one before: older ones are void by
// their slot. Only those whose proof was right are remembered, so only holders of keys can fill it,
// and each of them its own part.

#include "netio/access/key_ring.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace netio::access::inline v0_2 {

class ReplayMemory {
  public:
    using Entry = std::array<std::byte, 16>; // key id, instance, the client's nonce
    enum class Seen { never, before, no_room };

    // Of each key so many, so of all of them 255 times as many.
    explicit ReplayMemory(std::size_t limit_per_key) noexcept : limit_per_key_{limit_per_key} {}

    // Time goes on: only entries of this slot and the one before are asked for from now on.
    void advance(std::uint64_t slot) {
        if (slot == slot_) return;
        earlier_ = slot == slot_ + 1 ? std::move(current_) : Proofs{};
        current_ = Proofs{};
        slot_ = slot;
    }
    // `slot` is that of advance(), or the one before.
    Seen remember(std::uint64_t slot, const Entry& entry) {
        Proofs& of_slot = slot == slot_ ? current_ : earlier_;
        if (of_slot.entries.contains(entry)) return Seen::before;
        const auto id = std::to_integer<KeyId>(entry[0]);
        if (current_.of_key[id] + earlier_.of_key[id] >= limit_per_key_) return Seen::no_room;
        of_slot.entries.insert(entry);
        ++of_slot.of_key[id];
        return Seen::never;
    }
    std::size_t size() const noexcept { return current_.entries.size() + earlier_.entries.size(); }

  private:
    struct Proofs {
        std::set<Entry> entries;
        std::array<std::size_t, 256> of_key{};
    };

    std::size_t limit_per_key_;
    std::uint64_t slot_ = 0;
    Proofs current_;
    Proofs earlier_;
};

} // namespace netio::access::inline v0_2
