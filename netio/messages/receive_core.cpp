// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/receive_core.hpp"

namespace netio::inline v0_2 {

void ReceiveCore::pause() {
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
    return core_.session->peer_address();
}

void ReceiveSocket::pause() {
    core_.pause();
}

void ReceiveSocket::resume() {
    core_.resume();
}

void ReceiveSocket::close() {
    core_.close();
}

void ReceiveSocket::abort() {
    core_.abort();
}

const ReceiveSocket::Counters& ReceiveSocket::counters() const noexcept {
    return core_.counters;
}

} // namespace netio::inline v0_2
