// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of a session's own for the frames that are in the fabric's hands: by slot, room for a
// header with a small body and a tag, and more where a frame is gathered or encrypted. What is more
// is as large as was needed so far.

#include "netio/access/aead.hpp"
#include "netio/base/frame.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/session/frames.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace netio::inline v0_2 {

class SlotMemory {
  public:
    // Where in a slot the tag of a frame lies whose body lies elsewhere.
    static constexpr std::size_t tag_at = frame_header_bytes + frame_extension_limit;

    explicit SlotMemory(std::size_t slot_count)
        : heads_{slot_count * slot_bytes}, gathers_(slot_count) {}

    // Before there is an endpoint: what cannot be registered is found out then.
    void register_in(MemoryDomain& domain) { heads_.registration(domain); }
    Slice head(std::uint32_t slot) noexcept { return heads_.slice(slot * slot_bytes, slot_bytes); }
    // Grows with what is gathered here, not with what the peer says that it takes.
    RegisteredBuffer& gather(std::uint32_t slot, std::size_t bytes, std::size_t limit) {
        std::unique_ptr<RegisteredBuffer>& memory = gathers_[slot];
        if (!memory || memory->size() < bytes) {
            const std::size_t twice = memory ? 2 * memory->size() : frame_extension_limit;
            memory = std::make_unique<RegisteredBuffer>(std::max(bytes, std::min(twice, limit)),
                                                        Access::send);
        }
        return *memory;
    }

  private:
    static constexpr std::size_t slot_bytes = tag_at + access::seal_tag_bytes;

    RegisteredBuffer heads_;
    std::vector<std::unique_ptr<RegisteredBuffer>> gathers_;
};

} // namespace netio::inline v0_2
