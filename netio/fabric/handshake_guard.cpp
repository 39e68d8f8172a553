// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/handshake_guard.hpp"

#include "netio/access/host.hpp"
#include "netio/base/observer.hpp"
#include "netio/fabric/descriptors.hpp"

#include <string>
#include <utility>

namespace netio::fabric {

using access::machine_of;

// --- the pending peers ----------------------------------------------------------------------

void PendingHandshakes::enter(const PendingPeer& pending) {
    forget(pending.fd);
    pending_.emplace(pending.fd, Entry{.peer = pending.peer, .number = next_number_});
    machines_[machine_of(pending.peer.host)].silent.emplace(next_number_++, pending.fd);
}

std::optional<PendingHandshakes::Excess>
PendingHandshakes::excess(const access::AuthAddress& peer) const {
    const auto machine = machines_.find(machine_of(peer.host));
    if (machine == machines_.end()) return std::nullopt;
    const auto& [silent, requested] = machine->second;
    const bool too_many_requested = requested.size() > requested_factor * limit_;
    if (silent.size() <= limit_ && !too_many_requested) return std::nullopt;
    const int fd = (too_many_requested ? requested : silent).begin()->second;
    return Excess{.pending = {.fd = fd, .peer = pending_.at(fd).peer},
                  .has_requested = too_many_requested};
}

void PendingHandshakes::mark_requested(int fd) {
    const auto entry = pending_.find(fd);
    if (entry == pending_.end() || std::exchange(entry->second.has_requested, true)) return;
    Machine& machine = machines_.at(machine_of(entry->second.peer.host));
    machine.silent.erase(entry->second.number);
    machine.requested.emplace(entry->second.number, fd);
}

void PendingHandshakes::forget(int fd) {
    if (const auto entry = pending_.find(fd); entry != pending_.end()) forget(entry);
}

int PendingHandshakes::leave(const access::AuthAddress& peer) {
    const auto machine = machines_.find(machine_of(peer.host));
    if (machine == machines_.end()) return -1;
    for (const Queue* const queue : {&machine->second.requested, &machine->second.silent}) {
        for (const auto& [number, fd] : *queue) {
            const auto found = pending_.find(fd);
            if (found->second.peer != peer) continue;
            const int result = fd;
            forget(found);
            return result;
        }
    }
    return -1;
}

bool PendingHandshakes::knows(const PendingPeer& pending) const {
    const auto found = pending_.find(pending.fd);
    return found != pending_.end() && found->second.peer == pending.peer;
}

void PendingHandshakes::keep(const std::map<int, access::AuthAddress>& present) {
    for (auto entry = pending_.begin(); entry != pending_.end();) {
        const auto there = present.find(entry->first);
        const bool gone = there == present.end() || there->second != entry->second.peer;
        const auto judged = entry++;
        if (gone) forget(judged);
    }
}

void PendingHandshakes::forget(Entries::iterator entry) {
    const auto machine = machines_.find(machine_of(entry->second.peer.host));
    auto& [silent, requested] = machine->second;
    (entry->second.has_requested ? requested : silent).erase(entry->second.number);
    if (silent.empty() && requested.empty()) machines_.erase(machine);
    pending_.erase(entry);
}

// --- the guard ------------------------------------------------------------------------------

HandshakeGuard::HandshakeGuard(EventLoop& loop, const access::AuthAddress& address,
                               const Limits& limits)
    : loop_{loop}, pending_per_host_{limits.pending_per_host}, socket_{address,
                                                                       limits.half_handshake},
      timeout_{limits.handshake}, timer_{loop, [this] { check(); }}, pending_{
                                                                         limits.pending_per_host} {}

void HandshakeGuard::on_accept_ready() {
    if (!timer_.armed()) timer_.start(timeout_);
}

void HandshakeGuard::note(int fd) {
    if (!socket_.has_accepted(fd)) return;
    CloseOnExec::set(fd);
    if (const auto peer = ListeningSocket::peer_of(fd)) enter({.fd = fd, .peer = *peer});
}

void HandshakeGuard::enter(const PendingPeer& pending) {
    pending_.enter(pending);
    while (const auto excess = pending_.excess(pending.peer)) {
        const auto& [fd, peer] = excess->pending;
        const bool is_there = socket_.has_accepted(fd) && ListeningSocket::peer_of(fd) == peer;
        if (is_there && !excess->has_requested && ListeningSocket::has_requested(fd)) {
            pending_.mark_requested(fd);
            continue;
        }
        if (is_there) {
            report_closed(*excess);
            cut_off(fd);
        }
        pending_.forget(fd);
    }
}

void HandshakeGuard::report_closed(const PendingHandshakes::Excess& excess) const {
    Observer* const observer = loop_.observer;
    if (observer == nullptr) return;
    const std::size_t limit =
        pending_per_host_ * (excess.has_requested ? PendingHandshakes::requested_factor : 1);
    observer->on_peer_rejected(
        {.peer = ListeningSocket::name_of_peer(excess.pending.fd),
         .why =
             "more than " + std::to_string(limit) + " connections of its machine " +
             (excess.has_requested ? "wait for an answer here" : "have not sent their request") +
             "; if these are wanted, raise pending_handshakes_per_host (FabricOptions, `fabric:` "
             "in YAML), or let their programs connect fewer sockets at once"});
}

KernelSocket HandshakeGuard::admit(const access::AuthAddress& peer) {
    KernelSocket socket = socket_.find_accepted(peer, pending_.leave(peer));
    if (!socket || !socket.report_all()) return {};
    return socket;
}

void HandshakeGuard::check() {
    Peers present;
    socket_.for_each_pending(
        [&](const access::AuthAddress& peer, int fd) { present.insert_or_assign(fd, peer); });
    pending_.keep(present);
    for (const auto& [fd, peer] : present) {
        const auto seen = last_seen_.find(fd);
        if (seen != last_seen_.end() && seen->second == peer) {
            cut_off(fd);
        } else if (!pending_.knows({.fd = fd, .peer = peer})) {
            enter({.fd = fd, .peer = peer});
        }
    }
    last_seen_ = std::move(present);
    if (!last_seen_.empty()) timer_.start(timeout_);
}

std::size_t HandshakeGuard::close_all() {
    return socket_.cut_off_pending();
}

} // namespace netio::fabric
