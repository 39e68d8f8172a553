// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the frames of a session are protected (docs/wire-formats.md, "Tags" and "Seals"): with
// `peers` those that change something have a tag, with `integrity` all have one, with `privacy` all
// are encrypted, but for their headers. Either side tells by the level and a frame's kind what it
// has to have. One object for each direction; no I/O, and no memory of its own.

#include "netio/access/record_seal.hpp"
#include "netio/access/tagger.hpp"
#include "netio/base/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

namespace netio::inline v0_2 {

// Behind the largest frame, beyond what receive buffers are said to hold.
constexpr std::size_t seal_bytes(access::Protection level) noexcept {
    if (level == access::Protection::none) return 0;
    return level == access::Protection::peers ? access::frame_tag_bytes : access::seal_tag_bytes;
}

// Every frame is sealed, and there is a handshake before the first.
constexpr bool seals_all(access::Protection level) noexcept {
    return level >= access::Protection::integrity;
}

// Of what is sent.
class FrameSealer {
  public:
    explicit FrameSealer(const access::Tagger& tags) : how_{tags} {}
    // `level`: integrity or privacy.
    FrameSealer(access::Protection level, access::Sealer sealer)
        : how_{std::move(sealer)}, encrypts_{level == access::Protection::privacy} {}

    // Bytes that a frame of this kind has behind its body.
    std::size_t bytes_behind(std::uint8_t kind) const noexcept;
    // The body has to be copied, since it travels as something else.
    bool encrypts() const noexcept { return encrypts_; }
    // Once for each frame, in the order of sending. `out`: what is put behind the header; only the
    // tag, if the body travels as it is. False: no number is left, the session has to end.
    [[nodiscard]] bool seal(std::span<const access::Bytes> header_and_body,
                            std::span<std::byte> out);

  private:
    std::variant<access::Tagger, access::Sealer> how_;
    bool encrypts_ = false;
};

// Of what arrives.
class FrameOpener {
  public:
    explicit FrameOpener(const access::TagChecker& tags) : how_{tags} {}
    FrameOpener(access::Protection level, access::Opener opener)
        : how_{std::move(opener)}, decrypts_{level == access::Protection::privacy} {}

    // Once for each frame, in the order of arrival. What is sealed is opened where it lies, and
    // `frame` is what the peer has sealed then. False: the peer has not sent this, or not now.
    [[nodiscard]] bool open(std::span<std::byte>& frame);

  private:
    std::variant<access::TagChecker, access::Opener> how_;
    bool decrypts_ = false;
};

} // namespace netio::inline v0_2
