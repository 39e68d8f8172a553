// SPDX-License-Identifier: Apache-2.0
#pragma once

// A byte stream in both directions over remote writes, by the dynamic stream protocol
// (docs/stream-protocol.md). Bytes for which the peer has posted a receive are written directly
// into its memory; other bytes go through a ring there. The two sides switch between the two by
// themselves.
//
//     struct Handler : stream::StreamSocket::Handler { ... } handler;
//     stream::StreamSocket socket{*transport, {}, handler};
//     socket.connect(parse_address("10.0.0.1:1234"));
//     // in on_connected:
//     Status status = socket.send(buffer.slice(0, 1 << 20), Cookie{1});
//     status = socket.receive(other.slice(), Cookie{2}, stream::Fill::some);
//
// Sends and receives are asynchronous. Several may be outstanding; the memory of each is in use
// until its completion, and each has exactly one. They complete in the order of posting. A call
// never calls back. The other end is a socket that a StreamListener has created.
//
// Over kernel sockets no peer writes into memory: bytes come in frames, with one copy (R16), unless
// Options::remote_writes trusts the peer with the memory of the process. Over RDMA, a peer that has
// the advert of a receive may write into all of its buffer, also after the receive is complete, as
// long as the buffer and the connection exist. So give each untrusted peer a separate buffer, or
// none: with an indirect-only receiver (ReceiverOptions::mode) a peer can write only into the ring.
//
// The end: shutdown_send() ends this direction only; the peer gets on_end_of_stream after it has
// received everything. When both directions have ended, or with close() when everything was sent,
// the connection closes in order. on_closed is the last event. Belongs to the loop's thread; may be
// destroyed in any of its handlers, which frees the memory of all sends and receives.

#include "netio/base/export.hpp"
#include "netio/base/latency_histogram.hpp"
#include "stream/core/counters.hpp"
#include "stream/core/options.hpp"

#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
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
// Otherwise bytes arrive in frames and are copied.
enum class RemoteWrites : std::uint8_t {
    guarded, // if a device checks each write (RDMA), or if the peer's key has the right `rma`
    // Always. Over kernel sockets the peer can then write to any memory of the process. For a peer
    // with a key, as guarded: its right decides.
    trusted,
    never,
};

struct Received {
    Cookie cookie{};
    std::uint64_t bytes = 0; // may be less than requested, even 0, if the stream has ended
    Completion::Outcome outcome = Completion::Outcome::done;
    bool end_of_stream = false;
};

class NETIO_EXPORT StreamSocket final {
  public:
    struct Options {
        // Policies and sizes of the two directions. receiver.ring_bytes is the size of the ring
        // that is allocated here, which grows over a long distance: 64 MiB carry 10 Gb/s over 50
        // ms. sender.ring_bytes belongs to the peer and is filled in, as is the peer's limit of
        // adverts.
        SenderOptions sender = improved_sender(0);
        ReceiverOptions receiver = improved_receiver(1024 * 1024, 64 * 1024 * 1024);
        // receive_count limits the messages of the peer that are in flight, send_count those of
        // this side. remote_writes is derived from the option below.
        SessionOptions session = {
            .receive_buffer_bytes = 1312, .receive_count = 256, .send_count = 64};
        RemoteWrites remote_writes = RemoteWrites::guarded;
        // If bytes come in frames: the size of a frame, and the number of receive buffers, instead
        // of the session's. Together they limit the bytes in flight.
        std::size_t frame_bytes = 128 * 1024;
        std::size_t frame_count = 16;
        std::size_t send_limit_count = 1024;        // outstanding sends
        std::size_t receive_limit_count = 1024;     // outstanding receives
        std::uint64_t copy_step_bytes = 256 * 1024; // copied from the ring at a time
        // Round trip to the peer, for a ring that may grow (P11); 0: as measured when connecting.
        std::chrono::nanoseconds round_trip{0};
        std::string local_host{};               // address to connect from; empty: any
        std::shared_ptr<const ClientKey> key{}; // for authentication; nullptr: none
    };

    struct Counters {
        SenderCounters sent;
        ReceiverCounters received;
        std::uint64_t waits_for_capacity = 0; // times that bytes waited for credits or a send slot
        std::uint64_t controls = 0;           // control messages sent
        // Of sends, from the call until everything was sent, in turns of the loop.
        LatencyHistogram latency;
    };

    class Handler {
      public:
        virtual void on_connected(StreamSocket& /*socket*/) {}
        // The memory of `cookie` may be used again. done: everything was sent. canceled: the
        // connection was lost before, and on_closed follows.
        virtual void on_send_completed(StreamSocket& socket, Cookie cookie,
                                       Completion::Outcome outcome) = 0;
        // The memory of the cookie may be used again. canceled: the connection has ended; the first
        // `bytes` are valid.
        virtual void on_received(StreamSocket& socket, const Received& received) = 0;
        // Bytes have arrived in the ring and wait, because no receive is posted: peek() returns
        // them. Called again when more have arrived.
        virtual void on_readable(StreamSocket& /*socket*/) {}
        // Every byte that the peer sent is in a receive, or was consumed, and no more follow.
        // Called once.
        virtual void on_end_of_stream(StreamSocket& /*socket*/) {}
        // After send() returned `again`: try it again.
        virtual void on_writable(StreamSocket& /*socket*/) {}
        // The connection has ended, and arrived_bytes have arrived without a receive. This is the
        // last opportunity to post one, or to consume them: bytes without a receive are dropped. A
        // user that always has a receive posted does not get this call; it receives everything that
        // has arrived.
        virtual void on_lost(StreamSocket& /*socket*/, std::uint64_t /*arrived_bytes*/) {}
        // Outstanding sends and receives were completed before. The socket may connect again.
        // orderly: the user of the peer has received everything that was passed to send() here.
        virtual void on_closed(StreamSocket& socket, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // Throws std::invalid_argument (options).
    StreamSocket(Transport& transport, Options options, Handler& handler);
    ~StreamSocket();
    StreamSocket(const StreamSocket&) = delete;
    StreamSocket& operator=(const StreamSocket&) = delete;

    // Tries every address of the host over every provider that reaches it, best first; on_connected
    // or on_closed follows. Must not be called while connected or connecting (checked). Throws
    // std::invalid_argument for port 0.
    void connect(const Address& remote);

    // Sends the bytes of the slice. Returns ok, again (send_limit_count sends are outstanding;
    // on_writable follows), closed (not connected, or shutdown_send() was called). Throws
    // FabricError if the memory cannot be registered.
    Status send(const Slice& slice, Cookie cookie);
    // Posts memory for received bytes. Its buffer must have Access::remote_write (checked). A
    // receive cannot be withdrawn. Returns ok, again (receive_limit_count receives are
    // outstanding), closed. Throws FabricError if the memory cannot be registered. After the peer's
    // end of stream, a receive completes with 0 bytes.
    Status receive(const Slice& slice, Cookie cookie, Fill fill);

    // Reads bytes where they lie in the ring, without a receive and without a copy: peek() returns
    // those that are contiguous, and consume() frees the first `bytes` of them (checked). Then
    // peek() again, because bytes after the end of the ring are at its beginning. Empty while a
    // receive is posted, which gets the bytes. They are valid until consume(), receive(), or the
    // end of on_closed. If the user posts no receives, all bytes go through the ring; over kernel
    // sockets they are copied there from a frame. on_end_of_stream follows when the last byte is
    // consumed.
    std::span<const std::byte> peek() const;
    void consume(std::size_t bytes);

    // Ends this direction; the peer gets the end of the stream after the last byte. While
    // connecting: as soon as it is connected. Does nothing without a connection.
    void shutdown_send();
    // Calls shutdown_send(), and closes as soon as everything was sent. on_closed(orderly) follows
    // when the user of the peer has received everything. on_closed(unconfirmed) follows if it has
    // read nothing more for SessionOptions::close_timeout, or not everything within close_limit;
    // sends that were not sent by then are canceled. Bytes that the peer still sends are not
    // received.
    void close();
    // Closes at once: outstanding operations are canceled, then on_closed(local).
    void abort();

    bool is_connected() const noexcept;
    // Whether the peer has announced, with its end of stream, that it receives no more either: it
    // waits until this user has received everything, and on_closed follows.
    bool peer_closes() const noexcept;
    // Bytes that were passed to send() and are not sent yet.
    std::uint64_t queued_bytes() const noexcept;
    // Of this connection, or of the last one after it has ended.
    Counters counters() const;
    // The peer of the connection, or of the current attempt to connect; otherwise empty.
    std::string peer_address() const;
    // The provider in use; empty without a connection.
    const std::string& provider() const noexcept;

  private:
    friend class StreamConnection;
    friend class Delivery;
    friend class IncomingStream;
    friend class BlockingConnection;
    struct Impl;

    void accept(IncomingSession& incoming);
    // Closes at once: outstanding sends are canceled, and bytes that have arrived are still
    // received, as after a loss; then on_closed(local).
    void disconnect();
    // Bytes that the oldest, incomplete receive contains.
    std::uint64_t filled_bytes() const noexcept;
    // Moves the oldest receive, with the bytes that it contains, to other memory of the same size.
    // Returns false if the peer writes to that memory itself, so that the receive must stay there.
    bool move_receive(const Slice& to);

    std::unique_ptr<Impl> impl_;
};

// The policy of the 2014 study, with a ring of this size.
NETIO_EXPORT StreamSocket::Options published_stream(std::uint64_t ring_bytes);
// Throws std::invalid_argument, which names the option and the allowed values.
NETIO_EXPORT void validate(const StreamSocket::Options& options);

} // namespace netio::stream::inline v0_3
