// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a session opens: the keys of a listening side, and what both sides exchange.

// The implementation of ServerKeys: judges connection requests, knows the admitted peers, and ends
// their sessions when the key file revokes their keys. Private to netio/session.

#include "netio/access/auth.hpp"
#include "netio/access/frame_seal.hpp"
#include "netio/access/key_source.hpp"
#include "netio/base/back_off.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace netio::inline v0_3 {

class AdmittedPeer;
class SessionListener;

class Authenticator final {
  public:
    Authenticator(EventLoop& loop, const ServerKeys::Options& options);
    ~Authenticator() = default;
    Authenticator(const Authenticator&) = delete;
    Authenticator& operator=(const Authenticator&) = delete;

    EventLoop& loop() const noexcept { return loop_; }
    bool is_of(const EventLoop& loop) const noexcept { return &loop == &loop_; }
    access::AuthServer::Verdict judge(const ConnectionRequest& request, access::PeerSlot& slot);
    // Reports a refused peer to the observer; after the answer to the peer.
    void report_refused(const std::string& peer_address,
                        const access::AuthServer::Verdict& verdict) const;
    // Returns a text for operators: the key of a busy verdict, and the limit that it exceeds.
    std::string shortage(const access::AuthServer::Verdict& verdict) const;

    bool requires_key() const { return control_.requires_key(); }
    // Registers a listener at an address that other machines reach, without permission for
    // anonymous peers: a change of the key file that admits them is reported.
    void guard(const SessionListener& listener, const std::string& address) {
        guarded_[&listener] = address;
    }
    void forget(const SessionListener& listener) noexcept { guarded_.erase(&listener); }

    void enter(AdmittedPeer& peer) { present_.insert(&peer); }
    void leave(AdmittedPeer& peer) noexcept { present_.erase(&peer); }
    ServerKeys::Counters counters() const noexcept;

  private:
    void look();

    EventLoop& loop_;
    ServerKeys::Options options_;
    access::SystemKeySource source_;
    access::AccessControl control_;
    std::set<AdmittedPeer*> present_;
    std::map<const SessionListener*, std::string> guarded_;
    Timer look_timer_;
};

// An admitted peer. It occupies its slot until this is destroyed.
class AdmittedPeer final {
  public:
    AdmittedPeer(std::shared_ptr<ServerKeys> keys, access::AuthResult result,
                 access::PeerSlot slot);
    ~AdmittedPeer();
    AdmittedPeer(const AdmittedPeer&) = delete;
    AdmittedPeer& operator=(const AdmittedPeer&) = delete;

    const access::AuthResult& result() const noexcept { return result_; }
    // Sets what to do when the peer's key is revoked: `revoke` must not call the user.
    void set_revocation(std::function<void()> revoke) { revoke_ = std::move(revoke); }
    void revoke() const {
        if (revoke_) revoke_();
    }

  private:
    std::shared_ptr<ServerKeys> keys_;
    access::AuthResult result_;
    access::PeerSlot slot_;
    std::function<void()> revoke_;
};

} // namespace netio::inline v0_3

// What the two sides of a session exchange before it opens, and whether they suit each other: hello
// and rejection (docs/wire-formats.md, "Connection data"), authentication, the keys of the session,
// and the open frame. No I/O.

namespace netio::inline v0_3 {

class AdmittedPeer;

// --- hello and rejection --------------------------------------------------------------------

enum class Service : std::uint8_t {
    messages = 1,
    publish_subscribe = 2,
    stream = 3,
    path_test = 4, // of the command `netio doctor` (apps/doctor)
};

// A peer of another version is rejected: within a version the formats only grow, by features and by
// options (netio/base/wire.hpp).
inline constexpr std::uint8_t wire_version = 3;
inline constexpr std::size_t hello_bytes = 24;
inline constexpr std::size_t service_data_limit = connection_data_limit - hello_bytes;

// Features of a hello.
inline constexpr std::uint8_t two_way_feature = 0x04; // messages in both directions

// The service's own bytes in the connection data.
struct ServiceData {
    std::array<std::byte, service_data_limit> bytes{};
    std::size_t size = 0;

    std::span<const std::byte> span() const noexcept { return {bytes.data(), size}; }
};

// The minimum of every side: frames that open, end and maintain a session fit, and credits can flow
// (netio/session/send_window.hpp needs one receive less).
inline constexpr std::uint32_t least_receive_bytes = 256;
inline constexpr std::uint16_t least_session_receive_count = 4;
inline constexpr std::uint16_t most_session_receive_count = 16'384;

// What a side announces when it connects or accepts.
struct Hello {
    Service service = Service::messages;
    std::uint8_t flags = 0; // of authentication (netio/access/protection.hpp)
    // A bit for each feature that this side offers; a connection uses what both sides offer. Each
    // side ignores bits that it does not know.
    std::uint8_t features = 0;
    std::uint32_t receive_buffer_bytes = 0;
    std::uint16_t receive_count = 0;
    std::uint16_t heartbeat_ms = 0;
    std::uint64_t instance = 0;
    ServiceData service_data;
};

enum class RejectCode : std::uint8_t {
    none = 0,
    not_this_protocol = 1,
    other_service = 2,
    receive_too_small = 3,
    full = 4,
    service_data = 5,
    messages_too_large = 6,
    no_resources = 7,
    prove_key = 8,    // a challenge follows
    not_admitted = 9, // the reason is not disclosed
    // The accepting side cannot do without a feature that the hello does not offer. The last field
    // has its bits.
    missing_feature = 10,
};
std::string_view to_string(RejectCode code) noexcept;
// What the code means for later attempts, if the intended peer sent it.
constexpr RetryPolicy::Refusal refusal_of(RejectCode code) noexcept {
    if (code == RejectCode::not_admitted) return RetryPolicy::Refusal::not_admitted;
    const bool may_pass = code == RejectCode::full || code == RejectCode::no_resources;
    return may_pass ? RetryPolicy::Refusal::passing : RetryPolicy::Refusal::lasting;
}

struct Rejection {
    RejectCode code = RejectCode::not_this_protocol;
    // receive_too_small: bytes of a receive buffer; messages_too_large: bytes of a message;
    // missing_feature: its bits; other_service: the service there.
    std::uint32_t required_bytes = 0;
};

using ConnectionData = std::array<std::byte, connection_data_limit>;

// Both return the number of bytes written.
std::size_t encode(const Hello& hello, ConnectionData& out) noexcept;
std::size_t encode(const Rejection& rejection, ConnectionData& out) noexcept;

// Returns `none` if `hello` is valid, or the code to reject with. Accepts bytes after the last
// field, because some fabrics pad connection data with zeros.
RejectCode decode(std::span<const std::byte> in, std::size_t service_bytes, Hello& hello) noexcept;
// Whether the peer's receive buffers suffice: none, service_data or receive_too_small.
RejectCode judge_receives(const Hello& peer, std::size_t required_receive_bytes) noexcept;
// Code `none`: this is not a rejection of this protocol.
Rejection decode_rejection(std::span<const std::byte> in) noexcept;

// --- the open frame -------------------------------------------------------------------------

// What the connecting side wants to do on the connection. A publisher and a subscriber of one
// process may share a connection to their peer if both sides agree.
enum class Role : std::uint8_t {
    sends = 1,
    receives = 2,
    publishes = 4,
    subscribes = 8,
};

// What the connecting side offers in the body of its open frame: a list of options that can grow
// without a new version of the wire formats (docs/wire-formats.md, "Open").
struct OpenOptions {
    std::uint8_t roles = 0; // of enum Role; 0: as implied by the service of the hello
    // Decoded only: the first mandatory option that this version does not know; 0: none.
    std::uint16_t unknown = 0;

    friend bool operator==(const OpenOptions&, const OpenOptions&) = default;
};

// Empty, or: version 1, reserved 3, then for each option: type 2, size 2, value.
inline constexpr std::size_t open_options_limit = 12;
using OpenOptionsBytes = std::array<std::byte, open_options_limit>;

// Returns the number of bytes written.
std::size_t encode(const OpenOptions& options, OpenOptionsBytes& out) noexcept;
// Returns `nullopt` if the list is malformed or of another version.
std::optional<OpenOptions> decode_open_options(std::span<const std::byte> in) noexcept;

// --- the handshake of one session -----------------------------------------------------------

class Handshake {
  public:
    // `hello`: the service's part; the rest follows from the options.
    Handshake(const Hello& hello, const SessionOptions& options) noexcept;
    ~Handshake();
    Handshake(const Handshake&) = delete;
    Handshake& operator=(const Handshake&) = delete;

    // Begins as the connecting side, which requires receive buffers of this size, makes this offer,
    // and authenticates with `auth` if that is not null.
    void connects(std::size_t required_receive_bytes, const OpenOptions& offered,
                  std::shared_ptr<access::AuthClient> auth) noexcept;
    // Begins as the accepting side of a peer that was judged.
    void accepts(const Hello& peer) noexcept;
    // Call it when the peer has a connection: keeps its admission and its slot until the session is
    // destroyed.
    void admit(std::unique_ptr<AdmittedPeer> admitted, access::PeerSlot slot) noexcept;
    bool is_accepting() const noexcept { return accepting_; }
    void complete() noexcept { complete_ = true; }
    bool is_complete() const noexcept { return complete_; }

    // Writes the connection data to connect or to accept with. Returns the number of bytes.
    std::size_t put_hello(ConnectionData& data);
    // Takes the accepting side's answer. `detail` has the problem; empty: none.
    Closed take_answer(std::span<const std::byte> data);
    // Takes the accepting side's rejection.
    void take_rejection(std::span<const std::byte> data);
    // Adds the reason of the rejection to `closed`.
    void explain(Closed& closed) const;
    // Takes the connecting side's open frame. Returns `nullopt` if it is malformed, the type of the
    // option that this side does not serve, or 0 if it serves all of them.
    [[nodiscard]] std::optional<std::uint16_t> take_open(std::span<const std::byte> body) noexcept;

    // The exchange of session keys, once both sides are authenticated, or null if the level of
    // protection has none. This side changes its key after `key_bytes`.
    access::KeyExchange* exchange(std::uint64_t key_bytes);
    // Destroys the exchange, and its secrets, after it has ended.
    void forget_exchange() noexcept { exchange_.reset(); }

    access::Protection protection() const noexcept;
    access::Cipher cipher() const noexcept;
    // Set once both sides have proved their key.
    const std::optional<access::AuthKeys>& keys() const noexcept { return keys_; }
    // What the peer may do; null: everything.
    const access::Rights* rights() const noexcept;
    const Hello& peer() const noexcept { return peer_; }
    // What both sides offer. Valid once the peer's hello has been taken.
    std::uint8_t features() const noexcept {
        return static_cast<std::uint8_t>(hello_.features & peer_.features);
    }
    const OpenOptions& offered() const noexcept { return offered_; } // by the connecting side
    RejectCode rejection() const noexcept { return rejection_.code; }

  private:
    std::size_t add_proof(ConnectionData& data, std::size_t size);
    std::string check_proof(std::span<const std::byte> data);

    Hello hello_;
    Hello peer_;
    OpenOptions offered_;
    Rejection rejection_{.code = RejectCode::none};
    std::size_t required_receive_bytes_ = least_receive_bytes;
    bool accepting_ = false;
    bool complete_ = false;
    std::shared_ptr<access::AuthClient> auth_; // of the connecting side, with a key
    access::PeerSlot slot_;
    std::unique_ptr<AdmittedPeer> admitted_; // of the accepting side, with keys
    std::optional<access::AuthKeys> keys_;
    std::optional<access::KeyExchange> exchange_;
};

} // namespace netio::inline v0_3
