// SPDX-License-Identifier: Apache-2.0
#pragma once

// Protection of the frames of a session (docs/wire-formats.md, "Tags" and "Seals"). With `peers`,
// frames that change a session's state have a tag of 8 bytes; with `integrity`, every frame has a
// tag of 16 bytes; with `privacy`, everything but the header is encrypted as well. Both sides
// derive from the level and the frame's kind what a frame must have. A frame that was modified,
// removed, repeated or reordered does not open, nor does any frame after it. One object for each
// direction; no I/O.

#include "netio/access/auth.hpp"
#include "netio/access/crypto.hpp"
#include "netio/base/frame.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

namespace netio::access::inline v0_3 {

inline constexpr std::size_t frame_tag_bytes = 8;

// Bytes after the largest frame, beyond the announced size of the receive buffers.
constexpr std::size_t seal_bytes(Protection level) noexcept {
    if (level == Protection::none) return 0;
    return level == Protection::peers ? frame_tag_bytes : seal_tag_bytes;
}

// Whether every frame is sealed, with keys that are exchanged before the first frame.
constexpr bool seals_all(Protection level) noexcept {
    return level >= Protection::integrity;
}

// --- tags of single frames: `peers` ---------------------------------------------------------

using FrameTag = std::array<std::byte, frame_tag_bytes>;

// A tag covers the frame and its number among the frames with a tag. Each direction has its own
// key.
class Tagger {
  public:
    static constexpr std::size_t parts_limit = 31;

    explicit Tagger(const Secret& key) noexcept : key_{key} {}

    // Computes the tag of the next frame: the concatenation of at most parts_limit parts.
    FrameTag next(std::span<const Bytes> parts);
    FrameTag next(Bytes header, Bytes body) {
        const std::array parts{header, body};
        return next(parts);
    }

  private:
    Secret key_;
    std::uint64_t next_ = 0; // with a frame each nanosecond it would wrap after 584 years
};

class TagChecker {
  public:
    explicit TagChecker(const Secret& key) noexcept : tagger_{key} {}

    // Returns false if this is not the peer's next frame. The session must end; every later check
    // fails.
    [[nodiscard]] bool check(Bytes header, Bytes body, Bytes tag) {
        failed_ = failed_ || !same_bytes(tagger_.next(header, body), tag);
        return !failed_;
    }

  private:
    Tagger tagger_;
    bool failed_ = false;
};

// --- numbered records: `integrity` and `privacy` --------------------------------------------

// How long a key is used. The nonces continue after a change, so no two records ever have the same
// one. With these limits, an attacker's advantage due to the number of blocks stays below 2^-60 for
// either cipher.
struct KeyLife {
    std::uint64_t bytes = std::uint64_t{1} << 34;
    std::uint64_t records = std::uint64_t{1} << 28;
};

// The key and the number of the next record; the same on both sides.
class RecordCount {
  public:
    // The largest number is the nonce of key changes.
    static constexpr std::uint64_t limit = ~std::uint64_t{0};

    RecordCount(Cipher cipher, const Secret& key, const KeyLife& life, std::uint64_t first)
        : aead_{cipher, key}, life_{life}, next_{first} {}

    bool is_used_up() const noexcept { return next_ == limit; }
    Aead& aead() noexcept { return aead_; }
    std::uint64_t number() const noexcept { return next_; }
    std::uint64_t keys() const noexcept { return keys_; }
    // Call it when a record of this size was sealed or opened.
    void advance(std::uint64_t bytes);

  private:
    Aead aead_;
    KeyLife life_;
    std::uint64_t next_;
    std::uint64_t bytes_ = 0;   // with this key
    std::uint64_t records_ = 0; // with this key
    std::uint64_t keys_ = 1;
};

class Sealer {
  public:
    Sealer(Cipher cipher, const Secret& key, const KeyLife& life = {}, std::uint64_t first = 0)
        : count_{cipher, key, life, first} {}

    // Encrypts the concatenation of `plain`. Returns false and does nothing if no number is left;
    // the session must end.
    [[nodiscard]] bool seal(Bytes header, std::span<const Bytes> plain, std::span<std::byte> out);
    [[nodiscard]] bool seal(Bytes header, Bytes plain, std::span<std::byte> out) {
        return seal(header, {&plain, 1}, out);
    }
    // The same for a record that stays unencrypted: computes its tag.
    [[nodiscard]] bool tag(std::span<const Bytes> parts, std::span<std::byte, seal_tag_bytes> tag);
    std::uint64_t keys() const noexcept { return count_.keys(); }

  private:
    RecordCount count_;
};

class Opener {
  public:
    Opener(Cipher cipher, const Secret& key, const KeyLife& life = {}, std::uint64_t first = 0)
        : count_{cipher, key, life, first} {}

    // Returns false and wipes `out` if this is not the peer's next record. The session must end;
    // every later record fails.
    [[nodiscard]] bool open(Bytes header, Bytes sealed, std::span<std::byte> out);
    [[nodiscard]] bool check(std::span<const Bytes> parts, Bytes tag);
    bool has_failed() const noexcept { return failed_; }
    std::uint64_t keys() const noexcept { return count_.keys(); }

  private:
    RecordCount count_;
    bool failed_ = false;
};

// --- frames ---------------------------------------------------------------------------------

// For outgoing frames.
class FrameSealer {
  public:
    explicit FrameSealer(const Tagger& tags) : how_{tags} {}
    // `level`: integrity or privacy.
    FrameSealer(Protection level, Sealer sealer)
        : how_{std::move(sealer)}, encrypts_{level == Protection::privacy} {}

    // Bytes after the body of a frame of this kind.
    std::size_t bytes_behind(std::uint8_t kind) const noexcept;
    // Whether the body is encrypted, and so has to be copied.
    bool encrypts() const noexcept { return encrypts_; }
    // To be called once for each frame, in sending order. Writes to `out` what follows the header:
    // the encrypted body with its tag, or the tag alone if the body is not encrypted. Returns false
    // if no number is left; the session must end.
    [[nodiscard]] bool seal(std::span<const Bytes> header_and_body, std::span<std::byte> out);

  private:
    std::variant<Tagger, Sealer> how_;
    bool encrypts_ = false;
};

// For arriving frames.
class FrameOpener {
  public:
    explicit FrameOpener(const TagChecker& tags) : how_{tags} {}
    FrameOpener(Protection level, Opener opener)
        : how_{std::move(opener)}, decrypts_{level == Protection::privacy} {}

    // To be called once for each frame, in order of arrival. Decrypts in place and removes the tag
    // from `frame`. Returns false if this is not the peer's next frame.
    [[nodiscard]] bool open(std::span<std::byte>& frame);

  private:
    std::variant<TagChecker, Opener> how_;
    bool decrypts_ = false;
};

// --- the exchange of session keys -----------------------------------------------------------

// The two Noise messages at the beginning of a session with `integrity` or `privacy`. The
// connecting side sends the first, the accepting side answers; then both have new keys that no file
// stores. They agree only if both sides saw the same authentication.
// Each message also announces after how many bytes its sender changes its key.
class KeyExchange {
  public:
    using Side = NoiseHandshake::Side;
    static constexpr std::size_t message_bytes = NoiseHandshake::overhead + sizeof(std::uint64_t);
    using Message = std::array<std::byte, message_bytes>;
    static constexpr std::uint64_t most_key_bytes = KeyLife{}.bytes;

    struct Terms {
        Protection level = Protection::integrity;
        Cipher cipher = Cipher::aes_256_gcm;
        std::uint64_t key_bytes = most_key_bytes; // of what this side sends
    };
    KeyExchange(Side side, const Terms& terms, const AuthKeys& keys);

    // This side's message, once; the accepting side calls it after hear().
    Message say();
    // Reads the peer's message. Returns false if it is from another sender or was modified.
    [[nodiscard]] bool hear(std::span<const std::byte> message);
    // Whether the exchange succeeded, after both messages. It fails if the peer chose its part so
    // that no shared secret exists.
    bool is_complete() const noexcept { return noise_.result().has_value(); }
    // Only if complete.
    FrameSealer sealer() const;
    FrameOpener opener() const;

  private:
    Side side_;
    Terms terms_;
    NoiseHandshake noise_;
    std::uint64_t peer_key_bytes_ = 0;
};

} // namespace netio::access::inline v0_3
