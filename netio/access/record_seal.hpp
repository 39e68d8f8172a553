// SPDX-License-Identifier: Apache-2.0
#pragma once

// The protection of what travels on one direction of a session, by counted records: with
// `integrity` a record travels in clear with a tag behind it, with `privacy` it is encrypted. A
// record that was changed, left out, repeated or moved is not opened, and none after it.

#include "netio/access/aead.hpp"

#include <cstdint>

namespace netio::access::inline v0_2 {

// How long a key is used. The nonces go on over a change, so no two records ever have the same one.
// With these, what an attacker gains by the number of blocks stays below 2^-60 for either cipher.
struct KeyLife {
    std::uint64_t bytes = std::uint64_t{1} << 34;
    std::uint64_t records = std::uint64_t{1} << 28;
};

// Which key and which number the next record has; the same on both sides.
class RecordCount {
  public:
    // The largest number stands for the change of a key.
    static constexpr std::uint64_t limit = ~std::uint64_t{0};

    RecordCount(Cipher cipher, const Secret& key, const KeyLife& life, std::uint64_t first)
        : aead_{cipher, key}, life_{life}, next_{first} {}

    bool is_used_up() const noexcept { return next_ == limit; }
    Aead& aead() noexcept { return aead_; }
    std::uint64_t number() const noexcept { return next_; }
    std::uint64_t keys() const noexcept { return keys_; }
    // A record of so many bytes was sealed or opened.
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

    // False: no number is left, and nothing was done; the session has to end.
    // `plain` in parts, one behind the other.
    [[nodiscard]] bool seal(Bytes header, std::span<const Bytes> plain, std::span<std::byte> out);
    [[nodiscard]] bool seal(Bytes header, Bytes plain, std::span<std::byte> out) {
        return seal(header, {&plain, 1}, out);
    }
    // Of a record in clear, which lies in several parts.
    [[nodiscard]] bool tag(std::span<const Bytes> parts, std::span<std::byte, seal_tag_bytes> tag);
    std::uint64_t keys() const noexcept { return count_.keys(); }

  private:
    RecordCount count_;
};

class Opener {
  public:
    Opener(Cipher cipher, const Secret& key, const KeyLife& life = {}, std::uint64_t first = 0)
        : count_{cipher, key, life, first} {}

    // False: it is not the next record of the peer; the session has to end, and nothing is opened
    // any more. `out` is wiped then.
    [[nodiscard]] bool open(Bytes header, Bytes sealed, std::span<std::byte> out);
    [[nodiscard]] bool check(std::span<const Bytes> parts, Bytes tag);
    bool has_failed() const noexcept { return failed_; }
    std::uint64_t keys() const noexcept { return count_.keys(); }

  private:
    RecordCount count_;
    bool failed_ = false;
};

} // namespace netio::access::inline v0_2
