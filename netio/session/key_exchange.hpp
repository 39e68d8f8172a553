// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two messages of Noise that a session with `integrity` or `privacy` begins with: the
// connecting side says something, the accepting side answers, and both have keys that are of this
// session alone and in no file. They hold only if both saw the same pass through the gate. Each
// side also says after how many bytes it changes the key of what it sends. No I/O.

#include "netio/access/gate_transcript.hpp"
#include "netio/access/noise_handshake.hpp"
#include "netio/session/frame_seal.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace netio::inline v0_2 {

class KeyExchange {
  public:
    using Side = access::NoiseHandshake::Side;
    static constexpr std::size_t message_bytes =
        access::NoiseHandshake::overhead + sizeof(std::uint64_t);
    using Message = std::array<std::byte, message_bytes>;
    // No side changes its keys later than so.
    static constexpr std::uint64_t most_key_bytes = access::KeyLife{}.bytes;

    struct Terms {
        access::Protection level = access::Protection::integrity;
        access::Cipher cipher = access::Cipher::aes_256_gcm;
        std::uint64_t key_bytes = most_key_bytes; // of what this side sends
    };
    KeyExchange(Side side, const Terms& terms, const access::GateKeys& keys);

    // This side's message, once. The accepting side's follows the other's.
    Message say();
    // The peer's. False: it is from somebody else, or was changed.
    [[nodiscard]] bool hear(std::span<const std::byte> message);
    // Both were said and understood. Not so: the peer chose its part so that nothing can come of
    // it.
    bool is_complete() const noexcept { return noise_.result().has_value(); }
    // Then.
    FrameSealer sealer() const;
    FrameOpener opener() const;

  private:
    Side side_;
    Terms terms_;
    access::NoiseHandshake noise_;
    std::uint64_t peer_key_bytes_ = 0;
};

} // namespace netio::inline v0_2
