// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of a session's own for the frames that are in the fabric's hands: by slot, room for a
// header with a small body and a tag, and more where a frame is gathered or encrypted. What is more
// comes out of a budget that all sessions of a transport share, and goes back when the frame has
// left; a little of it is kept for the next ones.

#include "netio/access/aead.hpp"
#include "netio/base/byte_budget.hpp"
#include "netio/base/frame.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/session/frames.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace netio::inline v0_2 {

class SlotMemory {
  public:
    // Where in a slot the tag of a frame lies whose body lies elsewhere.
    static constexpr std::size_t tag_at = frame_header_bytes + frame_extension_limit;

    SlotMemory(std::size_t slot_count, ByteBudget& budget)
        : heads_{slot_count * slot_bytes}, gathers_(slot_count), budget_{budget}, share_{budget} {
        kept_.reserve(slot_count);
    }

    // Before there is an endpoint: what cannot be registered is found out then.
    void register_in(MemoryDomain& domain) { heads_.registration(domain); }
    Slice head(std::uint32_t slot) noexcept { return heads_.slice(slot * slot_bytes, slot_bytes); }
    // For a slot that has nothing. Grows with what is gathered here, not with what the peer says
    // that it takes. Null: there is no memory while others of the session's slots have some; one
    // always may, and what is small: who was told that a session can send counts on that.
    RegisteredBuffer* gather(std::uint32_t slot, std::size_t bytes, std::size_t limit) {
        Buffer memory = take_kept();
        if (!memory || memory->size() < bytes) {
            const std::size_t twice = memory ? 2 * memory->size() : frame_extension_limit;
            drop(memory);
            memory = allocate(std::max(bytes, std::min(twice, limit)));
        }
        is_short_ = memory == nullptr;
        if (is_short_) return nullptr;
        ++used_count_;
        gathers_[slot] = std::move(memory);
        return gathers_[slot].get();
    }
    // What was gathered for the slot is not used any more.
    void release(std::uint32_t slot) noexcept {
        Buffer memory = std::move(gathers_[slot]);
        if (!memory) return;
        --used_count_;
        is_short_ = false;
        const bool is_scarce = budget_.left() <= budget_.limit() / 2;
        if (is_scarce || kept_bytes_ + memory->size() > kept_limit) return drop(memory);
        kept_bytes_ += memory->size();
        kept_.push_back(std::move(memory));
    }
    // There was no memory, and nothing has been released since.
    bool is_short() const noexcept { return is_short_; }
    // Gathered, or kept for what comes next.
    std::size_t held() const noexcept { return share_.held(); }

  private:
    using Buffer = std::unique_ptr<RegisteredBuffer>;
    static constexpr std::size_t slot_bytes = tag_at + access::seal_tag_bytes;
    static constexpr std::size_t small_bytes = 4096;
    static constexpr std::size_t kept_limit = std::size_t{4} * 1024 * 1024;

    Buffer take_kept() noexcept {
        if (kept_.empty()) return nullptr;
        Buffer memory = std::move(kept_.back());
        kept_.pop_back();
        kept_bytes_ -= memory->size();
        return memory;
    }
    void drop(Buffer& memory) noexcept {
        if (memory) share_.give(memory->size());
        memory.reset();
    }
    Buffer allocate(std::size_t bytes) {
        while (used_count_ > 0 && bytes > small_bytes && !share_.has_fairly(bytes)) {
            Buffer kept = take_kept();
            if (!kept) return nullptr;
            drop(kept);
        }
        auto memory = std::make_unique<RegisteredBuffer>(bytes, Access::send);
        share_.take_anyway(bytes);
        return memory;
    }

    RegisteredBuffer heads_;
    std::vector<Buffer> gathers_; // by slot
    std::vector<Buffer> kept_;
    std::size_t kept_bytes_ = 0;
    std::size_t used_count_ = 0;
    bool is_short_ = false;
    ByteBudget& budget_;
    ByteShare share_;
};

} // namespace netio::inline v0_2
