// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends messages to one receiver (a ListenSocket), from any thread:
//
//     netio::Sender sender{"10.0.0.1:12345"};
//     sender.send("a text");
//
// It copies each message into a bounded queue, from which the thread of its Context sends them. The
// first message connects. The Sender waits for a receiver that does not listen yet, and establishes
// a lost connection again. Messages that one thread sends arrive in order. Messages that a lost
// connection has not confirmed are counted and not sent again.
//
// Senders to many receivers may share a Context; a slow receiver does not delay the others. The
// destructor calls close(). A Sender may be a global object. A forked child process must not use a
// Sender of its parent; its destructor does nothing there.

#include "netio/base/address_list.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "netio/context.hpp"
#include "netio/loop/process.hpp"
#include "netio/messages/buffered_send_socket.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace netio::inline v0_3 {

class ClientKey;

class NETIO_EXPORT Sender final {
  public:
    struct Options {
        std::optional<Context> context{}; // nullopt: creates its own
        // How long send() waits while there is no space.
        std::chrono::milliseconds send_timeout{60000};
        // Limit of the bytes of messages, plus 24 bytes for each, that wait for the connection.
        std::size_t queue_limit_bytes = std::size_t{16} << 20;
        // close(): how long the receiver may make no progress, or not listen, before the connection
        // is aborted, and how long closing may take in total.
        std::chrono::milliseconds close_timeout{10000};
        std::chrono::milliseconds close_limit{60000};
        std::shared_ptr<const ClientKey> key{}; // for authentication
        // Further options: pages, flush time. The options above override them; it always
        // reconnects.
        BufferedSendSocket::Options socket{};
    };

    // `receiver`: one address. Does not connect yet. Throws std::invalid_argument for an invalid
    // option or address.
    explicit Sender(const AddressList& receiver);
    Sender(const AddressList& receiver, Options options);
    ~Sender();
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    // All functions below may be called from any thread.

    // Copies the message into the queue; waits while the queue has no space. Throws Error: again
    // (no space for send_timeout; on the context's thread, without waiting), too_large (known while
    // there is a connection; otherwise the message is discarded and counted), closed.
    void send(std::span<const std::byte> message);
    void send(std::string_view message) { send(std::as_bytes(std::span{message})); }
    // The same without waiting: ok, again, too_large, closed.
    [[nodiscard]] Status try_send(std::span<const std::byte> message);
    [[nodiscard]] Status try_send(std::string_view message) {
        return try_send(std::as_bytes(std::span{message}));
    }

    // Closes in order: sends what was accepted, waits until the receiver has confirmed it, and
    // returns. If there are messages and no connection, it continues to connect. After
    // close_timeout without progress, after close_limit, and after a permanent refusal, it discards
    // the messages, counts them as `unsent` and writes a log line. Does not wait on the context's
    // thread.
    void close();
    bool is_closed() const noexcept; // close() was called, and the connection has ended

    struct Stats {
        std::uint64_t sent = 0;               // passed to a connection
        std::uint64_t unsent = 0;             // too large, or discarded by close()
        std::uint64_t unconfirmed_frames = 0; // pages of lost connections; may have arrived
        bool connected = false;
    };
    Stats stats() const;

  private:
    struct Impl;
    static constexpr char type[] = "Sender";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::inline v0_3
