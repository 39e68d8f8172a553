// SPDX-License-Identifier: Apache-2.0
#pragma once

// The listening side of the gate: who may have an endpoint. It says what to answer to the bytes of
// a connection request and keeps nothing of those who are not admitted. No I/O; one for each
// listener or for several, of one thread.

#include "netio/access/gate_transcript.hpp"
#include "netio/access/key_ring.hpp"
#include "netio/access/replay_memory.hpp"
#include "netio/base/time.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netio::access::inline v0_2 {

// Why a peer is not admitted. It is told none of this; it is counted, and logged here.
enum class Refusal : std::uint8_t {
    none,
    malformed,
    unknown_key,
    wrong_proof, // or the peer dialled another address than it was seen to arrive at
    stale,       // of a time slot that is over, or of an earlier run of this process
    replayed,
    protection_too_low,
    service_not_permitted,
    protection_not_here, // more than this version has
};
inline constexpr std::size_t refusal_count = 9;
std::string_view to_string(Refusal refusal) noexcept;

// Why a peer whose key is right has to come later. It is told that it has to, and not why.
enum class Shortage : std::uint8_t {
    none,
    proofs, // this key has been shown so often that no more can be remembered; of others they can
    links_of_key,
    links_of_host,
};

// One who was admitted.
class Admission {
  public:
    // Who has no key.
    Admission(const Key& visitor, const GateFlags& flags) : key_{visitor}, flags_{flags} {}
    Admission(const Key& key, const GateFlags& flags, const GateTranscript& transcript)
        : key_{key}, flags_{flags}, transcript_{transcript} {}

    KeyId id() const noexcept { return key_.id; }
    const std::string& name() const noexcept { return key_.name; }
    const Rights& rights() const noexcept { return key_.rights; }
    Protection protection() const noexcept { return flags_.protection; }
    Cipher cipher() const noexcept {
        return flags_.lacks_aes ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm;
    }

    // `data` begins with this side's hello and the service's data; its flag byte is set, and the
    // proof put behind. The number of bytes to answer with.
    std::size_t answer(std::span<std::byte, gate_answer_bytes> data) const;
    // After answer(), of the same bytes. Not of who has no key.
    GateKeys keys(std::span<const std::byte, gate_answer_bytes> data) const;

  private:
    Key key_;
    GateFlags flags_;
    std::optional<GateTranscript> transcript_;
};

class Gate {
  public:
    static constexpr std::chrono::seconds slot_length{8};

    struct Options {
        Protection least = Protection::none; // to be asked for; more than none: no visitors
        Protection most = Protection::privacy;
        bool lacks_aes = false; // this processor has no instructions for it
        // Proofs of one key that are remembered for two slots: as many as it may have connections.
        // 64 bytes each, so 64 MiB if the holders of 255 keys all mean harm.
        std::size_t proofs_per_key = 4096;
        // That clients dial where the network translates them to one of this machine's.
        std::vector<GateAddress> dialled_as{};
    };
    struct Request {
        Bytes data; // from the first byte of the hello on
        Host source{};
        GateAddress dialled; // by the peer, as it is seen here
    };
    struct Verdict {
        enum class Outcome {
            admitted,
            challenged, // reject with code 8 and `challenge` behind the 12 bytes
            refused,    // reject with code 9
            busy,       // reject with code 4: it may try again later
        };
        Outcome outcome = Outcome::refused;
        Refusal refusal = Refusal::none;
        Shortage shortage = Shortage::none;
        KeyId claimed = anyone;
        std::array<std::byte, gate_challenge_bytes - gate_rejection_bytes> challenge{};
        std::optional<Admission> admission;
    };
    struct Counters {
        std::uint64_t admitted = 0;
        std::uint64_t challenged = 0;
        std::uint64_t busy = 0;
        std::array<std::uint64_t, refusal_count> refused{};
    };

    // `boot` is random, and of this run only.
    Gate(const Secret& boot, const Options& options) noexcept;

    void use(KeyRing ring) { ring_ = std::move(ring); }
    Verdict judge(const Request& request, TimePoint now);
    // Who was admitted last finds no place.
    void turn_away() noexcept {
        --counters_.admitted;
        ++counters_.busy;
    }
    const Counters& counters() const noexcept { return counters_; }

  private:
    Verdict decide(const Request& request, std::uint64_t now_slot);
    Verdict admit_visitor(const Request& request, const GateFlags& flags) const;
    Verdict challenge(const Request& request, KeyId claimed, std::uint64_t slot) const;
    Verdict check_proof(const Request& request, const GateFlags& flags, std::uint64_t now_slot);
    // For the address of ours, of those it may have dialled, that its proof names.
    std::optional<GateTranscript> proved(const Request& request, const ServerNonce& nonce,
                                         const Secret& gate_key) const;
    ServerNonce nonce(const Request& request, KeyId claimed, std::uint64_t slot) const;

    Secret boot_;
    Secret stand_in_; // what a proof is compared with where there is no key
    Options options_;
    KeyRing ring_;
    ReplayMemory used_;
    Counters counters_;
};

} // namespace netio::access::inline v0_2
