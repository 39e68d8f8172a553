// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of a ReceiveSocket. Private to netio/messages.

#include "netio/coalescing/reassembly.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/session/session.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace netio::inline v0_2 {

class ReceiveCore final {
  public:
    ReceiveCore(EventLoop& its_loop, std::size_t largest_message_bytes) noexcept
        : loop{its_loop}, socket{*this}, reassembly{largest_message_bytes} {}

    void pause();
    void resume();
    void close();
    void abort();
    void count(std::size_t bytes) noexcept {
        ++counters.messages;
        counters.bytes += bytes;
    }

    EventLoop& loop;
    ReceiveSocket socket;
    Reassembly reassembly;
    ReceiveSocket::Counters counters;
    bool announced = false;
    bool paused = false;
    bool closed = false; // close() or abort() was called here
    std::unique_ptr<Session> session;
};

} // namespace netio::inline v0_2
