// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/doorkeeper.hpp"

#include "netio/fabric/descriptors.hpp"

#include <algorithm>
#include <utility>

namespace netio::fabric {

Doorkeeper::Doorkeeper(EventLoop& loop, const Address& address, const Limits& limits)
    : socket_{address, limits.half_handshake},
      stranger_timeout_{limits.stranger}, timer_{loop, [this] { look(); }} {}

void Doorkeeper::knock() {
    if (!timer_.armed()) timer_.start(stranger_timeout_);
}

void Doorkeeper::note(int fd) {
    if (!socket_.has_accepted(fd)) return;
    CloseOnExec::set(fd);
    if (const auto peer = ListeningSocket::peer_of(fd)) guests_[fd] = *peer;
}

KernelSocket Doorkeeper::admit(const Address& peer) {
    const auto guest =
        std::ranges::find(guests_, peer, [](const auto& entry) { return entry.second; });
    KernelSocket socket = socket_.find_accepted(peer, guest == guests_.end() ? -1 : guest->first);
    if (guest != guests_.end()) guests_.erase(guest);
    return socket;
}

void Doorkeeper::look() {
    guests_.clear();
    socket_.for_each_stranger(
        [this](const Address& peer, int fd) { guests_.insert_or_assign(fd, peer); });
    for (const auto& [fd, peer] : guests_) {
        const auto suspect = suspects_.find(fd);
        if (suspect != suspects_.end() && suspect->second == peer) cut_off(fd);
    }
    suspects_ = guests_;
    if (!suspects_.empty()) timer_.start(stranger_timeout_);
}

std::size_t Doorkeeper::clear_out() {
    return socket_.cut_off_strangers();
}

} // namespace netio::fabric
