// SPDX-License-Identifier: Apache-2.0
#include "netio/session/gate_passage.hpp"

#include "netio/base/check.hpp"

namespace netio::inline v0_2 {
namespace {

std::string complaint(access::GateClient::Answer answer) {
    using Answer = access::GateClient::Answer;
    switch (answer) {
    case Answer::genuine:
        return {};
    case Answer::unasked:
    case Answer::no_proof:
        return "has accepted without a proof that it has the key; it is not the server that was "
               "meant, or listens without keys";
    case Answer::wrong_proof:
        return "does not have the key; it is not the server that was meant";
    case Answer::other_protection:
        return "answers with another protection than was asked for";
    }
    return "?";
}

} // namespace

std::size_t GatePassage::complete(ConnectionData& data, std::size_t size) {
    const bool has_key = client_ != nullptr || (admittance_ != nullptr &&
                                                admittance_->admission().id() != access::anyone);
    if (!has_key) return size;
    NETIO_CHECK_MSG(size == access::gate_hello_bytes, "the gate wants four bytes of every service");
    static_assert(std::tuple_size_v<ConnectionData> == access::gate_request_bytes);
    if (client_) {
        access::ClientNonce nonce;
        access::fill_randomly(nonce);
        return client_->request(data, nonce);
    }
    const auto answer = std::span{data}.first<access::gate_answer_bytes>();
    const std::size_t bytes = admittance_->admission().answer(answer);
    keys_ = admittance_->admission().keys(answer);
    return bytes;
}

void GatePassage::take_rejection(RejectCode code, std::span<const std::byte> data) {
    if (!client_) return;
    if (code == RejectCode::prove_key) static_cast<void>(client_->take_challenge(data));
    if (code == RejectCode::not_admitted) static_cast<void>(client_->take_refusal());
}

std::string GatePassage::take_answer(std::span<const std::byte> data) {
    if (!client_) {
        const bool is_plain = data[access::gate_flags_at] == std::byte{0};
        return is_plain ? "" : "answers with a key that was not asked for";
    }
    std::string problem = complaint(client_->take_answer(data));
    if (problem.empty()) keys_ = client_->keys();
    return problem;
}

access::Protection GatePassage::protection() const noexcept {
    if (client_) return client_->protection();
    return admittance_ ? admittance_->admission().protection() : access::Protection::none;
}

access::Cipher GatePassage::cipher() const noexcept {
    if (client_) return client_->cipher();
    return admittance_ ? admittance_->admission().cipher() : access::Cipher::aes_256_gcm;
}

std::string_view GatePassage::hint(RejectCode code) const noexcept {
    if (code == RejectCode::prove_key && !client_) return "; this side was given none";
    return {};
}

} // namespace netio::inline v0_2
