// SPDX-License-Identifier: Apache-2.0
#include "netio/access/gate.hpp"

#include "netio/access/digest.hpp"
#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>

namespace netio::access::inline v0_2 {
namespace {

using Verdict = Gate::Verdict;
using Outcome = Verdict::Outcome;

std::uint64_t slot_of(TimePoint now) {
    return static_cast<std::uint64_t>(now.time_since_epoch() / Gate::slot_length);
}

Verdict refused(Refusal refusal, KeyId claimed) {
    return {.outcome = Outcome::refused, .refusal = refusal, .claimed = claimed};
}

Verdict admitted(Admission admission) {
    const KeyId id = admission.id();
    return {.outcome = Outcome::admitted, .claimed = id, .admission = std::move(admission)};
}

// The slot that these 16 bits stand for: it is now, or has just been. Nothing: neither.
std::optional<std::uint64_t> recent_slot(std::uint16_t bits, std::uint64_t now_slot) {
    if (static_cast<std::uint16_t>(now_slot) == bits) return now_slot;
    if (now_slot > 0 && static_cast<std::uint16_t>(now_slot - 1) == bits) return now_slot - 1;
    return std::nullopt;
}

ReplayMemory::Entry replay_entry(Bytes data) {
    ReplayMemory::Entry entry{};
    entry[0] = data[gate_id_at];
    std::ranges::copy(data.subspan(gate_instance_at, 8), entry.begin() + 1);
    std::ranges::copy(data.subspan(gate_nonce_at, ClientNonce{}.size()), entry.begin() + 9);
    return entry;
}

} // namespace

std::string_view to_string(Refusal refusal) noexcept {
    switch (refusal) {
    case Refusal::none:
        return "not refused";
    case Refusal::malformed:
        return "its request is malformed";
    case Refusal::unknown_key:
        return "there is no such key";
    case Refusal::wrong_proof:
        return "it does not have the key, or dialled another address";
    case Refusal::stale:
        return "it took too long, or means an earlier run";
    case Refusal::replayed:
        return "its proof was used before";
    case Refusal::protection_too_low:
        return "it asks for less protection than is required here";
    case Refusal::service_not_permitted:
        return "its key does not permit this service";
    case Refusal::protection_not_here:
        return "it asks for a protection that this version does not have";
    }
    return "?";
}

// --- who was admitted -----------------------------------------------------------------------

std::size_t Admission::answer(std::span<std::byte, gate_answer_bytes> data) const {
    data[gate_flags_at] = static_cast<std::byte>(encode(flags_));
    if (!transcript_) return gate_hello_bytes;
    const Proof proof = transcript_->server_proof(derive(key_.secret, Purpose::gate),
                                                  data.first<gate_hello_bytes>());
    std::ranges::copy(proof, data.begin() + gate_hello_bytes);
    return gate_answer_bytes;
}

GateKeys Admission::keys(std::span<const std::byte, gate_answer_bytes> data) const {
    NETIO_CHECK(transcript_);
    return transcript_->keys(key_.secret, data.first<gate_hello_bytes>());
}

// --- the gate -------------------------------------------------------------------------------

Gate::Gate(const Secret& boot, const Options& options) noexcept
    : boot_{boot}, stand_in_{derive(boot, Purpose::gate)}, options_{options},
      used_{options.proofs_per_key} {}

Verdict Gate::judge(const Request& request, TimePoint now) {
    const std::uint64_t slot = slot_of(now);
    used_.advance(slot);
    Verdict verdict = decide(request, slot);
    switch (verdict.outcome) {
    case Outcome::admitted:
        ++counters_.admitted;
        break;
    case Outcome::challenged:
        ++counters_.challenged;
        break;
    case Outcome::busy:
        ++counters_.busy;
        break;
    case Outcome::refused:
        ++counters_.refused[static_cast<std::size_t>(verdict.refusal)];
        break;
    }
    return verdict;
}

Verdict Gate::decide(const Request& request, std::uint64_t now_slot) {
    const Bytes data = request.data;
    if (data.size() < gate_hello_bytes) return refused(Refusal::malformed, anyone);
    const auto flags = decode_flags(std::to_integer<std::uint8_t>(data[gate_flags_at]));
    if (!flags) return refused(Refusal::malformed, anyone);
    if (!flags->has_key) {
        if (ring_.find(anyone) != nullptr) return admit_visitor(request, *flags);
        return challenge(request, anyone, now_slot);
    }
    if (data.size() < gate_first_bytes) return refused(Refusal::malformed, anyone);
    const auto claimed = std::to_integer<KeyId>(data[gate_id_at]);
    // Of any id, known or not: a stranger does not learn which there are.
    if (data[gate_kind_at] == std::byte{0}) return challenge(request, claimed, now_slot);
    if (data[gate_kind_at] != std::byte{1} || data.size() < gate_request_bytes)
        return refused(Refusal::malformed, claimed);
    return check_proof(request, *flags, now_slot);
}

Verdict Gate::admit_visitor(const Request& request, const GateFlags& flags) const {
    const Key& visitor = *ring_.find(anyone);
    if (options_.least != Protection::none) return refused(Refusal::protection_too_low, anyone);
    const auto service = std::to_integer<std::uint8_t>(request.data[gate_service_at]);
    if (!visitor.rights.may_use(service)) return refused(Refusal::service_not_permitted, anyone);
    return admitted(Admission{visitor, flags});
}

Verdict Gate::challenge(const Request& request, KeyId claimed, std::uint64_t slot) const {
    Verdict verdict{.outcome = Outcome::challenged, .claimed = claimed};
    wire::store(verdict.challenge.data(), static_cast<std::uint16_t>(slot));
    std::ranges::copy(nonce(request, claimed, slot), verdict.challenge.begin() + 2);
    return verdict;
}

Verdict Gate::check_proof(const Request& request, const GateFlags& flags, std::uint64_t now_slot) {
    const Bytes data = request.data;
    const auto claimed = std::to_integer<KeyId>(data[gate_id_at]);
    const auto slot = recent_slot(wire::load<std::uint16_t>(data.data() + gate_slot_at), now_slot);
    const Key* const key = claimed == anyone ? nullptr : ring_.find(claimed);
    // The same is computed whatever is wrong, so the time does not tell it.
    const auto transcript = proved(request, nonce(request, claimed, slot.value_or(now_slot)),
                                   derive(key != nullptr ? key->secret : stand_in_, Purpose::gate));
    if (key == nullptr) return refused(Refusal::unknown_key, claimed);
    if (!slot) return refused(Refusal::stale, claimed);
    if (!transcript) return refused(Refusal::wrong_proof, claimed);
    switch (used_.remember(*slot, replay_entry(data))) {
    case ReplayMemory::Seen::before:
        return refused(Refusal::replayed, claimed);
    case ReplayMemory::Seen::no_room:
        return {.outcome = Outcome::busy, .shortage = Shortage::proofs, .claimed = claimed};
    case ReplayMemory::Seen::never:
        break;
    }
    if (flags.protection < options_.least) return refused(Refusal::protection_too_low, claimed);
    if (flags.protection > options_.most) return refused(Refusal::protection_not_here, claimed);
    if (!key->rights.may_use(std::to_integer<std::uint8_t>(data[gate_service_at])))
        return refused(Refusal::service_not_permitted, claimed);
    GateFlags agreed = flags;
    agreed.lacks_aes = flags.lacks_aes || options_.lacks_aes;
    return admitted(Admission{*key, agreed, *transcript});
}

std::optional<GateTranscript> Gate::proved(const Request& request, const ServerNonce& nonce,
                                           const Secret& gate_key) const {
    std::optional<GateTranscript> found;
    const auto try_address = [&](const GateAddress& dialled) {
        const GateTranscript transcript{request.data.first<gate_proof_at>(), nonce, dialled};
        const bool fits = same_bytes(transcript.client_proof(gate_key),
                                     request.data.subspan(gate_proof_at, gate_proof_bytes));
        if (fits) found = transcript;
    };
    try_address(request.dialled);
    for (const GateAddress& other : options_.dialled_as)
        try_address(other);
    return found;
}

ServerNonce Gate::nonce(const Request& request, KeyId claimed, std::uint64_t slot) const {
    std::array<std::byte, 9> which{};
    which[0] = std::byte{claimed};
    wire::store(which.data() + 1, slot); // all of it: its 16 bits on the wire come round
    const Digest digest =
        hmac_sha256(boot_.bytes(), {as_bytes("netio cookie 1"), request.source, which,
                                    request.data.subspan(gate_instance_at, 8)});
    ServerNonce nonce;
    std::copy_n(digest.begin(), nonce.size(), nonce.begin());
    return nonce;
}

} // namespace netio::access::inline v0_2
