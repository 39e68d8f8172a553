// SPDX-License-Identifier: Apache-2.0
#include "netio/netio.hpp"

#include <utility>

namespace netio {

endpoint::endpoint(std::string address, unsigned short port)
    : address_{std::move(address)}, port_{port} {}
std::string endpoint::address() const {
    return address_;
}
unsigned short endpoint::port() const {
    return port_;
}
void event_loop::run() {
    ++turns;
}
void event_loop::stop() {
    turns = 0;
}
context::context(const std::string&) {}
event_loop* context::loop() {
    return &loop_;
}
std::size_t message::size() const {
    return 0;
}
buffered_send_socket::buffered_send_socket(context* owner) : owner_{owner} {}
void buffered_send_socket::connect(const endpoint& remote) {
    open_ = owner_ != nullptr && remote.port() != 0;
}
bool buffered_send_socket::is_open() const {
    return open_;
}
publish_socket::publish_socket(context*, unsigned short) {}
void publish_socket::publish(tag, const message&) {
    ++published;
}

} // namespace netio
