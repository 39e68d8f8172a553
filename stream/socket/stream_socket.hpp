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
// Over kernel sockets no peer writes into memory: bytes come in frames, with one copy (R16), unless
// Options::remote_writes says that the peer is trusted with the process. Over RDMA a peer that is
// told of a receive may write into all of its buffer, and may go on doing so after the receive is
// complete, for as long as the buffer and the connection live. So give each peer that you do not
// trust a buffer of its own, or none at all: with an indirect-only receiver (ReceiverOptions::mode)
// a peer reaches nothing but the ring.
//
// The end: shutdown_send() ends this direction only; the peer sees on_end_of_stream once it has
// received everything. When both directions have ended, or with close() when everything was sent,
// the connection is closed in order. on_closed is the last event. Belongs to the loop's thread; may
// be destroyed in any of its handlers, and frees all lent memory then.

#include "netio/base/export.hpp"
#include "netio/base/latency_histogram.hpp"
#include "stream/core/counters.hpp"
#include "stream/core/options.hpp"

#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace netio::inline v0_3 {
class ClientKey;
class IncomingSession;
} // namespace netio::inline v0_3

namespace netio::stream::inline v0_3 {

// When a receive is complete.
enum class Fill : std::uint8_t {
    some, // with what has arrived, at least one byte
    all,  // when it is full, or the stream ends (MSG_WAITALL)
};

// Whether the peer writes into this side's memory: into the ring, and into advertised receives.
// Else bytes arrive in frames and are copied.
enum class RemoteWrites : std::uint8_t {
    guarded, // where a device checks each write (RDMA), or the peer's key has the right `rma`
    // Everywhere. Over kernel sockets the peer can then write to any memory of the process. From a
    // peer with a key it is guarded: its right decides.
    trusted,
    never,
};

struct Received {
    Cookie cookie{};
    std::uint64_t bytes = 0; // may be less than asked for, even 0, if the stream has ended
    Completion::Outcome outcome = Completion::Outcome::done;
    bool end_of_stream = false;
};

class NETIO_EXPORT StreamSocket final {
  public:
    struct Options {
        // Policies and sizes of the two directions. receiver.ring_bytes is the ring that is
        // allocated here, which grows over a distance: 64 MiB carry 10 Gb/s over 50 ms.
        // sender.ring_bytes is the peer's and filled in, as is the peer's limit of adverts.
        SenderOptions sender = improved_sender(0);
        ReceiverOptions receiver = improved_receiver(1024 * 1024, 64 * 1024 * 1024);
        // receive_count bounds the messages of the peer that are under way, send_count ours.
        // remote_writes follows from what is below.
        SessionOptions session = {.receive_bytes = 1312, .receive_count = 256, .send_count = 64};
        RemoteWrites remote_writes = RemoteWrites::guarded;
        // Where bytes come in frames: the most in one, and how many are taken at once, instead of
        // the session's. Together they bound what is under way.
        std::size_t frame_bytes = 128 * 1024;
        std::size_t frame_count = 16;
        std::size_t send_limit_count = 1024;        // sends outstanding at once
        std::size_t receive_limit_count = 1024;     // and receives
        std::uint64_t copy_step_bytes = 256 * 1024; // copied from the ring before others' turn
        // To the peer and back, for a ring that may grow (P11); 0: as measured when connecting.
        std::chrono::nanoseconds round_trip{0};
        std::string local_host{};               // to connect from; empty: any
        std::shared_ptr<const ClientKey> key{}; // to connect with; null: none
    };

    struct Counters {
        SenderCounters sent;
        ReceiverCounters received;
        std::uint64_t waits_for_capacity = 0; // times that bytes waited for credits or a send slot
        std::uint64_t controls = 0;           // control messages sent
        // Of sends, from the call until all was on its way, in turns of the loop.
        LatencyHistogram latency;
    };

    class Handler {
      public:
        virtual void on_connected(StreamSocket& /*socket*/) {}
        // The memory behind the cookie may be used again. done: all of it is on its way. canceled:
        // it had not left when the connection was lost, and on_closed follows.
        virtual void on_send_completed(StreamSocket& socket, Cookie cookie,
                                       Completion::Outcome outcome) = 0;
        // The memory behind the cookie is the user's again. canceled: the connection has ended; the
        // first `bytes` are good.
        virtual void on_received(StreamSocket& socket, const Received& received) = 0;
        // Every byte the peer sent is in a receive, and it sends no more. Once.
        virtual void on_end_of_stream(StreamSocket& /*socket*/) {}
        // send() answered `again`, and would not now.
        virtual void on_writable(StreamSocket& /*socket*/) {}
        // The connection is gone, and arrived_bytes have arrived without a receive. This is the
        // last occasion to post one: bytes without a receive are dropped. A user that always has a
        // receive posted gets no such call; it receives everything that has arrived.
        virtual void on_lost(StreamSocket& /*socket*/, std::uint64_t /*arrived_bytes*/) {}
        // Outstanding sends and receives were completed before it. The socket may connect again.
        // orderly: the user of the peer has received everything that was handed to send() here.
        virtual void on_closed(StreamSocket& socket, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // Throws std::invalid_argument (options).
    StreamSocket(Transport& transport, Options options, Handler& handler);
    ~StreamSocket();
    StreamSocket(const StreamSocket&) = delete;
    StreamSocket& operator=(const StreamSocket&) = delete;

    // Tries every address of the host over every provider that reaches it, best first;
    // on_connected or on_closed follows. Not while connected or connecting (checked).
    void connect(const Address& remote);

    // ok, again (send_limit_count are outstanding; on_writable follows), closed (not connected, or
    // shutdown_send() was called). Throws FabricError if the memory cannot be registered.
    Status send(const Slice& slice, Cookie cookie);
    // The memory's buffer has Access::remote_write (checked). A receive cannot be withdrawn. ok,
    // again (receive_limit_count), closed. Legal also after the peer's end: it completes with 0.
    Status receive(const Slice& slice, Cookie cookie, Fill fill);

    // No more sends; the peer sees the end of the stream after the last byte. While connecting: the
    // peer sees it as soon as it is connected. Without a connection it does nothing.
    void shutdown_send();
    // shutdown_send(), and the end as soon as everything was sent; on_closed(orderly) follows when
    // the user of the peer has received it, or on_closed(unconfirmed) when it has read nothing more
    // for SessionOptions::close_timeout, or not everything within close_limit: what has not
    // left by then is canceled. What the peer still sends is not received any more.
    void close();
    // Ends at once: what is outstanding is canceled, then on_closed(local).
    void abort();

    bool is_connected() const noexcept;
    // With its end of stream the peer has announced that it receives no more either: it waits until
    // this user has received everything, and on_closed follows.
    bool peer_closes() const noexcept;
    // Bytes handed to send() that are not on their way yet.
    std::uint64_t queued_bytes() const noexcept;
    // Of this connection; of the last one once it has ended.
    Counters counters() const;
    // Of the connection, or of the attempt at one that is under way; else empty.
    std::string peer_address() const;
    const std::string& provider() const noexcept;

  private:
    friend class StreamConnection;
    friend class Delivery;
    friend class IncomingStream;
    friend class BlockingConnection;
    struct Impl;

    void accept(IncomingSession& incoming);
    // Ends the connection at once: outstanding sends are canceled, and what has arrived is still
    // received, as after a loss; then on_closed(local).
    void disconnect();
    // Bytes that the oldest receive holds while it is not complete.
    std::uint64_t filled_bytes() const noexcept;
    // Moves the oldest receive to other memory of the same size, with the bytes that it holds.
    // Returns false if the peer writes to that memory itself, so that the receive must stay there.
    bool move_receive(const Slice& to);

    std::unique_ptr<Impl> impl_;
};

// The 2014 study's policy with a ring of this size.
NETIO_EXPORT StreamSocket::Options published_stream(std::uint64_t ring_bytes);
// Throws std::invalid_argument naming the option and what is allowed.
NETIO_EXPORT void validate(const StreamSocket::Options& options);

} // namespace netio::stream::inline v0_3
