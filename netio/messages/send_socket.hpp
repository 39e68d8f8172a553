// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sending side of a point-to-point connection. Messages are sent without a copy from registered
// memory, each with a cookie of the user's, which is returned when the memory may be used again.
//
//     struct Handler : netio::SendSocket::Handler { ... } handler;
//     netio::SendSocket socket{*transport, {}, handler};
//     socket.connect(netio::parse_address("10.0.0.1:1234"));
//     // in on_connected:
//     Status status = socket.send(buffer.slice(0, 4096), netio::Cookie{1});
//
// Messages that a connection left unconfirmed are not sent again automatically, because only the
// user knows whether they should be. With `reconnect` the socket connects again by itself; without
// it, connect() may be called in on_closed.
//
// Belongs to the loop's thread; may be destroyed in any of its handlers.

#include "netio/base/export.hpp"
#include "netio/messages/send_snapshot.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace netio::inline v0_3 {

class ClientKey;
class Session;
struct OutgoingFrame;

class NETIO_EXPORT SendSocket final {
  public:
    struct Options {
        SessionOptions session = {.receive_buffer_bytes = 256,
                                  .receive_count = 16, // only credits are received
                                  .window_limit = 0};
        std::string local_host{};               // empty: any
        std::shared_ptr<const ClientKey> key{}; // for authentication; null: none
        // After connect(), until close() or abort(): retries until a listener has accepted, and
        // reconnects after a connection was lost or ended by the listener. docs/options.md lists
        // the failures after which it stops.
        bool reconnect = false;
        // Between two attempts: about doubled each time, up to the limit, with random variation.
        std::chrono::milliseconds retry_interval{250};
        std::chrono::milliseconds retry_limit{4000};
    };

    class Handler {
      public:
        virtual void on_connected(SendSocket&) {}
        // The memory of `cookie` may be used again. done: the message was sent; this does not mean
        // that the receiver has processed it. canceled, failed: the connection ended before; if
        // only the acknowledgement was lost, the receiver has the message.
        virtual void on_send_completed(SendSocket&, Cookie, Completion::Outcome) {}
        // After send() returned `again`: try it again.
        virtual void on_writable(SendSocket&) {}
        // The connection, or the attempt at one, has ended: refused, rejected, lost ... Call
        // connect() to connect again; if is_retrying(), the socket does so by itself.
        virtual void on_closed(SendSocket& socket, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // Since construction; they do not decrease.
    struct Counters {
        std::uint64_t messages = 0; // accepted
        std::uint64_t bytes = 0;    // of those messages, with their immediate data
        std::uint64_t again = 0;    // calls that returned again, for lack of a credit or a slot
        std::uint64_t gathered = 0; // messages with more slices than the provider takes: copied
    };

    // Throws std::invalid_argument, which names the option and the allowed values.
    SendSocket(Transport& transport, Options options, Handler& handler);
    ~SendSocket();
    SendSocket(const SendSocket&) = delete;
    SendSocket& operator=(const SendSocket&) = delete;

    // Tries every address of the host over every provider that reaches it, best first; on_connected
    // or on_closed follows. Must not be called while connected or connecting (checked); between two
    // attempts it starts the next one.
    void connect(const Address& remote);
    // Closes in order: sends everything, then on_closed(orderly) or on_closed(unconfirmed) follows.
    void close();
    // Closes at once: on_closed(local) follows, with Closed::unconfirmed_frames.
    void abort();

    // Sends one message. Its memory is in flight until on_send_completed(cookie). With `immediate`,
    // eight more bytes are sent with it. Returns ok, again, closed, too_large, too_many_segments.
    Status send(const Slice& slice, Cookie cookie, std::optional<std::uint64_t> immediate = {});
    // Up to slice_limit slices, of one or several buffers, arrive as one message.
    static constexpr std::size_t slice_limit = 28;
    Status sendv(std::span<const Slice> slices, Cookie cookie,
                 std::optional<std::uint64_t> immediate = {});
    static constexpr std::size_t inline_limit = 48;
    // Sends a small message, which is copied: its memory needs no registration and is free when the
    // call returns, so it has no cookie and no completion. Returns ok, again, closed, too_large
    // (above inline_limit).
    Status send_inline(std::span<const std::byte> message,
                       std::optional<std::uint64_t> immediate = {});

    bool is_connected() const noexcept;
    // Whether the socket will connect again by itself; valid in on_closed and after it.
    bool is_retrying() const noexcept;
    // The largest message that the receiver takes; valid while connected.
    std::size_t message_limit() const noexcept;
    // The number of slices of a message that are sent without a copy: as many as the provider takes
    // in addition to a header. Further slices are copied. Valid while connected.
    std::size_t segment_limit() const noexcept;
    // The provider in use; valid while connected.
    const std::string& provider() const noexcept;
    Counters counters() const noexcept;
    SendSnapshot snapshot() const noexcept;

  private:
    friend class BufferedSendCore; // sends frames of other kinds
    struct Impl;

    // `since`: start of the time that its latency measures.
    Status send_frame(const OutgoingFrame& frame, std::optional<Cookie> cookie, TimePoint since);
    // Valid only with a session: while connected, and until on_closed.
    Session& session() noexcept;
    // No attempt to connect follows the end of this connection.
    void stop_reconnecting() noexcept;

    std::unique_ptr<Impl> impl_;
};

// Throws std::invalid_argument, which names the option and the allowed values.
NETIO_EXPORT void validate(const SendSocket::Options& options);

} // namespace netio::inline v0_3
