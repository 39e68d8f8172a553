// SPDX-License-Identifier: Apache-2.0
#pragma once

// A byte stream in both directions over remote writes, by the dynamic stream protocol
// (docs/stream-protocol.md): what finds a receive waiting at the peer is written straight into its
// memory, the rest through a ring there; the two sides switch between the two by themselves.
//
//     struct Handler : stream::StreamSocket::Handler { ... } handler;
//     stream::StreamSocket socket{*transport, {}, handler};
//     socket.connect(parse_address("10.0.0.1:1234"));
//     // in on_connected:
//     Status status = socket.send(buffer.slice(0, 1 << 20), Cookie{1});
//     status = socket.receive(other.slice(), Cookie{2}, stream::Fill::some);
//
// Sends and receives are asynchronous: several may be outstanding, each lends its memory until its
// completion and ends in exactly one. They complete in the order of their posting. A call never
// calls back. The other end is a socket that a StreamListener has made.
//
// The end: finish() closes this direction only; the peer sees on_end_of_stream once it has received
// everything. When both directions have ended, or with close() when everything was sent, the
// connection says goodbye. on_closed is the last word. Belongs to the loop's thread; may be
// destroyed in any of its handlers, and frees all lent memory then.

#include "netio/base/export.hpp"
#include "stream/core/receiver.hpp"
#include "stream/core/ring_gauge.hpp"
#include "stream/core/sender.hpp"
#include "stream/core/wire.hpp"

#include "netio/session/session.hpp"
#include "netio/session/session_listener.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::stream::inline v0_2 {

// When a receive is complete.
enum class Fill : std::uint8_t {
    some, // with what has arrived, at least one byte
    all,  // when it is full, or the stream ends (MSG_WAITALL)
};

struct StreamOptions {
    // Policies and sizes of the two directions. receiver.ring_bytes is the ring that is allocated
    // here, which grows over a distance: 64 MiB carry 10 Gb/s over 50 ms. sender.ring_bytes is the
    // peer's and filled in, as is the peer's limit of adverts.
    SenderOptions sender = improved_sender(0);
    ReceiverOptions receiver = improved_receiver(1024 * 1024, 64 * 1024 * 1024);
    // receive_count bounds the messages of the peer that are under way, send_count ours.
    SessionOptions session = {
        .receive_bytes = 1312, .receive_count = 256, .send_count = 64, .remote_writes = true};
    std::size_t send_limit_count = 1024;        // sends outstanding at once
    std::size_t receive_limit_count = 1024;     // and receives
    std::uint64_t copy_step_bytes = 256 * 1024; // copied out of the ring before others have a turn
    // To the peer and back, for a ring that may grow (P11); 0: as measured when connecting.
    std::chrono::nanoseconds round_trip{0};
    std::string local_host; // to connect from; empty: any
};
// The 2014 study's policy with a ring of this size.
NETIO_EXPORT StreamOptions published_stream(std::uint64_t ring_bytes);
// Throws std::invalid_argument naming the option and what is allowed.
NETIO_EXPORT void validate(const StreamOptions& options);

struct StreamCounters {
    SenderCounters sent;
    ReceiverCounters received;
    std::uint64_t waits_for_room = 0; // times that bytes waited for credits or for a send slot
    std::uint64_t controls = 0;       // control messages sent
};

class NETIO_EXPORT StreamSocket final : private Session::Handler {
  public:
    struct Received {
        Cookie key{};
        std::uint64_t bytes = 0; // may be less than asked for, even 0, if the stream has ended
        Completion::Outcome outcome = Completion::Outcome::done;
        bool end_of_stream = false;
    };

    class Handler {
      public:
        virtual void on_connected(StreamSocket& socket) = 0;
        // The memory behind `key` may be used again. done: all of it is on its way. After the
        // connection is lost, what had not left is given back, canceled, with on_closed: not before
        // everything that had arrived was taken.
        virtual void on_send_completed(StreamSocket& socket, Cookie key,
                                       Completion::Outcome outcome) = 0;
        // The memory behind the key is the user's again. canceled: the connection has ended; the
        // first `bytes` are good.
        virtual void on_received(StreamSocket& socket, const Received& received) = 0;
        // Every byte the peer sent is in a receive, and it sends no more. Once.
        virtual void on_end_of_stream(StreamSocket& socket) = 0;
        // Outstanding sends and receives were completed before it. The socket may connect again.
        // orderly: the user of the peer has received everything that was sent here.
        virtual void on_closed(StreamSocket& socket, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    StreamSocket(Transport& transport, StreamOptions options, Handler& handler);
    ~StreamSocket();
    StreamSocket(const StreamSocket&) = delete;
    StreamSocket& operator=(const StreamSocket&) = delete;

    // Tries the providers that reach the address, best first; on_connected or on_closed follows.
    // Not while connected or connecting (checked). Throws FabricError: no provider reaches it.
    void connect(const Address& remote);

    // ok, again (send_limit_count are outstanding), closed (not connected, or finish() was called).
    // Throws FabricError if the memory cannot be registered.
    Status send(const Slice& slice, Cookie key);
    // The memory's buffer has Access::remote_write (checked). A receive cannot be withdrawn. ok,
    // again (receive_limit_count), closed. Legal also after the peer's end: it completes with 0.
    Status receive(const Slice& slice, Cookie key, Fill fill);

    // No more sends; the peer sees the end of the stream behind the last byte.
    void finish();
    // finish(), and shutdown as soon as everything was sent; on_closed(orderly) follows when the
    // peer has received it. What the peer still sends is not received any more.
    void close();
    // Ends at once: what is outstanding is canceled, then on_closed(local).
    void abort();

    bool is_connected() const noexcept { return state_ == State::open; }
    // Bytes handed to send() that are not on their way yet.
    std::uint64_t queued_bytes() const noexcept { return sender_ ? sender_->queued_bytes() : 0; }
    // Of this connection; of the last one once it has ended.
    StreamCounters counters() const noexcept;
    // Valid while connected.
    std::string peer_address() const { return session_->peer_address(); }
    const std::string& provider() const noexcept { return session_->capabilities().provider; }

  private:
    friend class IncomingStream;
    // idle -> linking -> open -> draining -> ending -> idle
    enum class State : std::uint8_t {
        idle,
        linking, // until the peer's ring is known
        open,
        draining, // the session is gone, and what arrived before is still to be received
        ending,   // what is outstanding is being canceled
    };
    struct Lent {
        Slice slice;
        Cookie key;
    };

    void accept(IncomingSession& incoming);
    netio::Hello hello() const;
    void try_next_provider();
    void reset();

    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_written(Session& session, std::uint32_t notice) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    bool on_shutdown(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    void note_round_trip(TimePoint begin);
    void make_gauge();
    RemoteRing add_ring(std::uint64_t bytes);
    Status announce(const RemoteRing& ring);
    void take_ring(std::span<const std::byte> body);
    void take_first_ring(const RemoteRing& ring);
    void grow_ring();
    void drop_unused_ring();
    void take_control(std::span<const std::byte> body);
    bool is_good(ProtocolError error);
    void fail(const std::string& what);

    // What there is to do is done in a turn of its own, never in a call of the user's.
    void wake();
    void progress();
    void copy_out();
    // False: a handler has destroyed this socket.
    bool deliver_sends();
    bool deliver_receives();
    bool deliver_end();
    void send_controls();
    bool send_control(const ControlMessage& message);
    Advert complete(const LocalAdvert& advert);
    void send_transfers();
    bool post(const Transfer& transfer, std::span<const Piece> pieces);
    void confirm_when_taken();
    void end_link_when_done();
    void end();

    Transport& transport_;
    StreamOptions options_;
    Handler& handler_;
    State state_ = State::idle;
    Address remote_;
    std::vector<std::string> providers_; // still to be tried, best last
    Hello peer_;
    RemoteRing peer_ring_;
    std::optional<TimePoint> accepted_at_;
    TimePoint ring_announced_at_; // the first
    RingGauge::Duration round_trip_ = RingGauge::Duration::max();
    std::optional<RingGauge> gauge_; // once the peer has answered that
    // These two outlive the session.
    Fifo<std::unique_ptr<RegisteredBuffer>> rings_; // one, or two while they change
    std::uint32_t first_ring_ = 0;                  // number (Copy::ring) of the front
    std::unique_ptr<RegisteredBuffer> control_memory_;
    std::vector<std::uint32_t> free_controls_; // of control_memory_, for messages under way
    std::unique_ptr<Session> session_;
    std::optional<Sender> sender_;
    std::optional<Receiver> receiver_;
    Fifo<Lent> sends_;    // in the order of their ids; the front's is first_send_
    Fifo<Lent> receives_; // the same
    std::uint64_t first_send_ = 0;
    std::uint64_t first_receive_ = 0;
    bool finishing_ = false; // finish() was called
    bool fin_sent_ = false;
    bool fin_received_ = false;
    bool end_told_ = false;
    bool closing_ = false; // close() or abort() was called
    bool waiting_for_room_ = false;
    StreamCounters counters_; // without those of the live sender and receiver
    Closed closed_;           // the last word, while draining
    bool* destroyed_ = nullptr;
    Timer wake_;
};

} // namespace netio::stream::inline v0_2
