// SPDX-License-Identifier: Apache-2.0
#include "netio/session/handshake.hpp"

#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"
#include "netio/random_number.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace netio::inline v0_3 {
namespace {

constexpr std::uint32_t magic = 0x4f49544eU; // "NTIO"
constexpr std::size_t rejection_bytes = 12;

constexpr std::byte list_version{1};
constexpr std::size_t list_header_bytes = 4;
constexpr std::uint16_t roles_type = 1 | wire_options::mandatory;

// Roles of the connecting side. 0: no role is defined.
std::uint8_t implied_roles(Service service) noexcept {
    switch (service) {
    case Service::messages:
        return static_cast<std::uint8_t>(Role::sends);
    case Service::publish_subscribe:
        return static_cast<std::uint8_t>(Role::subscribes);
    case Service::stream:
    case Service::path_test:
        break;
    }
    return 0;
}

std::string complaint(access::AuthClient::Answer answer) {
    using Answer = access::AuthClient::Answer;
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

// --- hello and rejection --------------------------------------------------------------------

namespace {

std::string name_of(Service service) {
    switch (service) {
    case Service::messages:
        return "messages (send, receive and message sockets, requests)";
    case Service::publish_subscribe:
        return "publish/subscribe";
    case Service::stream:
        return "byte streams";
    case Service::path_test:
        return "path tests (netio doctor)";
    }
    return "service " + std::to_string(static_cast<unsigned>(service));
}

} // namespace

std::string_view to_string(RejectCode code) noexcept {
    switch (code) {
    case RejectCode::none:
        return "not rejected";
    case RejectCode::not_this_protocol:
        return "it speaks another protocol or version";
    case RejectCode::other_service:
        return "it offers another service at this address";
    case RejectCode::receive_too_small:
        return "the receive buffers (receive_buffer_bytes) are too small for it";
    case RejectCode::full:
        return "it has no free slot for another peer, or for another of this host";
    case RejectCode::service_data:
        return "it does not accept what this side asks for";
    case RejectCode::messages_too_large:
        return "it sends messages larger than this side's largest_message_bytes";
    case RejectCode::no_resources:
        return "it lacks the memory or the descriptors for another peer";
    case RejectCode::prove_key:
        return "it asks for a key";
    case RejectCode::not_admitted:
        return "it does not admit this side: no keys are used there, or this key is not known "
               "there, "
               "or not with these rights or this protection; the log there has the reason";
    case RejectCode::missing_feature:
        return "it requires a feature that this version of netio does not have; update netio here";
    }
    return "unknown reason";
}

std::size_t encode(const Hello& hello, ConnectionData& out) noexcept {
    out.fill(std::byte{0});
    wire::store(out.data(), magic);
    wire::store(out.data() + 4, wire_version);
    wire::store(out.data() + 5, hello.features);
    wire::store(out.data() + 6, hello.service);
    wire::store(out.data() + 7, hello.flags);
    wire::store(out.data() + 8, hello.receive_buffer_bytes);
    wire::store(out.data() + 12, hello.receive_count);
    wire::store(out.data() + 14, hello.heartbeat_ms);
    wire::store(out.data() + 16, hello.instance);
    std::ranges::copy(hello.service_data.span(), out.data() + hello_bytes);
    return hello_bytes + hello.service_data.size;
}

std::size_t encode(const Rejection& rejection, ConnectionData& out) noexcept {
    out.fill(std::byte{0});
    wire::store(out.data(), magic);
    wire::store(out.data() + 4, wire_version);
    wire::store(out.data() + 6, rejection.code);
    wire::store(out.data() + 8, rejection.required_bytes);
    return rejection_bytes;
}

RejectCode decode(std::span<const std::byte> in, std::size_t service_bytes, Hello& hello) noexcept {
    NETIO_CHECK(service_bytes <= service_data_limit);
    if (in.size() < hello_bytes || wire::load<std::uint32_t>(in.data()) != magic ||
        wire::load<std::uint8_t>(in.data() + 4) != wire_version ||
        !access::decode_flags(std::to_integer<std::uint8_t>(in[7]))) {
        return RejectCode::not_this_protocol;
    }
    hello.features = wire::load<std::uint8_t>(in.data() + 5);
    hello.service = wire::load<Service>(in.data() + 6);
    hello.flags = wire::load<std::uint8_t>(in.data() + 7);
    hello.receive_buffer_bytes = wire::load<std::uint32_t>(in.data() + 8);
    hello.receive_count = wire::load<std::uint16_t>(in.data() + 12);
    hello.heartbeat_ms = wire::load<std::uint16_t>(in.data() + 14);
    hello.instance = wire::load<std::uint64_t>(in.data() + 16);
    if (in.size() < hello_bytes + service_bytes) return RejectCode::service_data;
    hello.service_data.size = service_bytes;
    std::copy_n(in.data() + hello_bytes, service_bytes, hello.service_data.bytes.begin());
    return RejectCode::none;
}

RejectCode judge_receives(const Hello& peer, std::size_t required_receive_bytes) noexcept {
    if (peer.receive_count < least_session_receive_count ||
        peer.receive_count > most_session_receive_count) {
        return RejectCode::service_data;
    }
    const bool small = peer.receive_buffer_bytes < least_receive_bytes ||
                       peer.receive_buffer_bytes < required_receive_bytes;
    return small ? RejectCode::receive_too_small : RejectCode::none;
}

Rejection decode_rejection(std::span<const std::byte> in) noexcept {
    if (in.size() < rejection_bytes || wire::load<std::uint32_t>(in.data()) != magic ||
        wire::load<std::uint8_t>(in.data() + 4) != wire_version) {
        return {.code = RejectCode::none};
    }
    return {.code = wire::load<RejectCode>(in.data() + 6),
            .required_bytes = wire::load<std::uint32_t>(in.data() + 8)};
}

// --- the open frame -------------------------------------------------------------------------

std::size_t encode(const OpenOptions& options, OpenOptionsBytes& out) noexcept {
    out.fill(std::byte{0});
    if (options.roles == 0) return 0;
    out[0] = list_version;
    std::byte* const option = out.data() + list_header_bytes;
    wire::store(option, roles_type);
    wire::store(option + 2, std::uint16_t{1});
    option[wire_options::header_bytes] = std::byte{options.roles};
    return list_header_bytes + wire_options::header_bytes + 1;
}

std::optional<OpenOptions> decode_open_options(std::span<const std::byte> in) noexcept {
    OpenOptions options;
    if (in.empty()) return options;
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (in.size() < list_header_bytes || in[0] != list_version ||
        !std::ranges::all_of(in.subspan(1, list_header_bytes - 1), is_zero)) {
        return std::nullopt;
    }
    const auto outcome = wire_options::visit(
        in.subspan(list_header_bytes), [&](std::uint16_t type, std::span<const std::byte> value) {
            if (type != roles_type) return wire_options::Use::unknown;
            if (value.size() != 1 || value[0] == std::byte{0} || options.roles != 0)
                return wire_options::Use::malformed;
            options.roles = std::to_integer<std::uint8_t>(value[0]);
            return wire_options::Use::taken;
        });
    if (!outcome.is_valid) return std::nullopt;
    options.unknown = outcome.refused;
    return options;
}

// --- the handshake of one session -----------------------------------------------------------

Handshake::Handshake(const Hello& hello, const SessionOptions& options) noexcept : hello_{hello} {
    hello_.receive_buffer_bytes = static_cast<std::uint32_t>(options.receive_buffer_bytes);
    hello_.receive_count = static_cast<std::uint16_t>(options.receive_count);
    hello_.heartbeat_ms = static_cast<std::uint16_t>(options.heartbeat.count());
    hello_.instance = process_instance();
}

Handshake::~Handshake() = default;

void Handshake::connects(std::size_t required_receive_bytes, const OpenOptions& offered,
                         std::shared_ptr<access::AuthClient> auth) noexcept {
    required_receive_bytes_ = required_receive_bytes;
    offered_ = offered;
    auth_ = std::move(auth);
}

void Handshake::accepts(const Hello& peer) noexcept {
    peer_ = peer;
    accepting_ = true;
}

void Handshake::admit(std::unique_ptr<AdmittedPeer> admitted, access::PeerSlot slot) noexcept {
    slot_ = std::move(slot);
    admitted_ = std::move(admitted);
}

std::size_t Handshake::put_hello(ConnectionData& data) {
    return add_proof(data, encode(hello_, data));
}

Closed Handshake::take_answer(std::span<const std::byte> data) {
    const RejectCode problem = decode(data, hello_.service_data.size, peer_);
    if (problem != RejectCode::none || peer_.service != hello_.service) {
        return {.reason = CloseReason::protocol_error,
                .detail = "accepted with connection data of another protocol"};
    }
    // Checked before any other part of the answer is used.
    if (std::string unproved = check_proof(data); !unproved.empty()) {
        return {.reason = CloseReason::not_admitted, .detail = std::move(unproved)};
    }
    if (judge_receives(peer_, required_receive_bytes_) == RejectCode::none) return {};
    return {.reason = CloseReason::protocol_error,
            .detail = "accepted with " + std::to_string(peer_.receive_count) +
                      " receive buffers of " + std::to_string(peer_.receive_buffer_bytes) +
                      " bytes, which is too little"};
}

// Adds what this side has to prove after its hello.
std::size_t Handshake::add_proof(ConnectionData& data, std::size_t size) {
    const bool has_key =
        auth_ != nullptr || (admitted_ != nullptr && admitted_->result().id() != access::anyone);
    if (!has_key) return size;
    NETIO_CHECK_MSG(size == access::auth_hello_bytes,
                    "authentication needs four bytes of each service");
    static_assert(std::tuple_size_v<ConnectionData> == access::auth_request_bytes);
    if (auth_) {
        access::ClientNonce nonce;
        access::fill_randomly(nonce);
        return auth_->request(data, nonce);
    }
    const auto answer = std::span{data}.first<access::auth_answer_bytes>();
    const std::size_t bytes = admitted_->result().answer(answer);
    keys_ = admitted_->result().keys(answer);
    return bytes;
}

// Checks the accepting side's proof, after its hello was found valid. Returns the problem of the
// proof; empty if it is valid.
std::string Handshake::check_proof(std::span<const std::byte> data) {
    if (!auth_) {
        const bool is_plain = data[access::auth_flags_at] == std::byte{0};
        return is_plain ? "" : "answers with a key that was not asked for";
    }
    std::string problem = complaint(auth_->take_answer(data));
    if (problem.empty()) keys_ = auth_->keys();
    return problem;
}

void Handshake::take_rejection(std::span<const std::byte> data) {
    rejection_ = decode_rejection(data);
    if (!auth_) return;
    if (rejection_.code == RejectCode::prove_key) static_cast<void>(auth_->take_challenge(data));
    if (rejection_.code == RejectCode::not_admitted) static_cast<void>(auth_->take_refusal());
}

access::Protection Handshake::protection() const noexcept {
    if (auth_) return auth_->protection();
    return admitted_ ? admitted_->result().protection() : access::Protection::none;
}

access::Cipher Handshake::cipher() const noexcept {
    if (auth_) return auth_->cipher();
    return admitted_ ? admitted_->result().cipher() : access::Cipher::aes_256_gcm;
}

const access::Rights* Handshake::rights() const noexcept {
    return admitted_ ? &admitted_->result().rights() : nullptr;
}

access::KeyExchange* Handshake::exchange(std::uint64_t key_bytes) {
    if (!access::seals_all(protection()) || !keys_) return nullptr;
    if (!exchange_) {
        exchange_.emplace(accepting_ ? access::KeyExchange::Side::responder
                                     : access::KeyExchange::Side::initiator,
                          access::KeyExchange::Terms{
                              .level = protection(), .cipher = cipher(), .key_bytes = key_bytes},
                          *keys_);
    }
    return &*exchange_;
}

std::optional<std::uint16_t> Handshake::take_open(std::span<const std::byte> body) noexcept {
    const std::optional<OpenOptions> offered = decode_open_options(body);
    if (!offered) return std::nullopt;
    if (offered->unknown != 0) return offered->unknown;
    // A peer that requests more than it gets must be refused, so that it can request less.
    const std::uint8_t implied = implied_roles(hello_.service);
    if (offered->roles != 0 && offered->roles != implied) return roles_type;
    offered_ = *offered;
    return std::uint16_t{0};
}

void Handshake::explain(Closed& closed) const {
    if (rejection_.code == RejectCode::none) return;
    closed.may_pass = refusal_of(rejection_.code) == RetryPolicy::Refusal::passing;
    if (rejection_.code == RejectCode::missing_feature &&
        rejection_.required_bytes == two_way_feature) {
        closed.detail += ": it carries messages in both directions: connect a MessageSocket to it, "
                         "or a Requester (netio request)";
        return;
    }
    closed.detail += ": " + std::string{to_string(rejection_.code)};
    if (rejection_.code == RejectCode::prove_key && !auth_)
        closed.detail += "; this side was given none (set key, --key FILE)";
    if (rejection_.required_bytes == 0) return;
    if (rejection_.code == RejectCode::other_service) {
        closed.detail += ": " + name_of(static_cast<Service>(rejection_.required_bytes)) +
                         "; this side is for " + name_of(hello_.service) +
                         ": connect to another port";
        return;
    }
    if (rejection_.code == RejectCode::missing_feature) {
        closed.detail += " (feature bits " + std::to_string(rejection_.required_bytes) + ")";
        return;
    }
    closed.detail += " (" + std::to_string(rejection_.required_bytes) + " bytes required";
    if (rejection_.code == RejectCode::receive_too_small) {
        closed.required_receive_bytes = rejection_.required_bytes;
        closed.detail += ", " + std::to_string(hello_.receive_buffer_bytes) + " here";
    }
    closed.detail += ")";
}

} // namespace netio::inline v0_3
