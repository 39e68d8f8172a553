// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which frames carry a tag with `peers` (docs/wire-formats.md, "Tags"): those that change what a
// session is, or what its service does for the peer. Both sides tell it by the kind alone.

#include "netio/access/tagger.hpp"
#include "netio/base/frame.hpp"
#include "netio/session/hello.hpp"

#include <cstdint>
#include <span>

namespace netio::inline v0_2 {

constexpr bool carries_tag(Service service, std::uint8_t kind) noexcept {
    if (kind < first_service_kind) {
        const auto own = static_cast<FrameKind>(kind);
        return own == FrameKind::open || own == FrameKind::shutdown ||
               own == FrameKind::shutdown_ack;
    }
    switch (service) {
    case Service::publish_subscribe:
        return kind >= 20 && kind <= 24; // subscribe to totals answer
    case Service::stream:
        return kind <= 17; // control, ring
    case Service::messages:
        break;
    }
    return false;
}

// Of what this side sends.
class FrameTagger {
  public:
    FrameTagger(Service service, const access::Secret& key) : service_{service}, tagger_{key} {}

    bool wants(std::uint8_t kind) const noexcept { return carries_tag(service_, kind); }
    access::FrameTag next(std::span<const std::byte> head, std::span<const std::byte> rest) {
        return tagger_.next(head, rest);
    }

  private:
    Service service_;
    access::Tagger tagger_;
};

// Of what the peer sends.
class FrameTagChecker {
  public:
    FrameTagChecker(Service service, const access::Secret& key)
        : service_{service}, checker_{key} {}

    // Takes the tag off a frame that has to have one. False: it is not the right one.
    [[nodiscard]] bool take_off(std::span<const std::byte>& frame) {
        if (!carries_tag(service_, std::to_integer<std::uint8_t>(frame[0]))) return true;
        if (frame.size() < frame_header_bytes + access::frame_tag_bytes) return false;
        const auto tag = frame.last<access::frame_tag_bytes>();
        frame = frame.first(frame.size() - tag.size());
        return checker_.check(frame.first(frame_header_bytes), frame.subspan(frame_header_bytes),
                              tag);
    }

  private:
    Service service_;
    access::TagChecker checker_;
};

} // namespace netio::inline v0_2
