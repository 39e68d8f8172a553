// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/doorkeeper.hpp"

#include "netio/base/observer.hpp"
#include "netio/fabric/descriptors.hpp"

#include <string>
#include <utility>

namespace netio::fabric {

Doorkeeper::Doorkeeper(EventLoop& loop, const access::GateAddress& address, const Limits& limits)
    : loop_{loop}, strangers_per_host_{limits.strangers_per_host},
      socket_{address, limits.half_handshake}, stranger_timeout_{limits.stranger},
      timer_{loop, [this] { look(); }}, guests_{limits.strangers_per_host} {}

void Doorkeeper::knock() {
    if (!timer_.armed()) timer_.start(stranger_timeout_);
}

void Doorkeeper::note(int fd) {
    if (!socket_.has_accepted(fd)) return;
    CloseOnExec::set(fd);
    if (const auto peer = ListeningSocket::peer_of(fd)) enter({.fd = fd, .peer = *peer});
}

void Doorkeeper::enter(const HalfOpen::Guest& guest) {
    guests_.enter(guest);
    while (const auto excess = guests_.excess(guest.peer)) {
        const auto& [fd, peer] = excess->guest;
        const bool is_there = socket_.has_accepted(fd) && ListeningSocket::peer_of(fd) == peer;
        if (is_there && !excess->is_asking && ListeningSocket::has_asked(fd)) {
            guests_.note_asking(fd);
            continue;
        }
        if (is_there) {
            tell_cut_off(*excess);
            cut_off(fd);
        }
        guests_.forget(fd);
    }
}

void Doorkeeper::tell_cut_off(const HalfOpen::Excess& excess) const {
    Observer* const observer = loop_.observer;
    if (observer == nullptr) return;
    const std::size_t limit =
        strangers_per_host_ * (excess.is_asking ? HalfOpen::asking_per_waiting : 1);
    observer->on_peer_rejected(
        {.peer = ListeningSocket::name_of_peer(excess.guest.fd),
         .why = "more than " + std::to_string(limit) + " connections of its machine " +
                (excess.is_asking ? "wait for an answer here" : "have not sent their request") +
                "; if these are wanted, raise strangers_per_host_limit (FabricOptions, `fabric:` "
                "in YAML), or let their programs connect fewer sockets at once"});
}

KernelSocket Doorkeeper::admit(const access::GateAddress& peer) {
    KernelSocket socket = socket_.find_accepted(peer, guests_.leave(peer));
    if (!socket || !socket.report_all()) return {};
    return socket;
}

void Doorkeeper::look() {
    Strangers present;
    socket_.for_each_stranger(
        [&](const access::GateAddress& peer, int fd) { present.insert_or_assign(fd, peer); });
    guests_.keep(present);
    for (const auto& [fd, peer] : present) {
        const auto suspect = suspects_.find(fd);
        if (suspect != suspects_.end() && suspect->second == peer) {
            cut_off(fd);
        } else if (!guests_.knows({.fd = fd, .peer = peer})) {
            enter({.fd = fd, .peer = peer});
        }
    }
    suspects_ = std::move(present);
    if (!suspects_.empty()) timer_.start(stranger_timeout_);
}

std::size_t Doorkeeper::clear_out() {
    return socket_.cut_off_strangers();
}

} // namespace netio::fabric
