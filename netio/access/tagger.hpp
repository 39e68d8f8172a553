// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tags of frames that change a session's state, with `peers`: 8 bytes behind the frame, of the
// frame and its number among those that have one. A direction has a key of its own.

#include "netio/access/digest.hpp"
#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <cstdint>

namespace netio::access::inline v0_2 {

inline constexpr std::size_t frame_tag_bytes = 8;
using FrameTag = std::array<std::byte, frame_tag_bytes>;

class Tagger {
  public:
    static constexpr std::size_t parts_limit = 31;

    explicit Tagger(const Secret& key) noexcept : key_{key} {}

    // Of the parts one behind the other; at most parts_limit of them.
    FrameTag next(std::span<const Bytes> parts) {
        std::array<std::byte, 8> number{};
        wire::store(number.data(), next_++);
        std::array<Bytes, parts_limit + 1> all{number};
        NETIO_CHECK(parts.size() <= parts_limit);
        std::ranges::copy(parts, all.begin() + 1);
        const Digest digest =
            hmac_sha256(key_.bytes(), std::span<const Bytes>{all}.first(parts.size() + 1));
        FrameTag tag;
        std::copy_n(digest.begin(), tag.size(), tag.begin());
        return tag;
    }
    FrameTag next(Bytes header, Bytes body) {
        const std::array parts{header, body};
        return next(parts);
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
