// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/checksum.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <new>
#include <stdexcept>

namespace apps::copy {
namespace {

struct FreeXxh3 {
    void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
};
struct FreeSha256 {
    void operator()(EVP_MD_CTX* state) const noexcept { EVP_MD_CTX_free(state); }
};
using Sha256 = std::unique_ptr<EVP_MD_CTX, FreeSha256>;

Sha256 make_sha256() {
    Sha256 state{EVP_MD_CTX_new()};
    if (!state) throw std::bad_alloc{};
    return state;
}

void require(bool done) {
    if (!done) throw std::runtime_error{"SHA-256 is refused by the system's libcrypto"};
}

ChunkDigest canonical(const XXH128_hash_t& hash) {
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, hash);
    ChunkDigest digest;
    std::ranges::transform(bytes.digest, digest.begin(),
                           [](unsigned char b) { return std::byte{b}; });
    return digest;
}

} // namespace

struct Checksum::State {
    std::unique_ptr<XXH3_state_t, FreeXxh3> xxh3;
    Sha256 sha256;
};

Checksum::Checksum(ChecksumKind kind) : kind_{kind}, state_{std::make_unique<State>()} {
    if (kind == ChecksumKind::sha256) {
        state_->sha256 = make_sha256();
    } else {
        state_->xxh3.reset(XXH3_createState());
        if (!state_->xxh3) throw std::bad_alloc{};
    }
    restart();
}

Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::restart() {
    if (state_->sha256) {
        require(EVP_DigestInit_ex(state_->sha256.get(), EVP_sha256(), nullptr) == 1);
    } else {
        XXH3_128bits_reset(state_->xxh3.get());
    }
}

void Checksum::add(std::span<const std::byte> bytes) {
    if (state_->sha256) {
        require(EVP_DigestUpdate(state_->sha256.get(), bytes.data(), bytes.size()) == 1);
    } else {
        XXH3_128bits_update(state_->xxh3.get(), bytes.data(), bytes.size());
    }
}

Digest Checksum::digest() const {
    Digest digest{};
    if (state_->sha256) {
        const Sha256 copy = make_sha256(); // finishing ends a state
        require(EVP_MD_CTX_copy_ex(copy.get(), state_->sha256.get()) == 1);
        std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
        require(EVP_DigestFinal_ex(copy.get(), bytes.data(), nullptr) == 1);
        std::transform(bytes.begin(), bytes.begin() + digest.size(), digest.begin(),
                       [](unsigned char b) { return std::byte{b}; });
    } else {
        std::ranges::copy(canonical(XXH3_128bits_digest(state_->xxh3.get())), digest.begin());
    }
    return digest;
}

ChunkDigest chunk_digest(std::span<const std::byte> bytes) {
    return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string to_hex(ChecksumKind kind, const Digest& digest) {
    const std::size_t size = kind == ChecksumKind::sha256 ? 32 : 16;
    std::string text;
    for (const std::byte b : std::span{digest}.first(size))
        text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
    return text;
}

std::string to_string(ChecksumKind kind) {
    return kind == ChecksumKind::sha256 ? "sha256" : "xxh3-128";
}

} // namespace apps::copy
