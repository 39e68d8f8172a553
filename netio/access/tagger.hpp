// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tags of frames that change a session's state, with `peers`: 8 bytes behind the frame, of the
// frame and its number among those that have one. A direction has a key of its own.

#include "netio/access/digest.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <cstdint>

namespace netio::access::inline v0_2 {

inline constexpr std::size_t frame_tag_bytes = 8;
using FrameTag = std::array<std::byte, frame_tag_bytes>;

class Tagger {
  public:
    explicit Tagger(const Secret& key) noexcept : key_{key} {}

    FrameTag next(Bytes header, Bytes body) {
        std::array<std::byte, 8> number{};
        wire::store(number.data(), next_++);
        const Digest digest = hmac_sha256(key_.bytes(), {number, header, body});
        FrameTag tag;
        std::copy_n(digest.begin(), tag.size(), tag.begin());
        return tag;
    }

  private:
    Secret key_;
    std::uint64_t next_ = 0; // at one in a nanosecond it would come round in 584 years
};

class TagChecker {
  public:
    explicit TagChecker(const Secret& key) noexcept : tagger_{key} {}

    // False: the peer has not sent this, or not now; the session has to end, and nothing is right
    // any more.
    [[nodiscard]] bool check(Bytes header, Bytes body, Bytes tag) {
        failed_ = failed_ || !same_bytes(tagger_.next(header, body), tag);
        return !failed_;
    }

  private:
    Tagger tagger_;
    bool failed_ = false;
};

} // namespace netio::access::inline v0_2
