// SPDX-License-Identifier: Apache-2.0
#pragma once

// A session is an established connection that speaks our protocol: frames in both directions, flow
// control by receive credits, heartbeats, an orderly shutdown. Sockets are made of sessions; users
// of sockets do not see them.
//
//     connecting:  opening --connected, open frame sent--> open
//     accepting:   opening --connected--> awaiting the open frame --> open
//     open --close() here or there--> both shut down and confirm it --> closed
//     any --abort(), fail(), broken--> closed          (on_closed: the last word)
//
// A service may also write into memory that the peer has lent it (SessionOptions::remote_writes);
// the peer is told of each write by the fabric's immediate data, or by a frame behind the write
// where there is none.
//
// Sending never blocks and never queues: a frame either goes to the fabric at once, with its lent
// slices, or the answer is `again` and on_writable follows when it is worth trying. Every accepted
// frame that asked for it is answered by exactly one on_sent. Belongs to the loop's thread; may be
// destroyed in any of its handlers.
//
// How it does so is in netio/session/session_core.hpp and the classes that that is made of.

#include "netio/session/frames.hpp"
#include "netio/session/hello.hpp"
#include "netio/session/open_options.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace netio::access::inline v0_2 {
class GateClient;
struct Rights;
} // namespace netio::access::inline v0_2

namespace netio::inline v0_2 {

class Admittance;
class SessionCore;

class Session final {
  public:
    class Handler {
      public:
        virtual void on_open(Session& session) = 0;
        virtual void on_frame(Session& session, const IncomingFrame& frame) = 0;
        // The peer has written here, and says so with its `notice`. Only with remote_writes.
        virtual void on_written(Session& session, std::uint32_t notice);
        virtual void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) = 0;
        // The peer has shut down: nothing more comes, and nothing more can be sent. true: the user
        // was given everything; false: confirm() follows when that is so.
        virtual bool on_shutdown(Session& session);
        // Frames can be sent again after send() said that they could not.
        virtual void on_writable(Session& session) = 0;
        virtual void on_closed(Session& session, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // Connects. Throws FabricError if the provider cannot reach the address at all, and
    // std::invalid_argument for options; every later failure is an on_closed.
    struct Target {
        std::string provider;
        Address remote;
        std::string local_host;                                   // empty: any
        std::size_t required_receive_bytes = least_receive_bytes; // of the peer's receive buffers
        std::shared_ptr<const RouteOffer> offer = nullptr;        // of the route, if there is one
        OpenOptions offered{};
        std::shared_ptr<access::GateClient> gate = nullptr; // of this route, for all its attempts
    };
    Session(Transport& transport, const Target& target, const Hello& hello,
            const SessionOptions& options, Handler& handler);
    // Accepts a peer whose hello has been checked (netio/session/session_listener.hpp does), which
    // has its place as long as the session is there. Throws as ConnectionRequest::make_connection.
    Session(Transport& transport, ConnectionRequest& request, const Hello& peer, const Hello& hello,
            const SessionOptions& options, Handler& handler, std::unique_ptr<Admittance> admittance,
            std::shared_ptr<const void> place);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // ok, again, closed, too_large (than the peer's receive buffers), too_many_segments. A slice
    // that cannot be registered ends the session: closed, and on_closed(failed) follows. `cookie`
    // absent: no on_sent for this frame.
    Status send(const OutgoingFrame& frame, std::optional<Cookie> cookie);
    // Writes, then tells the peer. It sees both in the order of all sends and writes of this
    // session. ok, again, closed.
    Status write(const OutgoingWrite& write, Cookie cookie);
    // Whether send() would find credits and a slot.
    bool has_capacity() const noexcept;
    // For those who ask before they make up what to send: false means that on_writable follows.
    bool request_capacity();
    bool request_write_capacity();

    // Hands over no more frames and writes of the peer's; what has arrived waits, keeps its receive
    // buffer, and so holds the peer up before long. What has arrived when the connection ends waits
    // too: on_closed comes behind it. Other events go on.
    void pause();
    // In on_frame, after pause(): this end of the frame's body comes again, as a frame of the same
    // kind that is `continued`, after resume().
    void keep(std::span<const std::byte> rest);
    // Goes on in one of the loop's next turns.
    void resume();

    // Ends in order: nothing can be sent any more, what was sent arrives, then on_closed(orderly);
    // or on_closed(unconfirmed), if the peer does not confirm that. What the peer sends until it
    // has heard of it still arrives. `by`, on the clock of attended(): no later than so,
    // if that is before close_limit.
    void close(TimePoint by = TimePoint::max());
    // Ends at once: outstanding sends are canceled, then on_closed(local).
    void abort();
    // Ends at once for a reason that the service found.
    void fail(CloseReason reason, std::string detail);
    // Ends because the peer took nothing for so long, which it is told if that costs no waiting:
    // if nothing is in the fabric's hands, and there is a credit. `reason` is for this side.
    void cut_off(CloseReason reason, std::string detail, Duration took_nothing_for);
    // The service does not give its user so many frames of the peer's, which will be told.
    void add_unread(std::uint32_t count) noexcept;
    // The user was given all others; after on_shutdown() said that it was not yet so.
    bool awaits_confirmation() const noexcept;
    void confirm();

    // Frames may be sent.
    bool is_open() const noexcept;
    // A frame of the peer's has come: it did not only accept the connection.
    bool has_heard() const noexcept;
    const Hello& peer() const noexcept;
    // What the peer may do here. Null: everything that it can.
    const access::Rights* rights() const noexcept;
    // Why the listener did not want us; none: it did, or did not say.
    RejectCode rejection() const noexcept;
    const Capabilities& capabilities() const noexcept;
    // Slices of a frame that leave from where they lie; those of a longer list are copied. Valid
    // while open.
    std::size_t segment_limit() const noexcept;
    // Where to register memory that the peer is to write to. It must outlive the session.
    MemoryDomain& domain() noexcept;
    std::string peer_address() const;
    EventLoop& loop() noexcept;
    // Bytes of extension and payload that fit into one frame to this peer.
    std::size_t body_limit() const noexcept;
    SessionCounters counters() const noexcept;

  private:
    std::unique_ptr<SessionCore> core_;
};

} // namespace netio::inline v0_2
