// SPDX-License-Identifier: Apache-2.0
#pragma once

// StreamConnection: one connection of a StreamSocket, or one attempt to connect. It owns all state
// of this connection, so the next connection starts with none of it.
//
//     opening --the peer's ring is known--> open --the session is gone--> draining --> ended
//
// Draining: bytes that arrived before the session was lost are still delivered to the user. The
// user's handler is called by Delivery, and at the end by StreamSocket::Impl::on_ended. In each of
// these calls the user may destroy the socket, and the connection with it.

#include "stream/core/wire.hpp"
#include "stream/socket/directions.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/session/connector.hpp"
#include "netio/session/drain_timer.hpp"
#include "netio/session/session.hpp"
#include "netio/session/session_listener.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace netio::stream::inline v0_3 {

// Sends control messages and rings as frames of the session. A long message needs registered memory
// until it was sent, so this object outlives the session.
class ControlChannel {
  public:
    // Before open() there is no memory, and has_free() is false.
    ControlChannel() = default;
    // Throws std::bad_alloc.
    void open();

    bool has_free() const noexcept { return !free_.empty(); }
    // Only if has_free(). Returns false if the connection has broken; its on_closed follows.
    bool send(const ControlMessage& message, Session& session);
    static Status announce(const RemoteRing& ring, Session& session);

    // Whether a completion of the session belongs to a control message.
    static bool owns(Cookie cookie) noexcept {
        return (static_cast<std::uint64_t>(cookie) & control_cookie) != 0;
    }
    void on_sent(Cookie cookie);

    std::uint64_t sent_count() const noexcept { return sent_count_; }

  private:
    // Control messages with adverts that are in flight at once; each has a slot of memory.
    static constexpr std::uint32_t slot_count = 8;
    // Cookies of the session: the number of a transfer, or this bit and the slot of a message.
    static constexpr std::uint64_t control_cookie = std::uint64_t{1} << 63;

    std::unique_ptr<RegisteredBuffer> memory_;
    std::vector<std::uint32_t> free_;
    std::uint64_t sent_count_ = 0;
};

// Calls the user's handler: for receives, sends, the end of the stream, and canceled operations.
//
// The user may destroy the socket in each call, and Delivery with it. The functions that return a
// bool then return false, and the caller must not use the connection any more.
//
// One turn makes at least one call, and as many as the loop has time for; the rest waits for the
// next turn.
class Delivery {
  public:
    Delivery(StreamSocket::Impl& socket, Incoming& in, Outgoing& out)
        : socket_{socket}, in_{in}, out_{out} {}
    ~Delivery();
    Delivery(const Delivery&) = delete;
    Delivery& operator=(const Delivery&) = delete;

    void begin_turn() noexcept { call_count_ = 0; }
    // Whether the time of this turn is used up, so that other work of the loop must run.
    bool must_yield() const;

    // Reports complete receives, and after the last byte the end of the stream.
    bool report_received();
    bool report_sent();
    // Reports bytes in the ring that have no receive.
    bool report_readable();
    // Call it when send() returned `again`: on_writable follows as soon as it would succeed.
    void request_writable() noexcept { writable_requested_ = true; }
    bool report_writable();

    bool cancel_sends();
    // Reports bytes that have arrived without a receive. Called once.
    bool report_lost();
    bool cancel_receives();

    bool has_ended() const noexcept { return has_ended_; }
    bool has_lost() const noexcept { return has_lost_; }

  private:
    // Returns false if the user has destroyed this object.
    template <typename Call>
    bool call_user(Call call);
    bool report(const Received& received);
    bool report(Cookie sent, Completion::Outcome outcome);

    StreamSocket::Impl& socket_;
    Incoming& in_;
    Outgoing& out_;
    bool has_ended_ = false; // on_end_of_stream was called
    bool has_lost_ = false;  // on_lost was called
    bool writable_requested_ = false;
    std::size_t call_count_ = 0; // in this turn
    bool* destroyed_ = nullptr;
};

class StreamConnection final : private Session::Handler {
  public:
    // Connects. Throws FabricError.
    StreamConnection(StreamSocket::Impl& socket, Session::Target target);
    // Accepts. Throws FabricError.
    StreamConnection(StreamSocket::Impl& socket, IncomingSession& incoming);
    StreamConnection(const StreamConnection&) = delete;
    StreamConnection& operator=(const StreamConnection&) = delete;

    Status send(const Slice& slice, Cookie cookie);
    Status receive(const Slice& slice, Cookie cookie, Fill fill);
    std::span<const std::byte> peek() const { return in_.peek(); }
    void consume(std::size_t bytes);
    void shutdown_send();
    void close();
    void abort();
    // Ends the session at once. Bytes that have arrived are still delivered to the user, as after a
    // loss.
    void disconnect();
    std::uint64_t filled_bytes() const noexcept { return in_.filled_bytes(); }
    bool move_receive(const Slice& to) { return in_.move_front(to); }

    bool is_open() const noexcept { return state_ == State::open; }
    bool peer_closes() const noexcept { return peer_closes_; }
    // Null after the session has ended.
    const Session* session() const noexcept { return session_.get(); }
    std::uint64_t queued_bytes() const noexcept { return out_.queued_bytes(); }
    StreamSocket::Counters counters() const;

  private:
    enum class State : std::uint8_t { opening, open, draining, ended };

    StreamConnection(StreamSocket::Impl& socket, bool accepts, RemoteWriteMode mode);

    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_written(Session& session, std::uint32_t notice) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    bool on_shutdown(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    void on_ring(std::span<const std::byte> body);
    void on_control(std::span<const std::byte> body);
    bool is_good(ProtocolError error);
    void fail(const std::string& what);

    // All work is done in a separate turn of the loop, never during a call of the user.
    void wake();
    void progress();
    void send_controls();
    void shut_down_when_done();
    void drain();
    void end();

    RttEstimator::Duration now() const;

    StreamSocket::Impl& socket_;
    State state_ = State::opening;
    Hello peer_;
    RttEstimator rtt_;
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
    TimePoint next_control_{}; // the next control message is not sent before
    Timer control_timer_;
    StallAwareTimer ring_due_; // the peer's ring, while opening
    GracefulClose leave_;      // what must be sent and read before the session may close
};

// The state of a StreamSocket beyond one connection: its options, the search for a route to the
// peer, and the connection, if there is one.
struct StreamSocket::Impl final : private Connector::Handler {
    Impl(StreamSocket& user, Transport& transport_, Options options_,
         StreamSocket::Handler& handler_);

    // Called by the connection. Each may destroy this.
    void on_open();
    void on_ended(const Closed& closed);

    StreamSocket& socket;
    Transport& transport;
    EventLoop& loop;
    const Options options;
    StreamSocket::Handler& handler;
    Connector connector;
    bool shut_down = false; // shutdown_send() was called
    bool closing = false;   // close() or abort() was called
    // Null without a connection or an attempt at one.
    std::unique_ptr<StreamConnection> connection;
    Counters last_counters; // of the last connection

  private:
    void on_route(const Session::Target& target) override;
    void on_connect_failed(const Closed& closed) override;
};

} // namespace netio::stream::inline v0_3
