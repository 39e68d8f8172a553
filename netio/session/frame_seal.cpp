// SPDX-License-Identifier: Apache-2.0
#include "netio/session/frame_seal.hpp"

#include <algorithm>

namespace netio::inline v0_2 {
namespace {

using access::Bytes;

// With `peers`: what changes what a session is, or what its service does for the peer.
bool carries_tag(std::uint8_t kind) noexcept {
    const auto own = static_cast<FrameKind>(kind);
    return own == FrameKind::open || own == FrameKind::shutdown || own == FrameKind::shutdown_ack ||
           own == FrameKind::window || kind >= first_state_kind;
}

} // namespace

std::size_t FrameSealer::bytes_behind(std::uint8_t kind) const noexcept {
    if (std::holds_alternative<access::Sealer>(how_)) return access::seal_tag_bytes;
    return carries_tag(kind) ? access::frame_tag_bytes : 0;
}

bool FrameSealer::seal(std::span<const Bytes> header_and_body, std::span<std::byte> out) {
    if (auto* const tags = std::get_if<access::Tagger>(&how_)) {
        std::ranges::copy(tags->next(header_and_body), out.begin());
        return true;
    }
    access::Sealer& sealer = std::get<access::Sealer>(how_);
    if (!encrypts_) return sealer.tag(header_and_body, out.first<access::seal_tag_bytes>());
    return sealer.seal(header_and_body.front(), header_and_body.subspan(1), out);
}

bool FrameOpener::open(std::span<std::byte>& frame) {
    const auto header = frame.first(frame_header_bytes);
    if (auto* const tags = std::get_if<access::TagChecker>(&how_)) {
        if (!carries_tag(std::to_integer<std::uint8_t>(frame[0]))) return true;
        if (frame.size() < frame_header_bytes + access::frame_tag_bytes) return false;
        const auto tag = frame.last(access::frame_tag_bytes);
        frame = frame.first(frame.size() - tag.size());
        return tags->check(header, frame.subspan(frame_header_bytes), tag);
    }
    if (frame.size() < frame_header_bytes + access::seal_tag_bytes) return false;
    access::Opener& opener = std::get<access::Opener>(how_);
    const auto tag = frame.last(access::seal_tag_bytes);
    const auto sealed = frame.subspan(frame_header_bytes);
    frame = frame.first(frame.size() - tag.size());
    if (decrypts_) return opener.open(header, sealed, frame.subspan(frame_header_bytes));
    const Bytes all{frame};
    return opener.check({&all, 1}, tag);
}

} // namespace netio::inline v0_2
