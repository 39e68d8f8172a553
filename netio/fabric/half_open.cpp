// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/half_open.hpp"

#include "netio/access/host.hpp"

#include <utility>

namespace netio::fabric {
using access::machine_of;

void HalfOpen::enter(const Guest& guest) {
    forget(guest.fd);
    guests_.emplace(guest.fd, Entry{.peer = guest.peer, .number = next_number_});
    machines_[machine_of(guest.peer.host)].waiting.emplace(next_number_++, guest.fd);
}

std::optional<HalfOpen::Excess> HalfOpen::excess(const access::GateAddress& peer) const {
    const auto machine = machines_.find(machine_of(peer.host));
    if (machine == machines_.end()) return std::nullopt;
    const auto& [waiting, asking] = machine->second;
    const bool too_many_ask = asking.size() > asking_per_waiting * limit_;
    if (waiting.size() <= limit_ && !too_many_ask) return std::nullopt;
    const int fd = (too_many_ask ? asking : waiting).begin()->second;
    return Excess{.guest = {.fd = fd, .peer = guests_.at(fd).peer}, .is_asking = too_many_ask};
}

void HalfOpen::note_asking(int fd) {
    const auto entry = guests_.find(fd);
    if (entry == guests_.end() || std::exchange(entry->second.is_asking, true)) return;
    Machine& machine = machines_.at(machine_of(entry->second.peer.host));
    machine.waiting.erase(entry->second.number);
    machine.asking.emplace(entry->second.number, fd);
}

void HalfOpen::forget(int fd) {
    if (const auto entry = guests_.find(fd); entry != guests_.end()) forget(entry);
}

int HalfOpen::leave(const access::GateAddress& peer) {
    const auto machine = machines_.find(machine_of(peer.host));
    if (machine == machines_.end()) return -1;
    for (const Queue* const queue : {&machine->second.asking, &machine->second.waiting}) {
        for (const auto& [number, fd] : *queue) {
            const auto found = guests_.find(fd);
            if (found->second.peer != peer) continue;
            const int result = fd;
            forget(found);
            return result;
        }
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
    auto& [waiting, asking] = machine->second;
    (entry->second.is_asking ? asking : waiting).erase(entry->second.number);
    if (waiting.empty() && asking.empty()) machines_.erase(machine);
    guests_.erase(entry);
}

} // namespace netio::fabric
