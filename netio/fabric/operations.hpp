// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table of operations that are in a provider's hands, one per completion queue. An operation
// is named towards the provider by a number (its `op_context`), made of a slot and the slot's
// generation, never by a pointer: completions arrive also after their connection was destroyed
// (libfabric's tcp reports the cancelled receives of a closed endpoint), and must find that out
// safely. Allocation stops when the table has grown to the most that was ever outstanding.

#include "netio/base/check.hpp"
#include "netio/transport.hpp"

#include <cstdint>
#include <vector>

namespace netio::fabric {

class Connection;

struct Operation {
    Connection* owner = nullptr; // null: free
    Cookie cookie{};
    Completion::Kind kind = Completion::Kind::send;
    bool outstanding = false;
    std::uint32_t generation = 0;
    // The connection's own operations form a list (most recent first); free slots another.
    std::uint32_t next = 0;
    std::uint32_t previous = 0;
};

class OperationTable {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    // Enters an operation at the head of its connection's list.
    std::uint32_t begin(Connection& owner, Completion::Kind kind, Cookie cookie,
                        std::uint32_t& list) {
        if (free_ == none) {
            free_ = static_cast<std::uint32_t>(slots_.size());
            slots_.push_back({.next = none, .previous = none});
        }
        const std::uint32_t index = free_;
        Operation& slot = slots_[index];
        free_ = slot.next;
        slot.owner = &owner;
        slot.cookie = cookie;
        slot.kind = kind;
        slot.outstanding = true;
        slot.previous = none;
        slot.next = list;
        if (list != none) slots_[list].previous = index;
        list = index;
        return index;
    }

    // Ends it: the slot is free for another operation, and its old name means nothing any more.
    void end(std::uint32_t index, std::uint32_t& list) noexcept {
        Operation& slot = slots_[index];
        if (slot.previous != none) slots_[slot.previous].next = slot.next;
        if (slot.next != none) slots_[slot.next].previous = slot.previous;
        if (list == index) list = slot.next;
        release(index);
    }

    // Without the list around it, as its connection gives all of them up. The provider may still
    // report it; its name means nothing then.
    void release(std::uint32_t index) noexcept {
        Operation& slot = slots_[index];
        slot.owner = nullptr;
        slot.outstanding = false;
        ++slot.generation;
        slot.next = free_;
        slot.previous = none;
        free_ = index;
    }

    // Never null, so that a completion without a context can be told apart.
    void* name_of(std::uint32_t index) const noexcept {
        const std::uint64_t number =
            (static_cast<std::uint64_t>(slots_[index].generation) << 32U) | (index + 1U);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the provider only hands it back
        return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
    }

    // The slot a name stands for, or `none` if that operation has ended.
    std::uint32_t find(const void* name) const noexcept {
        const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(name));
        const auto index = static_cast<std::uint32_t>(number) - 1U;
        if (index >= slots_.size() || !slots_[index].outstanding) return none;
        return slots_[index].generation == static_cast<std::uint32_t>(number >> 32U) ? index : none;
    }

    Operation& operator[](std::uint32_t index) noexcept { return slots_[index]; }
    std::size_t size() const noexcept { return slots_.size(); }

  private:
    std::vector<Operation> slots_;
    std::uint32_t free_ = none;
};

} // namespace netio::fabric
