// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cryptographic primitives of authentication and sealing, from libcrypto: secrets, SHA-256,
// HMAC, HKDF, and two ciphers that detect modification. libcrypto's headers stay in the source
// file.

#include "netio/access/protection.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct evp_cipher_ctx_st; // of libcrypto

namespace netio::access::inline v0_3 {

using Bytes = std::span<const std::byte>;
Bytes as_bytes(std::string_view text) noexcept;

// Compares in constant time. Returns false if the sizes differ.
bool same_bytes(Bytes one, Bytes other) noexcept;
// Overwrites with zeros; the compiler does not remove this as a dead store.
void wipe(std::span<std::byte> bytes) noexcept;
// Throws std::system_error.
void fill_randomly(std::span<std::byte> bytes);

// --- secrets --------------------------------------------------------------------------------

inline constexpr std::size_t secret_bytes = 32;

// 256 secret bits. The destructor wipes them.
class Secret {
  public:
    Secret() = default; // all zeros: no secret
    explicit Secret(std::span<const std::byte, secret_bytes> bytes) noexcept;
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;
    ~Secret();

    // A secret from the system's generator. Throws std::system_error.
    static Secret random();
    // The text form in a key file: "nk1-", 64 hexadecimal digits, and 8 digits of a checksum that
    // detects typing errors. Returns `nullopt` for any other text.
    static std::optional<Secret> parse(std::string_view text);
    std::string text() const;
    // Eight digits to compare two files without showing the secret.
    std::string fingerprint() const;

    std::span<const std::byte, secret_bytes> bytes() const noexcept { return bytes_; }
    // Compares in constant time.
    friend bool operator==(const Secret& one, const Secret& other) noexcept;

  private:
    std::array<std::byte, secret_bytes> bytes_{};
};

// --- digests --------------------------------------------------------------------------------

inline constexpr std::size_t digest_bytes = 32;
using Digest = std::array<std::byte, digest_bytes>;

// The input is the concatenation of the parts.
Digest sha256(std::initializer_list<Bytes> parts);
Digest hmac_sha256(Bytes key, std::span<const Bytes> parts);
inline Digest hmac_sha256(Bytes key, std::initializer_list<Bytes> parts) {
    return hmac_sha256(key, std::span{parts.begin(), parts.size()});
}
// Derives two keys from a chaining key and input, as Noise defines HKDF; a third one if `third` is
// given.
std::pair<Secret, Secret> hkdf(const Secret& chaining_key, Bytes input, Secret* third = nullptr);

// What a derived key is used for. A key of one purpose reveals nothing about the keys of the other
// purposes or about the secret (HKDF, RFC 5869, with the label as info).
enum class Purpose { auth, tag, psk };
Secret derive(const Secret& secret, Purpose purpose);

// --- authenticated encryption ---------------------------------------------------------------

inline constexpr std::size_t seal_tag_bytes = 16;
// Limit of one record: libcrypto counts in int.
inline constexpr std::size_t seal_limit_bytes = std::size_t{1} << 30;

// Whether this processor has instructions for AES. If not, the peer is asked to use the other
// cipher.
bool processor_has_aes() noexcept;

// AES-256-GCM or ChaCha20-Poly1305. Nonces are numbers, in the layout that Noise defines.
class Aead {
  public:
    Aead(Cipher cipher, const Secret& key) noexcept : cipher_{cipher}, key_{key} {}

    // Encrypts the concatenation of `plain`. `out` has the size of all parts plus seal_tag_bytes;
    // with a single part, `out` may begin where the part begins. A nonce must never be used twice.
    void seal(std::uint64_t nonce, std::span<const Bytes> associated, std::span<const Bytes> plain,
              std::span<std::byte> out);
    // Returns false and wipes `out` if `sealed` was not sealed with this key, nonce and associated
    // data. `out` has the size of `sealed` without the tag, and may begin where `sealed` begins.
    [[nodiscard]] bool open(std::uint64_t nonce, std::span<const Bytes> associated, Bytes sealed,
                            std::span<std::byte> out);
    // The successor of this key, as Noise defines it (11.3, REKEY).
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
    Context context_; // prepared for use_
    Use use_ = Use::seal;
};

} // namespace netio::access::inline v0_3

// Noise NNpsk0 (the Noise Protocol Framework, revision 34): two messages that give both sides
// session keys with forward secrecy, which the pre-shared key alone does not reveal later. The
// primitives are libcrypto's.
//
//     -> psk, e
//     <- e, ee

namespace netio::access::inline v0_3 {

// Diffie-Hellman on Curve25519 (RFC 7748).
using PublicKey = std::array<std::byte, 32>;
PublicKey x25519_public(const Secret& own);
// Returns `nullopt` if the peer's key is one of the few that give the same secret with every key.
std::optional<Secret> x25519(const Secret& own, const PublicKey& peer);

class NoiseHandshake {
  public:
    enum class Side { initiator, responder };
    // Bytes of a message beyond its payload.
    static constexpr std::size_t overhead = sizeof(PublicKey) + seal_tag_bytes;

    // `ephemeral` is random and used for this handshake only.
    NoiseHandshake(Side side, Cipher cipher, Bytes prologue, const Secret& psk,
                   const Secret& ephemeral);

    bool may_write() const noexcept;
    bool may_read() const noexcept;
    // Writes this side's message; only if may_write(). `out` has the size of the payload plus
    // `overhead`.
    void write(Bytes payload, std::span<std::byte> out);
    // Reads the peer's message; only if may_read(). Returns false if the peer does not have the key
    // or the message was modified; the handshake has then failed. `payload` has the size of the
    // message minus `overhead`.
    [[nodiscard]] bool read(Bytes message, std::span<std::byte> payload);

    struct Result {
        Secret up;   // key of what the initiator sends
        Secret down; // key of what the responder sends
        Digest hash; // of the whole handshake
    };
    // Set after both messages.
    const std::optional<Result>& result() const noexcept { return result_; }

  private:
    enum class Step { first, second, done, failed };

    bool is_initiator() const noexcept { return side_ == Side::initiator; }
    void mix_hash(Bytes data);
    void mix_key(Bytes input);
    void mix_key_and_hash(Bytes input);
    void mix_public(const PublicKey& key);
    [[nodiscard]] bool mix_shared();
    void advance();

    Side side_;
    Secret ephemeral_;
    PublicKey peer_{};
    Secret chaining_key_;
    Digest hash_{};
    Aead cipher_;
    Step step_ = Step::first;
    std::optional<Result> result_;
};

} // namespace netio::access::inline v0_3
