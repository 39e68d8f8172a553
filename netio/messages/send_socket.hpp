// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sending side of a point-to-point connection: messages leave zero-copy from registered
// memory, each with a cookie of the user's that comes back when its memory may be used again.
//
//     struct Handler : netio::SendSocket::Handler { ... } handler;
//     netio::SendSocket socket{*transport, {}, handler};
//     socket.connect(netio::parse_address("10.0.0.1:1234"));
//     // in on_connected:
//     Status status = socket.send(buffer.slice(0, 4096), netio::Cookie{1});
//
// What a connection has left unconfirmed is not sent again by itself: only its user knows what is
// to be sent once more. With `reconnect` it connects again by itself; without, connect() is legal
// in on_closed.
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
        SessionOptions session = {.receive_bytes = 256,
                                  .receive_count = 16, // only credits come back
                                  .window_limit = 0};
        std::string local_host{};               // empty: any
        std::shared_ptr<const ClientKey> key{}; // for the authentication; null: none
        // After connect(), until close() or abort(): try again until a listener has accepted, and
        // after its connection was lost or ended there. docs/options.md says who is asked no more.
        bool reconnect = false;
        // Between two attempts: about twice as long each time, up to the limit, and never as long
        // as others wait.
        std::chrono::milliseconds retry_interval{250};
        std::chrono::milliseconds retry_limit{4000};
    };

    class Handler {
      public:
        virtual void on_connected(SendSocket&) {}
        // The memory behind `cookie` may be used again. done: the message is on its way; it says
        // nothing about whether the receiver has handled it. canceled, failed: the connection ended
        // under it; the receiver may have it all the same, where only the acknowledgement was lost.
        virtual void on_send_completed(SendSocket&, Cookie, Completion::Outcome) {}
        // After send() returned again: it may be tried again.
        virtual void on_writable(SendSocket&) {}
        // Refused, rejected, lost, disconnected ...: the socket may connect again, or does so by
        // itself (is_retrying).
        virtual void on_closed(SendSocket& socket, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // Monotonic since construction.
    struct Counters {
        std::uint64_t messages = 0; // accepted
        std::uint64_t bytes = 0;    // of those messages, with their immediate data
        std::uint64_t again = 0;    // refusals for want of a credit or a slot
        std::uint64_t gathered = 0; // messages of more slices than the provider takes: copied
    };

    // Throws std::invalid_argument naming the option and what is allowed.
    SendSocket(Transport& transport, Options options, Handler& handler);
    ~SendSocket();
    SendSocket(const SendSocket&) = delete;
    SendSocket& operator=(const SendSocket&) = delete;

    // Tries every address of the host over every provider that reaches it, best first;
    // on_connected or on_closed follows. Not while connected or connecting (checked); between two
    // attempts it is the next one.
    void connect(const Address& remote);
    // What was sent arrives, then on_closed(orderly); or on_closed(unconfirmed).
    void close();
    // Ends at once: on_closed(local) follows, which says how much is unconfirmed.
    void abort();

    // Sends one message. Its memory is lent until on_send_completed(cookie). With `immediate`,
    // eight more bytes travel with it. ok, again, closed, too_large, too_many_segments.
    Status send(const Slice& slice, Cookie cookie, std::optional<std::uint64_t> immediate = {});
    // Up to slice_limit slices, of one or several buffers, arrive as one message.
    static constexpr std::size_t slice_limit = 28;
    Status sendv(std::span<const Slice> slices, Cookie cookie,
                 std::optional<std::uint64_t> immediate = {});
    // Sends a small message that is copied: its memory needs no registration and is free when the
    // call returns, so it has no cookie and no completion. ok, again, closed, too_large (than
    // inline_limit).
    static constexpr std::size_t inline_limit = 48;
    Status send_inline(std::span<const std::byte> message,
                       std::optional<std::uint64_t> immediate = {});

    bool is_connected() const noexcept;
    // It connects again by itself; valid from on_closed on.
    bool is_retrying() const noexcept;
    // The largest message the receiver takes; valid while connected.
    std::size_t message_limit() const noexcept;
    // Slices of a message that leave without a copy: as many as the provider takes in addition to a
    // header. Further slices of a longer list are copied. Valid while connected.
    std::size_t segment_limit() const noexcept;
    // The provider in use; valid while connected.
    const std::string& provider() const noexcept;
    Counters counters() const noexcept;
    SendSnapshot snapshot() const noexcept;

  private:
    friend class BufferedSendCore; // sends frames of its own kinds
    struct Impl;

    // `since`: the time from which its latency counts.
    Status send_frame(const OutgoingFrame& frame, std::optional<Cookie> cookie, TimePoint since);
    // Only while there is a session: while connected, and until on_closed.
    Session& session() noexcept;
    // After the end of this connection no other is attempted.
    void stop_reconnecting() noexcept;

    std::unique_ptr<Impl> impl_;
};

// Throws std::invalid_argument naming the option and what is allowed.
NETIO_EXPORT void validate(const SendSocket::Options& options);

} // namespace netio::inline v0_3
