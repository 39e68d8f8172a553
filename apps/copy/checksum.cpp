// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/checksum.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
// Uses the layout of the library's state, which is not guaranteed; ZeroBlocks checks it before use.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

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
    if (!done) throw std::runtime_error{"the system's libcrypto does not provide SHA-256"};
}

ChunkDigest canonical(const XXH128_hash_t& hash) {
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, hash);
    ChunkDigest digest;
    std::ranges::transform(bytes.digest, digest.begin(),
                           [](unsigned char b) { return std::byte{b}; });
    return digest;
}

constexpr std::array<std::byte, 65536> zeros{};

// Processes a run of zeros in XXH3 quickly (doc/xxhash_spec.md of xxHash): a stripe of zeros adds
// constants to the accumulators, so a block of 1024 bytes is one addition and one scrambling.
class ZeroBlocks {
  public:
    static constexpr std::uint64_t bytes = 1024;

    // After this many zeros the state's buffer has only zeros.
    static constexpr std::uint64_t lead_in_bytes = 1024;
    static void add(XXH3_state_t& state, std::uint64_t count) {
        const unsigned char* const secret =
            state.extSecret != nullptr ? state.extSecret : state.customSecret;
        Lanes before{};
        Lanes after{};
        for (std::size_t stripe = 0; stripe < state.nbStripesPerBlock; ++stripe) {
            Lanes& sum = stripe < state.nbStripesSoFar ? after : before;
            for (std::size_t lane = 0; lane < sum.size(); ++lane) {
                const std::uint64_t key = load(secret + 8 * (stripe + lane));
                sum[lane] += (key & 0xffffffffU) * (key >> 32U);
            }
        }
        Lanes sums;
        Lanes steps;
        Lanes keys;
        for (std::size_t lane = 0; lane < sums.size(); ++lane) {
            sums[lane] = state.acc[lane] - after[lane];
            steps[lane] = before[lane] + after[lane];
            keys[lane] = load(secret + state.secretLimit + 8 * lane);
        }
        for (const std::size_t first : {0U, 4U})
            run_four(sums, steps, keys, first, count);
        for (std::size_t lane = 0; lane < sums.size(); ++lane)
            sums[lane] += after[lane];
        std::ranges::copy(sums, state.acc);
        state.totalLen += count * bytes;
    }
    // Returns whether the library in use has the expected layout.
    static bool works() {
        static const bool well = try_it();
        return well;
    }

  private:
    using Lanes = std::array<std::uint64_t, 8>;

    // Processes as many lanes as fit into registers, which is three times as fast as all eight at
    // once.
    static void run_four(Lanes& sums, const Lanes& steps, const Lanes& keys, std::size_t first,
                         std::uint64_t count) {
        const auto mix = [](std::uint64_t& sum, std::uint64_t step, std::uint64_t key) {
            sum += step;
            sum = (sum ^ (sum >> 47U) ^ key) * 0x9E3779B1U;
        };
        std::uint64_t a = sums[first];
        std::uint64_t b = sums[first + 1];
        std::uint64_t c = sums[first + 2];
        std::uint64_t d = sums[first + 3];
        const std::array<std::uint64_t, 4> step{steps[first], steps[first + 1], steps[first + 2],
                                                steps[first + 3]};
        const std::array<std::uint64_t, 4> key{keys[first], keys[first + 1], keys[first + 2],
                                               keys[first + 3]};
        for (std::uint64_t block = 0; block < count; ++block) {
            mix(a, step[0], key[0]);
            mix(b, step[1], key[1]);
            mix(c, step[2], key[2]);
            mix(d, step[3], key[3]);
        }
        sums[first] = a;
        sums[first + 1] = b;
        sums[first + 2] = c;
        sums[first + 3] = d;
    }
    static std::uint64_t load(const unsigned char* from) {
        std::uint64_t value = 0;
        for (unsigned at = 0; at < 8; ++at)
            value |= std::uint64_t{from[at]} << 8U * at;
        return value;
    }
    static bool try_it() {
        for (const std::size_t head : {0U, 1U, 63U, 256U, 257U, 1000U, 1024U, 5000U}) {
            XXH3_state_t quick; // NOLINT(cppcoreguidelines-pro-type-member-init): reset
            XXH3_128bits_reset(&quick);
            const std::vector<std::byte> other(head, std::byte{0x5a});
            XXH3_128bits_update(&quick, other.data(), other.size());
            XXH3_128bits_update(&quick, zeros.data(), lead_in_bytes);
            XXH3_state_t slow = quick;
            if (quick.nbStripesPerBlock * 64 != bytes) return false;
            add(quick, 7);
            XXH3_128bits_update(&slow, zeros.data(), 7 * bytes);
            for (XXH3_state_t* const each : {&quick, &slow})
                XXH3_128bits_update(each, other.data(), other.size());
            const XXH128_hash_t one = XXH3_128bits_digest(&quick);
            const XXH128_hash_t two = XXH3_128bits_digest(&slow);
            if (XXH128_isEqual(one, two) == 0) return false;
        }
        return true;
    }
};

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

void Checksum::add_zeros(std::uint64_t bytes, const std::stop_token& stop) {
    // Bytes processed between two checks of the stop token: at most one second.
    const std::uint64_t step = std::uint64_t{1} << (state_->sha256 ? 27U : 34U);
    while (bytes > 0) {
        if (stop.stop_requested()) throw std::runtime_error{"interrupted"};
        const std::uint64_t some = std::min(bytes, step);
        add_some_zeros(some);
        bytes -= some;
    }
}

void Checksum::add_some_zeros(std::uint64_t bytes) {
    const auto add_plainly = [this](std::uint64_t count) {
        for (; count > 0; count -= std::min<std::uint64_t>(count, zeros.size()))
            add(std::span{zeros}.first(std::min<std::uint64_t>(count, zeros.size())));
    };
    if (state_->sha256 || bytes < 2 * ZeroBlocks::lead_in_bytes || !ZeroBlocks::works())
        return add_plainly(bytes);
    add_plainly(ZeroBlocks::lead_in_bytes);
    bytes -= ZeroBlocks::lead_in_bytes;
    ZeroBlocks::add(*state_->xxh3, bytes / ZeroBlocks::bytes);
    add_plainly(bytes % ZeroBlocks::bytes);
}

Digest Checksum::digest() const {
    Digest digest{};
    if (state_->sha256) {
        const Sha256 copy = make_sha256(); // finishing invalidates a state
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
