// SPDX-License-Identifier: Apache-2.0
#pragma once

// Authentication with a shared key before the peer has an endpoint (docs/wire-formats.md,
// "Authentication"): the messages, the proofs that both sides compute, the connecting side
// (AuthClient) and the listening side (AuthServer, AccessControl). No I/O; one thread.
//
//     request, first   28 hello and the service's data | 1 key id | 1 kind 0
//     challenge        12 rejection | 2 time slot | 16 the server's nonce
//     request, second  28 hello and the service's data | 1 key id | 1 kind 1 | 2 time slot
//                      | 7 the client's nonce | 16 the client's proof
//     answer           28 hello and the service's data | 16 the server's proof
//
// The client's proof covers everything before it, the server's nonce and the dialled address. The
// server's proof covers the answer and everything that the client's proof covers. Each begins with
// its own label, so one proof cannot be used as the other.

#include "netio/access/crypto.hpp"
#include "netio/access/host.hpp"
#include "netio/access/key_file.hpp"
#include "netio/access/peer_limiter.hpp"
#include "netio/access/protection.hpp"
#include "netio/base/time.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::access::inline v0_3 {

// --- messages -------------------------------------------------------------------------------

// The hello and the service's data after it.
inline constexpr std::size_t auth_hello_bytes = 28;
inline constexpr std::size_t auth_service_at = 6;
inline constexpr std::size_t auth_flags_at = 7;
inline constexpr std::size_t auth_instance_at = 16;

inline constexpr std::size_t auth_id_at = auth_hello_bytes;
inline constexpr std::size_t auth_kind_at = 29;
inline constexpr std::size_t auth_first_bytes = 30;
inline constexpr std::size_t auth_slot_at = 30;
inline constexpr std::size_t auth_nonce_at = 32;
inline constexpr std::size_t auth_proof_at = 39;
inline constexpr std::size_t auth_proof_bytes = 16;
inline constexpr std::size_t auth_request_bytes = auth_proof_at + auth_proof_bytes;
inline constexpr std::size_t auth_answer_bytes = auth_hello_bytes + auth_proof_bytes;
static_assert(auth_request_bytes == 55 && auth_answer_bytes == 44);

inline constexpr std::size_t auth_rejection_bytes = 12;
inline constexpr std::size_t server_nonce_bytes = 16;
inline constexpr std::size_t auth_challenge_bytes = auth_rejection_bytes + 2 + server_nonce_bytes;
static_assert(auth_challenge_bytes == 30);

enum class RequestKind : std::uint8_t { first = 0, second = 1 };

using ClientNonce = std::array<std::byte, auth_proof_at - auth_nonce_at>;
using ServerNonce = std::array<std::byte, server_nonce_bytes>;
using Proof = std::array<std::byte, auth_proof_bytes>;

// The keys of one connection, equal on both sides.
struct AuthKeys {
    Secret tags_up;   // for what the client sends
    Secret tags_down; // for what the server sends
    Secret psk;       // of the Noise handshake; the same for all connections of the key
    // The bytes of both requests and of the answer: the prologue of the Noise handshake.
    std::array<std::byte, auth_request_bytes + server_nonce_bytes + 18 + auth_answer_bytes>
        prologue{};
};

// The data that both sides share after the second request: computes proofs and keys.
class AuthTranscript {
  public:
    // `request`: the second request without its proof.
    AuthTranscript(std::span<const std::byte, auth_proof_at> request, const ServerNonce& nonce,
                   const AuthAddress& dialled) noexcept;

    Proof client_proof(const Secret& auth_key) const;
    Proof server_proof(const Secret& auth_key,
                       std::span<const std::byte, auth_hello_bytes> answer) const;
    AuthKeys keys(const Secret& secret, std::span<const std::byte, auth_hello_bytes> answer) const;

  private:
    std::array<std::byte, auth_proof_at> request_{};
    ServerNonce nonce_;
    std::array<std::byte, 18> dialled_{};
};

// --- the connecting side --------------------------------------------------------------------

// Builds the requests and verifies the answer. One object for each connection, used for all of its
// attempts.
class AuthClient {
  public:
    struct Options {
        Protection protection = Protection::none;
        bool lacks_aes = false; // this processor has no instructions for AES
    };
    AuthClient(const Key& key, const Options& options, const AuthAddress& dialled)
        : key_{key}, flags_{.has_key = true,
                            .protection = options.protection,
                            .lacks_aes = options.lacks_aes},
          dialled_{dialled} {}

    // Completes the request. `data` begins with this side's hello and the service's data. `nonce`
    // is random and different each time. Returns the number of bytes to send.
    std::size_t request(std::span<std::byte, auth_request_bytes> data, const ClientNonce& nonce);

    enum class Next { again, give_up };
    // Takes a rejection of the server with code 8 (prove_key). Returns `again` (connect again), or
    // `give_up` if it has no challenge or there were too many.
    Next take_challenge(Bytes rejection);
    // The server rejected with code 9. Returns `again` once: the server may have been restarted, or
    // this side was too slow.
    Next take_refusal() noexcept;
    // Whether the last of these returned `again`. Resets it.
    bool take_again() noexcept { return std::exchange(again_, false); }

    enum class Answer {
        genuine,
        unasked,          // this side sent no proof, so the server cannot have accepted
        no_proof,         // the answer has no proof
        wrong_proof,      // the server does not have the key
        other_protection, // another protection, or a cipher that this side cannot use
    };
    // The server accepted. Sets keys() only if the answer is genuine.
    Answer take_answer(Bytes data);
    const std::optional<AuthKeys>& keys() const noexcept { return keys_; }
    Protection protection() const noexcept { return flags_.protection; }
    // Valid once accepted.
    Cipher cipher() const noexcept {
        return flags_.lacks_aes ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm;
    }

  private:
    struct Challenge {
        std::uint16_t slot = 0;
        ServerNonce nonce{};
    };
    static constexpr int challenge_limit = 3;

    Key key_;
    AuthFlags flags_;
    AuthAddress dialled_;
    std::optional<Challenge> challenge_;
    std::optional<AuthTranscript> transcript_; // of the last second request
    std::optional<AuthKeys> keys_;
    int challenges_ = 0;
    bool refused_before_ = false;
    bool again_ = false;
};

// --- the listening side ---------------------------------------------------------------------

// Why a peer is not admitted. It is counted and logged here, and not disclosed to the peer.
enum class Refusal : std::uint8_t {
    none,
    malformed,
    unknown_key,
    wrong_proof, // or the peer dialled another address than the one it arrived at
    stale,       // the time slot is over, or belongs to an earlier run of this process
    replayed,
    protection_too_low,
    service_not_permitted,
    protection_not_here, // more than this version has
};
inline constexpr std::size_t refusal_count = 9;
std::string_view to_string(Refusal refusal) noexcept;

// Why a peer with a valid key has to retry later. The reason is not disclosed to the peer.
enum class Shortage : std::uint8_t {
    none,
    proofs, // the replay cache has no room for more proofs of this key
    links_of_key,
    links_of_host,
};

// The result of a successful authentication.
class AuthResult {
  public:
    // The peer has no key.
    AuthResult(const Key& anonymous, const AuthFlags& flags) : key_{anonymous}, flags_{flags} {}
    AuthResult(const Key& key, const AuthFlags& flags, const AuthTranscript& transcript)
        : key_{key}, flags_{flags}, transcript_{transcript} {}

    KeyId id() const noexcept { return key_.id; }
    const std::string& name() const noexcept { return key_.name; }
    const Rights& rights() const noexcept { return key_.rights; }
    Protection protection() const noexcept { return flags_.protection; }
    Cipher cipher() const noexcept {
        return flags_.lacks_aes ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm;
    }

    // Completes the answer. `data` begins with this side's hello and the service's data. Returns
    // the number of bytes to send.
    std::size_t answer(std::span<std::byte, auth_answer_bytes> data) const;
    // The keys, after answer() with the same bytes. Only for a peer with a key.
    AuthKeys keys(std::span<const std::byte, auth_answer_bytes> data) const;

  private:
    Key key_;
    AuthFlags flags_;
    std::optional<AuthTranscript> transcript_;
};

// Remembers the proofs of the current and the previous time slot; older ones are invalid because of
// their slot. Only valid proofs are remembered, so only holders of keys can fill the cache, and
// each key only its own part.
class ReplayCache {
  public:
    using Entry = std::array<std::byte, 16>; // key id, instance, the client's nonce
    enum class Seen { never, before, limit_reached };

    explicit ReplayCache(std::size_t limit_per_key) noexcept : limit_per_key_{limit_per_key} {}

    // Sets the current time slot, and forgets the entries before the previous slot.
    void advance(std::uint64_t slot) {
        if (slot == slot_) return;
        earlier_ = slot == slot_ + 1 ? std::move(current_) : Proofs{};
        current_ = Proofs{};
        slot_ = slot;
    }
    // `slot`: the current or the previous one.
    Seen remember(std::uint64_t slot, const Entry& entry) {
        Proofs& of_slot = slot == slot_ ? current_ : earlier_;
        if (of_slot.entries.contains(entry)) return Seen::before;
        const auto id = std::to_integer<KeyId>(entry[0]);
        if (current_.of_key[id] + earlier_.of_key[id] >= limit_per_key_) return Seen::limit_reached;
        of_slot.entries.insert(entry);
        ++of_slot.of_key[id];
        return Seen::never;
    }
    std::size_t size() const noexcept { return current_.entries.size() + earlier_.entries.size(); }

  private:
    struct Proofs {
        std::set<Entry> entries;
        std::array<std::size_t, 256> of_key{};
    };

    std::size_t limit_per_key_;
    std::uint64_t slot_ = 0;
    Proofs current_;
    Proofs earlier_;
};

// Judges the connection requests of peers. Keeps no state about peers that are not admitted. One
// object may serve several listeners of one thread.
class AuthServer {
  public:
    static constexpr std::chrono::seconds slot_length{8};

    struct Options {
        Protection min_protection = Protection::none; // required; above `none`, peers need a key
        Protection most = Protection::privacy;
        bool lacks_aes = false; // this processor has no instructions for AES
        // Proofs that are remembered per key for two slots: as many as it may have connections. 64
        // bytes each, so at most 64 MiB if the holders of 255 keys all attack.
        std::size_t proofs_per_key = 4096;
        // Addresses that clients dial where the network translates them to one of this machine.
        std::vector<AuthAddress> advertised_addresses{};
    };
    struct Request {
        Bytes data; // begins with the hello
        Host source{};
        AuthAddress dialled; // the local address of the connection
    };
    struct Verdict {
        enum class Outcome {
            admitted,
            challenged, // reject with code 8; `challenge` follows the 12 bytes
            refused,    // reject with code 9
            busy,       // reject with code 4: the peer may retry later
        };
        Outcome outcome = Outcome::refused;
        Refusal refusal = Refusal::none;
        Shortage shortage = Shortage::none;
        KeyId claimed = anyone;
        std::array<std::byte, auth_challenge_bytes - auth_rejection_bytes> challenge{};
        std::optional<AuthResult> admission;
    };
    struct Counters {
        std::uint64_t admitted = 0;
        std::uint64_t challenged = 0;
        std::uint64_t busy = 0;
        std::array<std::uint64_t, refusal_count> refused{};
    };

    // `boot` is random and used in this run only.
    AuthServer(const Secret& boot, const Options& options) noexcept;

    void use(KeyRing ring) { ring_ = std::move(ring); }
    Verdict judge(const Request& request, TimePoint now);
    // Call it if the peer that judge() admitted last exceeds a limit of connections: counts that
    // peer as busy instead of admitted.
    void reject_client() noexcept {
        --counters_.admitted;
        ++counters_.busy;
    }
    const Counters& counters() const noexcept { return counters_; }

  private:
    Verdict decide(const Request& request, std::uint64_t now_slot);
    Verdict admit_anonymous(const Request& request, const AuthFlags& flags) const;
    Verdict challenge(const Request& request, KeyId claimed, std::uint64_t slot) const;
    Verdict check_proof(const Request& request, const AuthFlags& flags, std::uint64_t now_slot);
    // Finds the dialled address that fits the peer's proof. Returns its transcript.
    std::optional<AuthTranscript> proved(const Request& request, const ServerNonce& nonce,
                                         const Secret& auth_key) const;
    ServerNonce nonce(const Request& request, KeyId claimed, std::uint64_t slot) const;

    Secret boot_;
    Secret stand_in_; // compared with the proof if there is no key
    Options options_;
    KeyRing ring_;
    ReplayCache used_;
    Counters counters_;
};

// All decisions of a listening side about admission: its key file, authentication, and the limits
// of connections per key and per host.
class AccessControl {
  public:
    struct Options {
        std::string key_file;
        Protection min_protection = Protection::none;
        Protection most = Protection::privacy;
        bool lacks_aes = false;                   // this processor has no instructions for AES
        std::uint32_t connections_per_host = 256; // simultaneous connections, whatever their keys
        std::vector<AuthAddress> advertised_addresses{}; // AuthServer::Options
    };

    // `boot` is random and used in this run only. Throws KeyFileError.
    AccessControl(const Options& options, KeySource& source, const Secret& boot);

    // Judges a connection request, and sets `slot` if the peer is admitted. The verdict is `busy`
    // if the key or the host has too many connections.
    AuthServer::Verdict judge(const AuthServer::Request& request, TimePoint now, PeerSlot& slot);

    struct News {
        std::vector<KeyId> revoked; // their connections must end
        std::string problem; // of the key file, once for each; the earlier keys stay in force
    };
    // Checks the key file; to be called periodically. Returns `nullopt` if nothing changed.
    std::optional<News> look();

    // Whether every peer needs a key.
    bool requires_key() const {
        return min_protection_ > Protection::none || find(anyone) == nullptr;
    }
    const Key* find(KeyId id) const { return file_.ring().find(id); }
    const AuthServer::Counters& counters() const noexcept { return server_.counters(); }
    const PeerLimiter& peers() const noexcept { return peers_; }

  private:
    Protection min_protection_;
    KeyFile file_;
    AuthServer server_;
    PeerLimiter peers_;
};

} // namespace netio::access::inline v0_3
