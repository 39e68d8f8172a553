// SPDX-License-Identifier: Apache-2.0
#pragma once

// The receiving side of the scenarios: records its callbacks.

#include "netio/messages/listen_socket.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace netio::test {

inline std::vector<std::byte> content(std::size_t size, unsigned salt) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(i * 7 + salt + i / 256);
    return bytes;
}

class Receiver final : public ListenSocket::Handler {
  public:
    struct Message {
        std::vector<std::byte> bytes;
        std::optional<std::uint64_t> immediate;
        std::uint64_t sender = 0;
    };
    void on_connected(ReceiveSocket& socket) override {
        socket.tag = ++connected;
        if (at_connected) at_connected(socket);
    }
    void on_message(ReceiveSocket& socket, std::span<const std::byte> message,
                    std::optional<std::uint64_t> immediate) override {
        messages.push_back({{message.begin(), message.end()}, immediate, socket.tag});
        if (at_message) at_message(socket);
    }
    void on_closed(ReceiveSocket& socket, const Closed& why) override {
        closed.push_back(why);
        closed_tags.insert(socket.tag);
        if (at_closed) at_closed(socket);
    }
    std::uint64_t connected = 0;
    std::vector<Message> messages;
    std::vector<Closed> closed;
    std::set<std::uint64_t> closed_tags;
    std::function<void(ReceiveSocket&)> at_connected, at_message, at_closed;
};

} // namespace netio::test
