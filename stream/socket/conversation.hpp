// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conversation: one connection of a StreamSocket, or one attempt at it. It owns all that belongs to
// this connection, so that whatever becomes of it, the next one begins with nothing of it.
//
//     opening --the peer's ring is known--> open --the session is gone--> draining --> ended
//
// Draining: what arrived before the session was lost is still given to the user. The user is called
// by its Delivery, and at the end by Core::on_ended; the socket may be destroyed, and the
// conversation with it, in each of these.

#include "stream/core/wire.hpp"
#include "stream/socket/control_channel.hpp"
#include "stream/socket/delivery.hpp"
#include "stream/socket/distance.hpp"
#include "stream/socket/incoming.hpp"
#include "stream/socket/outgoing.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/session/drain_timer.hpp"
#include "netio/session/session.hpp"
#include "netio/session/session_listener.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace netio::stream::inline v0_2 {

class Conversation final : private Session::Handler {
  public:
    // Connects. Throws FabricError.
    Conversation(StreamSocket::Core& core, Session::Target target);
    // Accepts. Throws FabricError.
    Conversation(StreamSocket::Core& core, IncomingSession& incoming);
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;

    Status send(const Slice& slice, Cookie cookie);
    Status receive(const Slice& slice, Cookie cookie, Fill fill);
    void shutdown_send();
    void close();
    void abort();
    // Ends the session at once. What has arrived is still given to the user, as after a loss.
    void disconnect();
    std::uint64_t filled_bytes() const noexcept { return in_.filled_bytes(); }
    bool move_receive(const Slice& to) { return in_.move_front(to); }

    bool is_open() const noexcept { return state_ == State::open; }
    bool peer_closes() const noexcept { return peer_closes_; }
    const Session& session() const noexcept { return *session_; }
    std::uint64_t queued_bytes() const noexcept { return out_.queued_bytes(); }
    StreamSocket::Counters counters() const;

  private:
    enum class State : std::uint8_t { opening, open, draining, ended };

    Conversation(StreamSocket::Core& core, bool accepts, Lending lending);

    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_written(Session& session, std::uint32_t notice) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    bool on_shutdown(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    void take_ring(std::span<const std::byte> body);
    void take_control(std::span<const std::byte> body);
    bool is_good(ProtocolError error);
    void fail(const std::string& what);

    // What there is to do is done in a turn of its own, never in a call of the user's.
    void wake();
    void progress();
    void tell_peer();
    void shut_down_when_done();
    void drain();
    void end();

    StreamSocket::Core& core_;
    State state_ = State::opening;
    Hello peer_;
    Distance distance_;
    // These outlive the session.
    Incoming in_;
    ControlChannel controls_;
    std::unique_ptr<Session> session_;
    Outgoing out_;
    Delivery delivery_;
    bool peer_closes_ = false;
    bool closing_ = false; // close() or abort() was called
    Closed closed_;        // how the session ended, while draining
    Timer wake_;
    Timer word_;               // when the next control message may leave
    StallAwareTimer ring_due_; // of the peer, while opening
    GracefulClose leave_;      // what is to be sent, and read, before the session may close
};

} // namespace netio::stream::inline v0_2
