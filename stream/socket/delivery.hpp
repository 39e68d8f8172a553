// SPDX-License-Identifier: Apache-2.0
#pragma once

// Delivery: gives the user of a stream what is due to him, by his handler: what was received, what
// was sent, the end of the stream, and what will never be.
//
// The user may destroy the socket in each of these, and this with it: those that answer a bool
// answer false then, and the caller touches nothing of it.
//
// A turn tells as much as the loop has time for, and once at least; the rest waits for the next.

#include "stream/socket/incoming.hpp"
#include "stream/socket/outgoing.hpp"
#include "stream/socket/stream_socket.hpp"

#include <cstddef>

namespace netio::stream::inline v0_2 {

class Delivery {
  public:
    // `in` and `out` outlive it.
    Delivery(StreamSocket::Core& core, Incoming& in, Outgoing& out)
        : core_{core}, in_{in}, out_{out} {}
    ~Delivery();
    Delivery(const Delivery&) = delete;
    Delivery& operator=(const Delivery&) = delete;

    // Another turn.
    void begin_turn() noexcept { told_count_ = 0; }
    // Behind a call of the user's, and the time is up: others have their turn first.
    bool is_held_up() const;

    // Receives that are complete, and the end of the stream behind the last byte of it.
    bool received();
    // Sends that have left.
    bool sent();
    // send() was refused: on_writable is due when it would not be.
    void owe_writable() noexcept { owes_writable_ = true; }
    bool writable();

    // Sends that can never leave.
    bool canceled_sends();
    // Bytes have arrived that no receive is there for. Once.
    bool lost();
    // Receives that nothing more comes for.
    bool canceled_receives();

    bool has_ended() const noexcept { return has_ended_; }
    bool has_lost() const noexcept { return has_lost_; }

  private:
    // False: the user has destroyed this.
    template <typename Call>
    bool call_user(Call call);
    bool tell(const Received& received);
    bool tell(Cookie sent, Completion::Outcome outcome);

    StreamSocket::Core& core_;
    Incoming& in_;
    Outgoing& out_;
    bool has_ended_ = false; // on_end_of_stream was called
    bool has_lost_ = false;  // on_lost was called
    bool owes_writable_ = false;
    std::size_t told_count_ = 0; // in this turn
    bool* destroyed_ = nullptr;
};

} // namespace netio::stream::inline v0_2
