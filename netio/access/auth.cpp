// SPDX-License-Identifier: Apache-2.0
#include "netio/access/auth.hpp"

#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <utility>

namespace netio::access::inline v0_3 {
namespace {

Proof first_half(const Digest& digest) {
    Proof proof;
    std::copy_n(digest.begin(), proof.size(), proof.begin());
    return proof;
}

using Verdict = AuthServer::Verdict;
using Outcome = Verdict::Outcome;

std::uint64_t slot_of(TimePoint now) {
    return static_cast<std::uint64_t>(now.time_since_epoch() / AuthServer::slot_length);
}

Verdict refused(Refusal refusal, KeyId claimed) {
    return {.outcome = Outcome::refused, .refusal = refusal, .claimed = claimed};
}

Verdict admitted(AuthResult admission) {
    const KeyId id = admission.id();
    return {.outcome = Outcome::admitted, .claimed = id, .admission = std::move(admission)};
}

// The slot whose last 16 bits these are, if it is the current or the previous one.
std::optional<std::uint64_t> recent_slot(std::uint16_t bits, std::uint64_t now_slot) {
    if (static_cast<std::uint16_t>(now_slot) == bits) return now_slot;
    if (now_slot > 0 && static_cast<std::uint16_t>(now_slot - 1) == bits) return now_slot - 1;
    return std::nullopt;
}

ReplayCache::Entry replay_entry(Bytes data) {
    ReplayCache::Entry entry{};
    entry[0] = data[auth_id_at];
    std::ranges::copy(data.subspan(auth_instance_at, 8), entry.begin() + 1);
    std::ranges::copy(data.subspan(auth_nonce_at, ClientNonce{}.size()), entry.begin() + 9);
    return entry;
}

} // namespace

// --- messages -------------------------------------------------------------------------------

AuthTranscript::AuthTranscript(std::span<const std::byte, auth_proof_at> request,
                               const ServerNonce& nonce, const AuthAddress& dialled) noexcept
    : nonce_{nonce} {
    std::ranges::copy(request, request_.begin());
    std::ranges::copy(dialled.host, dialled_.begin());
    wire::store(dialled_.data() + dialled.host.size(), dialled.port);
}

Proof AuthTranscript::client_proof(const Secret& auth_key) const {
    return first_half(
        hmac_sha256(auth_key.bytes(), {as_bytes("netio c2s 1"), request_, nonce_, dialled_}));
}

Proof AuthTranscript::server_proof(const Secret& auth_key,
                                   std::span<const std::byte, auth_hello_bytes> answer) const {
    return first_half(hmac_sha256(auth_key.bytes(),
                                  {as_bytes("netio s2c 1"), answer, request_, nonce_, dialled_}));
}

AuthKeys AuthTranscript::keys(const Secret& secret,
                              std::span<const std::byte, auth_hello_bytes> answer) const {
    const Secret auth_key = derive(secret, Purpose::auth);
    const Secret tag_key = derive(secret, Purpose::tag);
    const Proof up = client_proof(auth_key);
    const Proof down = server_proof(auth_key, answer);
    AuthKeys keys;
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

// --- the connecting side --------------------------------------------------------------------

std::size_t AuthClient::request(std::span<std::byte, auth_request_bytes> data,
                                const ClientNonce& nonce) {
    std::ranges::fill(data.subspan(auth_hello_bytes), std::byte{0});
    data[auth_flags_at] = static_cast<std::byte>(encode(flags_));
    data[auth_id_at] = std::byte{key_.id};
    transcript_.reset();
    if (!challenge_) {
        data[auth_kind_at] = static_cast<std::byte>(RequestKind::first);
        return auth_first_bytes;
    }
    data[auth_kind_at] = static_cast<std::byte>(RequestKind::second);
    wire::store(data.data() + auth_slot_at, challenge_->slot);
    std::ranges::copy(nonce, data.begin() + auth_nonce_at);
    transcript_.emplace(data.first<auth_proof_at>(), challenge_->nonce, dialled_);
    std::ranges::copy(transcript_->client_proof(derive(key_.secret, Purpose::auth)),
                      data.begin() + auth_proof_at);
    return auth_request_bytes;
}

AuthClient::Next AuthClient::take_challenge(Bytes rejection) {
    transcript_.reset();
    if (rejection.size() < auth_challenge_bytes || ++challenges_ > challenge_limit)
        return Next::give_up;
    Challenge challenge{.slot = wire::load<std::uint16_t>(rejection.data() + auth_rejection_bytes)};
    std::copy_n(rejection.data() + auth_rejection_bytes + 2, challenge.nonce.size(),
                challenge.nonce.begin());
    challenge_ = challenge;
    again_ = true;
    return Next::again;
}

AuthClient::Next AuthClient::take_refusal() noexcept {
    transcript_.reset();
    const bool could_be_late = challenge_.has_value() && !refused_before_;
    challenge_.reset();
    refused_before_ = true;
    again_ = could_be_late;
    return could_be_late ? Next::again : Next::give_up;
}

AuthClient::Answer AuthClient::take_answer(Bytes data) {
    const std::optional<AuthTranscript> transcript = std::exchange(transcript_, std::nullopt);
    if (!transcript) return Answer::unasked;
    if (data.size() < auth_answer_bytes) return Answer::no_proof;
    const Proof expected = transcript->server_proof(derive(key_.secret, Purpose::auth),
                                                    data.first<auth_hello_bytes>());
    if (!same_bytes(expected, data.subspan(auth_hello_bytes, auth_proof_bytes)))
        return Answer::wrong_proof;
    const auto answered = decode_flags(std::to_integer<std::uint8_t>(data[auth_flags_at]));
    if (!answered || !answered->has_key || answered->protection != flags_.protection ||
        (flags_.lacks_aes && !answered->lacks_aes)) {
        return Answer::other_protection;
    }
    flags_.lacks_aes = answered->lacks_aes;
    keys_ = transcript->keys(key_.secret, data.first<auth_hello_bytes>());
    return Answer::genuine;
}

// --- the listening side ---------------------------------------------------------------------

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
        return "it took too long, or its request belongs to an earlier run";
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

std::size_t AuthResult::answer(std::span<std::byte, auth_answer_bytes> data) const {
    data[auth_flags_at] = static_cast<std::byte>(encode(flags_));
    if (!transcript_) return auth_hello_bytes;
    const Proof proof = transcript_->server_proof(derive(key_.secret, Purpose::auth),
                                                  data.first<auth_hello_bytes>());
    std::ranges::copy(proof, data.begin() + auth_hello_bytes);
    return auth_answer_bytes;
}

AuthKeys AuthResult::keys(std::span<const std::byte, auth_answer_bytes> data) const {
    NETIO_CHECK(transcript_);
    return transcript_->keys(key_.secret, data.first<auth_hello_bytes>());
}

AuthServer::AuthServer(const Secret& boot, const Options& options) noexcept
    : boot_{boot}, stand_in_{derive(boot, Purpose::auth)}, options_{options},
      used_{options.proofs_per_key} {}

Verdict AuthServer::judge(const Request& request, TimePoint now) {
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

Verdict AuthServer::decide(const Request& request, std::uint64_t now_slot) {
    const Bytes data = request.data;
    if (data.size() < auth_hello_bytes) return refused(Refusal::malformed, anyone);
    const auto flags = decode_flags(std::to_integer<std::uint8_t>(data[auth_flags_at]));
    if (!flags) return refused(Refusal::malformed, anyone);
    if (!flags->has_key) {
        if (ring_.find(anyone) != nullptr) return admit_anonymous(request, *flags);
        return challenge(request, anyone, now_slot);
    }
    if (data.size() < auth_first_bytes) return refused(Refusal::malformed, anyone);
    const auto claimed = std::to_integer<KeyId>(data[auth_id_at]);
    // For every id, known or not, so that an unauthenticated peer does not learn which keys exist.
    if (data[auth_kind_at] == std::byte{0}) return challenge(request, claimed, now_slot);
    if (data[auth_kind_at] != std::byte{1} || data.size() < auth_request_bytes)
        return refused(Refusal::malformed, claimed);
    return check_proof(request, *flags, now_slot);
}

Verdict AuthServer::admit_anonymous(const Request& request, const AuthFlags& flags) const {
    const Key& anonymous = *ring_.find(anyone);
    if (options_.min_protection != Protection::none)
        return refused(Refusal::protection_too_low, anyone);
    const auto service = std::to_integer<std::uint8_t>(request.data[auth_service_at]);
    if (!anonymous.rights.may_use(service)) return refused(Refusal::service_not_permitted, anyone);
    return admitted(AuthResult{anonymous, flags});
}

Verdict AuthServer::challenge(const Request& request, KeyId claimed, std::uint64_t slot) const {
    Verdict verdict{.outcome = Outcome::challenged, .claimed = claimed};
    wire::store(verdict.challenge.data(), static_cast<std::uint16_t>(slot));
    std::ranges::copy(nonce(request, claimed, slot), verdict.challenge.begin() + 2);
    return verdict;
}

Verdict AuthServer::check_proof(const Request& request, const AuthFlags& flags,
                                std::uint64_t now_slot) {
    const Bytes data = request.data;
    const auto claimed = std::to_integer<KeyId>(data[auth_id_at]);
    const auto slot = recent_slot(wire::load<std::uint16_t>(data.data() + auth_slot_at), now_slot);
    const Key* const key = claimed == anyone ? nullptr : ring_.find(claimed);
    // Computes the same whatever is wrong, so that the time does not reveal the reason.
    const auto transcript = proved(request, nonce(request, claimed, slot.value_or(now_slot)),
                                   derive(key != nullptr ? key->secret : stand_in_, Purpose::auth));
    if (key == nullptr) return refused(Refusal::unknown_key, claimed);
    if (!slot) return refused(Refusal::stale, claimed);
    if (!transcript) return refused(Refusal::wrong_proof, claimed);
    switch (used_.remember(*slot, replay_entry(data))) {
    case ReplayCache::Seen::before:
        return refused(Refusal::replayed, claimed);
    case ReplayCache::Seen::limit_reached:
        return {.outcome = Outcome::busy, .shortage = Shortage::proofs, .claimed = claimed};
    case ReplayCache::Seen::never:
        break;
    }
    if (flags.protection < options_.min_protection)
        return refused(Refusal::protection_too_low, claimed);
    if (flags.protection > options_.most) return refused(Refusal::protection_not_here, claimed);
    if (!key->rights.may_use(std::to_integer<std::uint8_t>(data[auth_service_at])))
        return refused(Refusal::service_not_permitted, claimed);
    AuthFlags agreed = flags;
    agreed.lacks_aes = flags.lacks_aes || options_.lacks_aes;
    return admitted(AuthResult{*key, agreed, *transcript});
}

std::optional<AuthTranscript> AuthServer::proved(const Request& request, const ServerNonce& nonce,
                                                 const Secret& auth_key) const {
    std::optional<AuthTranscript> found;
    const auto try_address = [&](const AuthAddress& dialled) {
        const AuthTranscript transcript{request.data.first<auth_proof_at>(), nonce, dialled};
        const bool fits = same_bytes(transcript.client_proof(auth_key),
                                     request.data.subspan(auth_proof_at, auth_proof_bytes));
        if (fits) found = transcript;
    };
    try_address(request.dialled);
    for (const AuthAddress& other : options_.advertised_addresses)
        try_address(other);
    return found;
}

ServerNonce AuthServer::nonce(const Request& request, KeyId claimed, std::uint64_t slot) const {
    std::array<std::byte, 9> which{};
    which[0] = std::byte{claimed};
    wire::store(which.data() + 1, slot); // the whole slot: its 16 bits on the wire repeat
    const Digest digest =
        hmac_sha256(boot_.bytes(), {as_bytes("netio cookie 1"), request.source, which,
                                    request.data.subspan(auth_instance_at, 8)});
    ServerNonce nonce;
    std::copy_n(digest.begin(), nonce.size(), nonce.begin());
    return nonce;
}

AccessControl::AccessControl(const Options& options, KeySource& source, const Secret& boot)
    : min_protection_{options.min_protection}, file_{options.key_file, source},
      server_{boot,
              {.min_protection = options.min_protection,
               .most = options.most,
               .lacks_aes = options.lacks_aes,
               .advertised_addresses = options.advertised_addresses}},
      peers_{PeerLimiter::unlimited, options.connections_per_host} {
    file_.load();
    server_.use(file_.ring());
}

Verdict AccessControl::judge(const AuthServer::Request& request, TimePoint now, PeerSlot& slot) {
    Verdict verdict = server_.judge(request, now);
    if (!verdict.admission) return verdict;
    PeerLimiter::Entry entry = peers_.enter({.host = request.source,
                                             .address = {},
                                             .key = verdict.admission->id(),
                                             .key_limit = verdict.admission->rights().connections});
    if (entry.slot) {
        slot = std::move(entry.slot);
        return verdict;
    }
    server_.reject_client();
    verdict.outcome = Outcome::busy;
    verdict.shortage =
        entry.limit == PeerLimiter::Limit::key ? Shortage::links_of_key : Shortage::links_of_host;
    verdict.admission.reset();
    return verdict;
}

std::optional<AccessControl::News> AccessControl::look() {
    switch (file_.refresh()) {
    case KeyFile::Refreshed::unchanged:
        return std::nullopt;
    case KeyFile::Refreshed::broken:
        return News{.revoked = {}, .problem = file_.problem()};
    case KeyFile::Refreshed::changed:
        break;
    }
    server_.use(file_.ring());
    return News{.revoked = file_.revoked(), .problem = {}};
}

} // namespace netio::access::inline v0_3
