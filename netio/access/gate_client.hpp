// SPDX-License-Identifier: Apache-2.0
#pragma once

// The connecting side of the gate: what to say, and whether the answer comes from who has the key.
// One for each connection that is to be made, over all of its attempts. No I/O.

#include "netio/access/gate_transcript.hpp"
#include "netio/access/key_ring.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace netio::access::inline v0_2 {

class GateClient {
  public:
    struct Options {
        Protection protection = Protection::none;
        bool lacks_aes = false; // this processor has no instructions for it
    };
    // The key is this client's own.
    GateClient(const Key& key, const Options& options, const GateAddress& dialled)
        : key_{key}, flags_{.has_key = true,
                            .protection = options.protection,
                            .lacks_aes = options.lacks_aes},
          dialled_{dialled} {}

    // `data` begins with this side's hello and the service's data; its flag byte is set, and the
    // rest put behind. `nonce` is random, and another one each time. The number of bytes to connect
    // with.
    std::size_t request(std::span<std::byte, gate_request_bytes> data, const ClientNonce& nonce);

    enum class Next { again, give_up };
    // Rejected with code 8: connect again, unless this is no challenge, or one too many.
    Next take_challenge(Bytes rejection);
    // Rejected with code 9. Once, connect again: the server may have been started anew in between,
    // or this side was slow.
    Next take_refusal() noexcept;
    // Whether the last of these said `again`. Once.
    bool take_again() noexcept { return std::exchange(again_, false); }

    enum class Answer {
        genuine,
        unasked,          // nothing was proved, so nothing can be accepted
        no_proof,         // it cannot be from who has the key
        wrong_proof,      // it is not
        other_protection, // or another cipher than this side can
    };
    // Accepted. keys() are there if it is genuine, and never otherwise.
    Answer take_answer(Bytes data);
    const std::optional<GateKeys>& keys() const noexcept { return keys_; }
    Protection protection() const noexcept { return flags_.protection; }
    // Once accepted.
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
    GateFlags flags_;
    GateAddress dialled_;
    std::optional<Challenge> challenge_;
    std::optional<GateTranscript> transcript_; // of the second request that was made last
    std::optional<GateKeys> keys_;
    int challenges_ = 0;
    bool refused_before_ = false;
    bool again_ = false;
};

} // namespace netio::access::inline v0_2
