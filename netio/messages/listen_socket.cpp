// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/listen_socket.hpp"

#include "netio/messages/listen_core.hpp"

#include <utility>

namespace netio::inline v0_2 {

ListenSocket::ListenSocket(Transport& transport, Options options, Handler& handler)
    : core_{std::make_unique<ListenCore>(*this, transport, std::move(options), handler)} {}

ListenSocket::~ListenSocket() = default;

void ListenSocket::stop_listening() noexcept {
    core_->stop_listening();
}

void ListenSocket::close() {
    core_->close();
}

void ListenSocket::abort() {
    core_->abort();
}

std::vector<Endpoint> ListenSocket::endpoints() const {
    return core_->endpoints();
}

std::size_t ListenSocket::peer_count() const noexcept {
    return core_->peer_count();
}

std::vector<ReceiveSocket*> ListenSocket::peers() const {
    return core_->peers();
}

const ListenSocket::Counters& ListenSocket::counters() const noexcept {
    return core_->counters();
}

} // namespace netio::inline v0_2
