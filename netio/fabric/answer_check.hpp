// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the tcp provider from reading what a peer has sent before this side has judged the peer's
// answer. The provider parses messages without checks that hold (docs/security.md), and goes on to
// them when it has read an accept. So the answer is copied from the socket first (MSG_PEEK):
//
//     asking --the provider has sent the request--> waiting
//     waiting --an accept is there--> judging --open()--> open
//     waiting --anything else is there--> passed: the provider makes an error or a rejection of it
//
// The provider may read only where look() says so. It decides without waiting.

#include "netio/fabric/kernel_socket.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace netio::fabric {

class AnswerCheck {
  public:
    // The socket must outlive this.
    explicit AnswerCheck(const KernelSocket& socket) noexcept;

    enum class Next : std::uint8_t {
        read,  // the provider may read: it connects, or there is no accept that it could go on from
        wait,  // it may not; the socket becomes readable
        judge, // it may not before answer() is judged and open() called
        ended, // the peer has ended the connection, and has not answered: error()
    };
    Next look() noexcept;
    // The data of an accept.
    std::span<const std::byte> answer() const noexcept;
    void open() noexcept { let_read(State::open); }
    // An accept was judged.
    bool is_open() const noexcept { return state_ == State::open; }
    // 0: an end in order.
    int error() const noexcept { return error_; }

  private:
    enum class State : std::uint8_t { asking, waiting, judging, passed, open };

    Next look_at_answer() noexcept;
    void let_read(State state) noexcept;

    const KernelSocket& socket_;
    State state_ = State::asking;
    std::array<std::byte, tcp_message_header_bytes + tcp_message_data_bytes> bytes_{};
    std::size_t size_ = 0; // of the whole answer
    int error_ = 0;
};

} // namespace netio::fabric
