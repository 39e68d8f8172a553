// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/receive_core.hpp"

#include "netio/loop/check_caller.hpp"

namespace netio::inline v0_2 {

void ReceiveCore::pause() {
    if (closed) return; // nothing is handed over that could be held back, but the end
    paused = true;
    session->pause();
}

void ReceiveCore::resume() {
    paused = false;
    session->resume();
}

void ReceiveCore::close() {
    closed = true;
    session->close();
    resume(); // what waits is not wanted any more, and the sender is to know
}

void ReceiveCore::abort() {
    closed = true;
    session->abort();
    resume();
}

std::string ReceiveSocket::peer_address() const {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    return core_.session->peer_address();
}

void ReceiveSocket::pause() {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    core_.pause();
}

void ReceiveSocket::resume() {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    core_.resume();
}

void ReceiveSocket::close() {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    core_.close();
}

void ReceiveSocket::abort() {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    core_.abort();
}

const ReceiveSocket::Counters& ReceiveSocket::counters() const noexcept {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    return core_.counters;
}

} // namespace netio::inline v0_2
