// SPDX-License-Identifier: Apache-2.0
#include "netio/access/gate_client.hpp"

#include "netio/access/digest.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <utility>

namespace netio::access::inline v0_2 {

std::size_t GateClient::request(std::span<std::byte, gate_request_bytes> data,
                                const ClientNonce& nonce) {
    std::ranges::fill(data.subspan(gate_hello_bytes), std::byte{0});
    data[gate_flags_at] = static_cast<std::byte>(encode(flags_));
    data[gate_id_at] = std::byte{key_.id};
    transcript_.reset();
    if (!challenge_) {
        data[gate_kind_at] = static_cast<std::byte>(RequestKind::first);
        return gate_first_bytes;
    }
    data[gate_kind_at] = static_cast<std::byte>(RequestKind::second);
    wire::store(data.data() + gate_slot_at, challenge_->slot);
    std::ranges::copy(nonce, data.begin() + gate_nonce_at);
    transcript_.emplace(data.first<gate_proof_at>(), challenge_->nonce, dialled_);
    std::ranges::copy(transcript_->client_proof(derive(key_.secret, Purpose::gate)),
                      data.begin() + gate_proof_at);
    return gate_request_bytes;
}

GateClient::Next GateClient::take_challenge(Bytes rejection) {
    transcript_.reset();
    if (rejection.size() < gate_challenge_bytes || ++challenges_ > challenge_limit)
        return Next::give_up;
    Challenge challenge{.slot = wire::load<std::uint16_t>(rejection.data() + gate_rejection_bytes)};
    std::copy_n(rejection.data() + gate_rejection_bytes + 2, challenge.nonce.size(),
                challenge.nonce.begin());
    challenge_ = challenge;
    again_ = true;
    return Next::again;
}

GateClient::Next GateClient::take_refusal() noexcept {
    transcript_.reset();
    const bool could_be_late = challenge_.has_value() && !refused_before_;
    challenge_.reset();
    refused_before_ = true;
    again_ = could_be_late;
    return could_be_late ? Next::again : Next::give_up;
}

GateClient::Answer GateClient::take_answer(Bytes data) {
    const std::optional<GateTranscript> transcript = std::exchange(transcript_, std::nullopt);
    if (!transcript) return Answer::unasked;
    if (data.size() < gate_answer_bytes) return Answer::no_proof;
    const Proof expected = transcript->server_proof(derive(key_.secret, Purpose::gate),
                                                    data.first<gate_hello_bytes>());
    if (!same_bytes(expected, data.subspan(gate_hello_bytes, gate_proof_bytes)))
        return Answer::wrong_proof;
    const auto answered = decode_flags(std::to_integer<std::uint8_t>(data[gate_flags_at]));
    if (!answered || !answered->has_key || answered->protection != flags_.protection ||
        (flags_.lacks_aes && !answered->lacks_aes)) {
        return Answer::other_protection;
    }
    flags_.lacks_aes = answered->lacks_aes;
    keys_ = transcript->keys(key_.secret, data.first<gate_hello_bytes>());
    return Answer::genuine;
}

} // namespace netio::access::inline v0_2
