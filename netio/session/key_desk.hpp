// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of ServerKeys: who is judged, who is there, and what becomes of them when the file
// changes. Private to netio/session.

#include "netio/access/access_control.hpp"
#include "netio/access/key_source.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/transport.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace netio::inline v0_2 {

class Admittance;
class SessionListener;

class KeyDesk final {
  public:
    KeyDesk(EventLoop& loop, const ServerKeys::Options& options);
    ~KeyDesk() = default;
    KeyDesk(const KeyDesk&) = delete;
    KeyDesk& operator=(const KeyDesk&) = delete;

    bool is_of(const EventLoop& loop) const noexcept { return &loop == &loop_; }
    access::Gate::Verdict judge(const ConnectionRequest& request, access::Attendance::Place& place);
    // Behind the answer to a peer that was refused.
    void tell_refused(const std::string& peer_address, const access::Gate::Verdict& verdict) const;
    // For operators: whose key it is that a busy verdict is about, and what it has enough of.
    std::string shortage(const access::Gate::Verdict& verdict) const;

    bool keeps_strangers_out() const { return control_.keeps_strangers_out(); }
    // Where other machines reach a listener, which nobody has said to be open: for a change of the
    // file to be compared with.
    void guard(const SessionListener& listener, const std::string& address) {
        guarded_[&listener] = address;
    }
    void forget(const SessionListener& listener) noexcept { guarded_.erase(&listener); }

    void enter(Admittance& one) { present_.insert(&one); }
    void leave(Admittance& one) noexcept { present_.erase(&one); }
    ServerKeys::Counters counters() const noexcept;

  private:
    void look();

    EventLoop& loop_;
    ServerKeys::Options options_;
    access::SystemKeySource source_;
    access::AccessControl control_;
    std::set<Admittance*> present_;
    std::map<const SessionListener*, std::string> guarded_;
    Timer look_timer_;
};

// One who was admitted, and takes up a place until this is destroyed.
class Admittance final {
  public:
    Admittance(std::shared_ptr<ServerKeys> keys, access::Admission admission,
               access::Attendance::Place place);
    ~Admittance();
    Admittance(const Admittance&) = delete;
    Admittance& operator=(const Admittance&) = delete;

    const access::Admission& admission() const noexcept { return admission_; }
    // What is to be done when the key is not any more what it was. Must not call the user.
    void set_revocation(std::function<void()> revoke) { revoke_ = std::move(revoke); }
    void revoke() const {
        if (revoke_) revoke_();
    }

  private:
    std::shared_ptr<ServerKeys> keys_;
    access::Admission admission_;
    access::Attendance::Place place_; // goes before the keys that it is one of
    std::function<void()> revoke_;
};

} // namespace netio::inline v0_2
