// SPDX-License-Identifier: Apache-2.0
#include "netio/access/gate_transcript.hpp"

#include "netio/access/digest.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>

namespace netio::access::inline v0_2 {
namespace {

Proof first_half(const Digest& digest) {
    Proof proof;
    std::copy_n(digest.begin(), proof.size(), proof.begin());
    return proof;
}

} // namespace

GateTranscript::GateTranscript(std::span<const std::byte, gate_proof_at> request,
                               const ServerNonce& nonce, const GateAddress& dialled) noexcept
    : nonce_{nonce} {
    std::ranges::copy(request, request_.begin());
    std::ranges::copy(dialled.host, dialled_.begin());
    wire::store(dialled_.data() + dialled.host.size(), dialled.port);
}

Proof GateTranscript::client_proof(const Secret& gate_key) const {
    return first_half(
        hmac_sha256(gate_key.bytes(), {as_bytes("netio c2s 1"), request_, nonce_, dialled_}));
}

Proof GateTranscript::server_proof(const Secret& gate_key,
                                   std::span<const std::byte, gate_hello_bytes> answer) const {
    return first_half(hmac_sha256(gate_key.bytes(),
                                  {as_bytes("netio s2c 1"), answer, request_, nonce_, dialled_}));
}

GateKeys GateTranscript::keys(const Secret& secret,
                              std::span<const std::byte, gate_hello_bytes> answer) const {
    const Secret gate_key = derive(secret, Purpose::gate);
    const Secret tag_key = derive(secret, Purpose::tag);
    const Proof up = client_proof(gate_key);
    const Proof down = server_proof(gate_key, answer);
    GateKeys keys;
    auto out = keys.prologue.begin();
    for (const Bytes part :
         {Bytes{request_}, Bytes{up}, Bytes{nonce_}, Bytes{dialled_}, Bytes{answer}, Bytes{down}})
        out = std::ranges::copy(part, out).out;
    keys.tags_up = Secret{hmac_sha256(tag_key.bytes(), {as_bytes("netio up 1"), keys.prologue})};
    keys.tags_down =
        Secret{hmac_sha256(tag_key.bytes(), {as_bytes("netio down 1"), keys.prologue})};
    keys.psk = derive(secret, Purpose::psk);
    return keys;
}

} // namespace netio::access::inline v0_2
