// SPDX-License-Identifier: Apache-2.0
#pragma once

// A session is an established connection with this library's protocol: frames in both directions,
// flow control by receive credits, heartbeats, an orderly shutdown. Sockets are built on sessions;
// users of sockets do not see them.
//
//     connecting:  opening --connected, keys exchanged, open frame sent--> open
//     accepting:   opening --connected, keys exchanged--> awaiting the open frame --> open
//     open --close() on either side--> both shut down and confirm it --> closed
//     any --abort(), fail(), broken--> closed          (on_closed is the last event)
//
// A service may also write into memory that the peer has registered for it
// (SessionOptions::remote_writes). The peer is notified of each write by the fabric's immediate
// data, or by a frame after the write if the fabric has none.
//
// Sending never blocks and never queues: a frame either goes to the fabric at once, with its
// borrowed slices, or the result is `again` and on_writable follows when a retry can succeed. Each
// accepted frame with a cookie gets exactly one on_sent. Belongs to the loop's thread; may be
// destroyed in any of its handlers.
//
// The decisions are made by Handshake, SendWindow, ReceiveWindow, Shutdown and Liveness; the
// session carries them out.

#include "netio/session/drain_timer.hpp"
#include "netio/session/frames.hpp"
#include "netio/session/handshake.hpp"
#include "netio/session/receive_window.hpp"
#include "netio/session/send_window.hpp"
#include "netio/session/session_options.hpp"
#include "netio/session/shutdown.hpp"
#include "netio/transport.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace netio::inline v0_3 {

class Session final : private Connection::Handler {
  public:
    class Handler {
      public:
        virtual void on_open(Session& session) = 0;
        virtual void on_frame(Session& session, const IncomingFrame& frame) = 0;
        // The peer has written into memory of this side, with this `notice`. Only with
        // remote_writes.
        virtual void on_written(Session& session, std::uint32_t notice);
        virtual void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) = 0;
        // The peer has shut down: nothing more arrives, and nothing more can be sent. Returns true
        // if the user has received everything; otherwise the service calls confirm() later.
        virtual bool on_shutdown(Session& session);
        // Frames can be sent again, after send() returned `again`.
        virtual void on_writable(Session& session) = 0;
        virtual void on_closed(Session& session, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // Where a session connects to, and how.
    struct Target {
        std::string provider;
        Address remote;
        std::string local_host;                                   // empty: any
        std::size_t required_receive_bytes = least_receive_bytes; // of the peer's receive buffers
        std::shared_ptr<const RouteOffer> offer = nullptr;        // of the route, if there is one
        OpenOptions offered{};
        std::shared_ptr<access::AuthClient> auth = nullptr; // of this route, for all attempts
    };
    // Connects. Throws FabricError if the provider cannot reach the address at all, and
    // std::invalid_argument for options; every later failure is an on_closed.
    Session(Transport& transport, const Target& target, const Hello& hello,
            const SessionOptions& options, Handler& handler);
    // Accepts a peer whose hello was checked (by netio/session/session_listener.hpp). Keeps its
    // admission and its slot until the session is destroyed. Throws what
    // ConnectionRequest::make_connection throws.
    Session(Transport& transport, ConnectionRequest& request, const Hello& peer, const Hello& hello,
            const SessionOptions& options, Handler& handler, std::unique_ptr<AdmittedPeer> admitted,
            access::PeerSlot slot);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Returns ok, again, closed, too_large (for the peer's receive buffers) or too_many_segments.
    // If a slice cannot be registered, the session ends: returns closed, and on_closed(failed)
    // follows. Without a cookie there is no on_sent for this frame.
    Status send(const OutgoingFrame& frame, std::optional<Cookie> cookie);
    // Writes, then notifies the peer. The peer sees both in the order of all sends and writes of
    // this session. Returns ok, again or closed.
    Status write(const OutgoingWrite& write, Cookie cookie);
    // Whether send() would find credits and a slot.
    bool has_capacity() const noexcept;
    // As has_capacity(), but if it returns false, on_writable follows. Call it before a frame is
    // built.
    bool request_capacity();
    bool request_write_capacity();

    // Delivers no more frames and writes of the peer. Arrivals wait and keep their receive buffers,
    // so the peer is soon blocked. Arrivals also wait if the connection ends; on_closed comes after
    // them. Other events continue.
    void pause();
    // In on_frame, after pause(): delivers this end of the frame's body again after resume(), as a
    // frame of the same kind that is `continued`.
    void put_back(std::span<const std::byte> rest);
    // Continues in one of the loop's next turns.
    void resume();

    // In on_frame: bytes of this frame's body that stay valid (netio/memory/keep_pool.hpp). The
    // peer gets the credit for the frame as usual until keep_limit_bytes is reached.
    KeptBytes keep(std::span<const std::byte> bytes);
    // The same for a message that was put together from fragments.
    KeptBytes keep(std::vector<std::byte> message);
    KeepStats kept() const { return receive_.kept(loop_.now()); }
    // Whether the kept memory stays within half of keep_limit_bytes if the user keeps one more
    // receive buffer.
    bool may_keep_buffer() const { return receive_.may_keep_buffer(); }

    // Closes in order: nothing can be sent any more, what was sent arrives, then
    // on_closed(orderly); or on_closed(unconfirmed) if the peer does not confirm. Messages that the
    // peer sends before it receives the shutdown still arrive. `by`, on the clock of attended(), is
    // a time limit in addition to close_limit.
    void close(TimePoint by = TimePoint::max());
    // Closes at once: outstanding sends are canceled, then on_closed(local).
    void abort();
    // Closes at once for a reason that the service found.
    void fail(CloseReason reason, std::string detail);
    // Closes at once because the peer received nothing for this time. The peer is notified if that
    // needs no waiting: if no frame is in flight, and there is a credit. `reason` is for this side.
    void cut_off(CloseReason reason, std::string detail, Duration took_nothing_for);
    // Counts frames of the peer that the service does not deliver to its user. Their number is
    // reported to the peer.
    void add_unread(std::uint32_t count) noexcept;
    // Whether confirm() is due, after on_shutdown() returned false.
    bool awaits_confirmation() const noexcept;
    // Call it when the user has received all frames.
    void confirm();

    // Whether frames may be sent.
    bool is_open() const noexcept { return state_ == State::open && shutdown_.may_send(); }
    // Whether a frame of the peer has arrived: it did more than accept the connection.
    bool has_received() const noexcept { return receive_.has_received(); }
    const Hello& peer() const noexcept { return handshake_.peer(); }
    // What the peer may do here; null: everything.
    const access::Rights* rights() const noexcept { return handshake_.rights(); }
    // Why the listener rejected this side; `none` if it did not, or gave no reason.
    RejectCode rejection() const noexcept { return handshake_.rejection(); }
    const Capabilities& capabilities() const noexcept { return connection_->capabilities(); }
    // Slices of a frame that are sent without copying. Valid while open.
    std::size_t segment_limit() const noexcept { return send_.segment_limit(); }
    // Where to register memory that the peer writes into. The memory must outlive the session.
    MemoryDomain& domain() noexcept { return connection_->domain(); }
    std::string peer_address() const { return connection_->peer_address(); }
    EventLoop& loop() noexcept { return loop_; }
    // Bytes of extension and payload that fit into one frame to this peer.
    std::size_t body_limit() const noexcept { return send_.body_limit(); }
    SessionCounters counters() const noexcept;

  private:
    enum class State : std::uint8_t {
        opening,
        exchanging, // awaits the peer's part of the session keys
        awaiting_open,
        open,
        parting, // sends the reason of an abort
        closing,
        ended // the connection is gone; earlier arrivals are still to be delivered
    };

    Session(Transport& transport, const Hello& hello, const SessionOptions& options,
            Handler& handler, access::Protection protection);

    void on_answer(std::span<const std::byte> data) override;
    void on_connected(std::span<const std::byte> data) override;
    void on_rejected(std::span<const std::byte> data) override;
    void on_completion(const Completion& completion) override;
    void on_closed(const Closed& closed) override;

    void open_connection(std::chrono::milliseconds timeout);
    void open_windows();
    void become_open();
    void check_keep() const noexcept;
    ReceiveWindow& with_wake();
    void on_memory_returned();
    // These return false if the session has ended or was destroyed.
    bool is_answer_genuine(std::span<const std::byte> data);
    bool say_open();
    bool take_keys(std::span<const std::byte> message);
    bool take_arrival(const Completion& completion);
    bool reuse(std::uint32_t index);
    bool take_own_frame(ReceiveWindow::Arrival& arrival);
    bool is_two_way() const noexcept;
    static bool is_done_with(const ReceiveWindow::Arrival& arrival) noexcept;
    bool send_own(FrameKind kind, std::span<const std::byte> body = {});
    bool refuse_open(std::uint16_t option);
    bool protocol_error(const std::string& what);

    template <class Post>
    Status post_or_fail(Post post);
    void deliver_arrivals();
    void deliver(const ReceiveWindow::Arrival& arrival);
    // Sends due frames of the session itself, then notifies the service if it may send.
    void go_on();
    void advance_shutdown();
    void await_peer();
    void abort_with(Closed verdict, const AbortReason& reason);
    void on_deadline();
    void beat();

    const Transport::Use use_;
    EventLoop& loop_;
    SessionOptions options_;
    Handler& handler_;
    State state_ = State::opening;
    Handshake handshake_;
    SendWindow send_;
    ReceiveWindow receive_;
    Shutdown shutdown_;
    Liveness liveness_;
    std::optional<Closed> verdict_; // the reason of the end, once there is one
    bool is_answered_ = false;
    bool is_delivering_ = false;
    bool* destroyed_ = nullptr;
    std::shared_ptr<Session*> self_; // for tasks that may outlive it; made when something is kept
    StallAwareTimer deadline_;       // of connecting, handshake, shutdown and parting
    Timer beat_;
    Timer later_;                            // delivers arrivals that waited
    std::unique_ptr<Connection> connection_; // last: is destroyed first
};

} // namespace netio::inline v0_3
