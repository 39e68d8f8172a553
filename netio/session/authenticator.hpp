// SPDX-License-Identifier: Apache-2.0
#pragma once

// The implementation of ServerKeys: judges connection requests, knows the admitted peers, and ends
// their sessions when the key file revokes their keys. Private to netio/session.

#include "netio/access/auth.hpp"
#include "netio/access/key_source.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/transport.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
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
    void tell_refused(const std::string& peer_address,
                      const access::AuthServer::Verdict& verdict) const;
    // For operators: the key of a busy verdict, and the limit that it exceeds.
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
    // What to do when the peer's key is revoked. Must not call the user.
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
