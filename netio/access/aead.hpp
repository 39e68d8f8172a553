// SPDX-License-Identifier: Apache-2.0
#pragma once

// Encryption that notices every change, from libcrypto: AES-256-GCM and ChaCha20-Poly1305, with
// nonces that are numbers, laid out as Noise does it.

#include "netio/access/protection.hpp"
#include "netio/access/secret.hpp"

#include <cstdint>
#include <memory>

struct evp_cipher_ctx_st; // libcrypto's

namespace netio::access::inline v0_2 {

inline constexpr std::size_t seal_tag_bytes = 16;
// Of one record: libcrypto counts in int.
inline constexpr std::size_t seal_limit_bytes = std::size_t{1} << 30;

// Whether AES costs little here; otherwise the peer is asked for the other cipher.
bool processor_has_aes() noexcept;

class Aead {
  public:
    Aead(Cipher cipher, const Secret& key) noexcept : cipher_{cipher}, key_{key} {}

    // The parts of `plain`, one behind the other. `out` has the size of all of them and
    // seal_tag_bytes; where there is one part, it may begin where that does. Never twice with one
    // nonce.
    void seal(std::uint64_t nonce, std::span<const Bytes> associated, std::span<const Bytes> plain,
              std::span<std::byte> out);
    // False: it is not what was sealed with these, and `out` is wiped. `out` has the size of
    // `sealed` without the tag; it may begin where `sealed` does.
    [[nodiscard]] bool open(std::uint64_t nonce, std::span<const Bytes> associated, Bytes sealed,
                            std::span<std::byte> out);
    // The key that follows this one, as Noise defines it (11.3, REKEY).
    Secret next_key();

    Cipher cipher() const noexcept { return cipher_; }

  private:
    struct Free {
        void operator()(evp_cipher_ctx_st* context) const noexcept;
    };
    using Context = std::unique_ptr<evp_cipher_ctx_st, Free>;

    enum class Use { seal, open };
    evp_cipher_ctx_st* prepare(Use use, std::uint64_t nonce);

    Cipher cipher_;
    Secret key_;
    Context context_; // of the use that it was made for
    Use use_ = Use::seal;
};

} // namespace netio::access::inline v0_2
