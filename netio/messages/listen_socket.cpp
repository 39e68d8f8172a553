// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/listen_socket.hpp"

#include "netio/loop/check_caller.hpp"
#include "netio/messages/listen_core.hpp"

#include <utility>

namespace netio::inline v0_2 {

ListenSocket::ListenSocket(Transport& transport, Options options, Handler& handler)
    : core_{std::make_unique<ListenCore>(*this, transport, std::move(options), handler)} {}

ListenSocket::~ListenSocket() {
    check_destructor(core_->loop(), "ListenSocket", core_);
}

void ListenSocket::stop_listening() noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "ListenSocket");
    core_->stop_listening();
}

void ListenSocket::close() {
    NETIO_CHECK_CALLER(core_->loop(), "ListenSocket");
    core_->close();
}

void ListenSocket::abort() {
    NETIO_CHECK_CALLER(core_->loop(), "ListenSocket");
    core_->abort();
}

std::vector<Endpoint> ListenSocket::endpoints() const {
    NETIO_CHECK_CALLER(core_->loop(), "ListenSocket");
    return core_->endpoints();
}

std::size_t ListenSocket::peer_count() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "ListenSocket");
    return core_->peer_count();
}

std::vector<ReceiveSocket*> ListenSocket::peers() const {
    NETIO_CHECK_CALLER(core_->loop(), "ListenSocket");
    return core_->peers();
}

const ListenSocket::Counters& ListenSocket::counters() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "ListenSocket");
    return core_->counters();
}

} // namespace netio::inline v0_2
