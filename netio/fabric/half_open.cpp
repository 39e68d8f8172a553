// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/half_open.hpp"

#include <algorithm>

namespace netio::fabric {
namespace {

// A machine has one IPv4 address here, and as many IPv6 addresses of its network as it likes.
access::Host machine_of(const access::Host& host) {
    const access::Host ipv4 = access::host_of_ipv4(std::array<std::byte, 4>{});
    if (std::equal(host.begin(), host.begin() + 12, ipv4.begin())) return host;
    access::Host network = host;
    std::fill(network.begin() + 8, network.end(), std::byte{});
    return network;
}

} // namespace

std::optional<HalfOpen::Guest> HalfOpen::enter(const Guest& guest) {
    if (const auto before = guests_.find(guest.fd); before != guests_.end()) forget(before);
    guests_.emplace(guest.fd, Entry{.peer = guest.peer, .number = next_number_});
    Waiting& waiting = machines_[machine_of(guest.peer.host)];
    waiting.emplace(next_number_++, guest.fd);
    if (waiting.size() <= limit_) return std::nullopt;
    const auto longest = guests_.find(waiting.begin()->second);
    const Guest result{.fd = longest->first, .peer = longest->second.peer};
    forget(longest);
    return result;
}

int HalfOpen::leave(const access::GateAddress& peer) {
    const auto machine = machines_.find(machine_of(peer.host));
    if (machine == machines_.end()) return -1;
    for (const auto& [number, fd] : machine->second) {
        const auto found = guests_.find(fd);
        if (found->second.peer != peer) continue;
        const int result = fd;
        forget(found);
        return result;
    }
    return -1;
}

bool HalfOpen::knows(const Guest& guest) const {
    const auto found = guests_.find(guest.fd);
    return found != guests_.end() && found->second.peer == guest.peer;
}

void HalfOpen::keep(const std::map<int, access::GateAddress>& present) {
    for (auto entry = guests_.begin(); entry != guests_.end();) {
        const auto there = present.find(entry->first);
        const bool gone = there == present.end() || there->second != entry->second.peer;
        const auto judged = entry++;
        if (gone) forget(judged);
    }
}

void HalfOpen::forget(Entries::iterator entry) {
    const auto machine = machines_.find(machine_of(entry->second.peer.host));
    machine->second.erase(entry->second.number);
    if (machine->second.empty()) machines_.erase(machine);
    guests_.erase(entry);
}

} // namespace netio::fabric
