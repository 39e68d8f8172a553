// SPDX-License-Identifier: Apache-2.0
#pragma once

// The receiving side of point-to-point connections: a listen socket creates and owns a receive
// socket for every sender that connects. It serves buffered and unbuffered senders: it unpacks
// pages and reassembles fragments. The library allocates, registers and posts the receive buffers;
// the sender learns their size and refuses larger messages.
//
//     netio::ListenSocket socket{*transport, {.listen = {{"10.0.0.1", 1234}}}, handler};
//
// Belongs to the loop's thread; may be destroyed in any of its handlers.

#include "netio/base/address_list.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "netio/memory/keep_pool.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::inline v0_3 {

class ReceiveCore;
class ServerKeys;

// One connected sender. Owned by the listen socket; destroyed when on_closed has returned.
class NETIO_EXPORT ReceiveSocket final {
  public:
    explicit ReceiveSocket(ReceiveCore& core) noexcept : core_{core} {} // called by the library
    ReceiveSocket(const ReceiveSocket&) = delete;
    ReceiveSocket& operator=(const ReceiveSocket&) = delete;

    std::string peer_address() const;
    // Stops delivery, from the next message on. Messages that have arrived wait, and the sender
    // stops when all receive buffers here are full. If the sender has died, its messages wait as
    // well, and on_closed comes after them. Has no effect after close() or abort().
    void pause();
    // Continues in one of the next turns of the loop.
    void resume();
    // Call it in on_message, with the message or a part of it. Returns the same bytes, valid until
    // the last copy of the result is destroyed, on any thread, also after this socket is destroyed.
    // 8 KiB or more are not copied. If more than Options::session.keep_limit_bytes are kept,
    // nothing is received from this sender until the user has destroyed some.
    KeptBytes keep(std::span<const std::byte> message);
    KeepStats kept() const;
    // Closes in order: no further message is delivered, and on_closed follows. If the sender had
    // sent more, its on_closed reports it (unconfirmed).
    void close();
    // Closes at once: on_closed(local) follows.
    void abort();
    struct Counters {
        std::uint64_t messages = 0; // delivered
        std::uint64_t bytes = 0;    // of those messages
    };
    const Counters& counters() const noexcept;
    // For the user: a number or pointer that belongs to this sender.
    std::uint64_t tag = 0;
    std::shared_ptr<void> context;

  private:
    ReceiveCore& core_;
};

class NETIO_EXPORT ListenSocket final {
  public:
    struct Options {
        AddressList listen{};
        bool allow_remote_anonymous = false; // peers of other machines may connect without keys
        SessionOptions session = {.send_count = 16}; // sends only credits
        std::size_t peer_limit = 4096;               // connected senders
        // Limit of senders per host; 0: half of peer_limit. With keys, the limit of the keys
        // applies.
        std::size_t connections_per_host = 0;
        // The largest message of a buffered sender, which arrives in several pages; the sender
        // returns too_large for larger ones.
        std::size_t largest_message_bytes = std::size_t{16} * 1024 * 1024;
        std::shared_ptr<ServerKeys> keys{}; // of the accepted peers; null: no key is needed
    };

    class Handler {
      public:
        virtual void on_connected(ReceiveSocket&) {}
        // The bytes are valid during the call only. Only unbuffered messages have immediate data.
        virtual void on_message(ReceiveSocket& socket, std::span<const std::byte> message,
                                std::optional<std::uint64_t> immediate) = 0;
        virtual void on_closed(ReceiveSocket&, const Closed&) {}
        // After close() or abort(), after the on_closed of every sender.
        virtual void on_listen_closed(ListenSocket&, const Closed&) {}

      protected:
        ~Handler() = default;
    };

    // Since construction; they do not decrease.
    struct Counters {
        std::uint64_t messages = 0; // delivered
        std::uint64_t bytes = 0;    // of those messages
        std::uint64_t connected = 0;
        // Both are also reported to the loop's observer (netio/base/observer.hpp).
        std::uint64_t rejected = 0;
        std::uint64_t accept_failed = 0;
    };

    // Throws std::invalid_argument for an invalid option, and FabricError if an address is in use,
    // not local, or served by no provider.
    ListenSocket(Transport& transport, Options options, Handler& handler);
    ~ListenSocket();
    ListenSocket(const ListenSocket&) = delete;
    ListenSocket& operator=(const ListenSocket&) = delete;

    // No further sender can connect; connected senders remain. No event follows.
    void stop_listening() noexcept;
    // Calls stop_listening() and closes every connection in order: no further message is delivered,
    // and on_listen_closed follows the on_closed of the last sender.
    void close();
    // The same, but closes at once.
    void abort();

    // The addresses where it listens; empty after stop_listening().
    std::vector<Endpoint> endpoints() const;
    std::size_t peer_count() const noexcept;
    // The connected senders, unordered. Valid until the next event of the loop.
    std::vector<ReceiveSocket*> peers() const;
    const Counters& counters() const noexcept;
    // The received memory that the user keeps, of all connections together.
    KeepStats kept() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// NetIO has one listen socket for each kind of send socket; this class serves both.
using BufferedListenSocket = ListenSocket;

} // namespace netio::inline v0_3
