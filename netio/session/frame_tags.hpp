// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which frames carry a tag with `peers` (docs/wire-formats.md, "Tags"): those that change what a
// session is, or what its service does for the peer. Both sides tell it by the kind alone.

#include "netio/access/tagger.hpp"
#include "netio/base/frame.hpp"

#include <cstdint>
#include <span>

namespace netio::inline v0_2 {

constexpr bool carries_tag(std::uint8_t kind) noexcept {
    const auto own = static_cast<FrameKind>(kind);
    return own == FrameKind::open || own == FrameKind::shutdown || own == FrameKind::shutdown_ack ||
           kind >= first_state_kind;
}

// Of what the peer sends.
class FrameTagChecker {
  public:
    explicit FrameTagChecker(const access::Secret& key) : checker_{key} {}

    // Takes the tag off a frame that has to have one. False: it is not the right one.
    [[nodiscard]] bool take_off(std::span<const std::byte>& frame) {
        if (!carries_tag(std::to_integer<std::uint8_t>(frame[0]))) return true;
        if (frame.size() < frame_header_bytes + access::frame_tag_bytes) return false;
        const auto tag = frame.last<access::frame_tag_bytes>();
        frame = frame.first(frame.size() - tag.size());
        return checker_.check(frame.first(frame_header_bytes), frame.subspan(frame_header_bytes),
                              tag);
    }

  private:
    access::TagChecker checker_;
};

} // namespace netio::inline v0_2
