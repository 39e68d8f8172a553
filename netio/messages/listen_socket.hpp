// SPDX-License-Identifier: Apache-2.0
#pragma once

// The receiving side of point-to-point connections: a listen socket makes a receive socket for
// every sender that connects, and owns it. It serves buffered and unbuffered senders alike: pages
// are unpacked, fragments put together. Receive buffers are allocated, registered and posted by the
// library; the sender learns their size and refuses larger messages.
//
//     netio::ListenSocket socket{*transport, {.addresses = {{"10.0.0.1", 1234}}}, handler};
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

// One connected sender. Lent to handlers; gone when on_closed has returned.
class NETIO_EXPORT ReceiveSocket final {
  public:
    explicit ReceiveSocket(ReceiveCore& core) noexcept : core_{core} {} // the library does
    ReceiveSocket(const ReceiveSocket&) = delete;
    ReceiveSocket& operator=(const ReceiveSocket&) = delete;

    std::string peer_address() const;
    // Hands over no more, from the next message on: what has arrived waits, and the sender stops
    // when all receive buffers here are full. What had arrived when the sender died waits as well,
    // and on_closed after it. After close() and abort() it does nothing.
    void pause();
    // Goes on in one of the loop's next turns.
    void resume();
    // In on_message, with its message or a part of it: the same bytes, valid until the last copy of
    // the result is destroyed, on any thread, also after this socket is gone. From 8 KiB on they
    // are not copied. When more than Options::session.keep_limit is lent, nothing is received from
    // this sender until some is returned.
    KeptBytes keep(std::span<const std::byte> message);
    KeepStats kept() const;
    // Ends in order: no further message is handed over; the sender learns if it had sent more.
    void close();
    // Ends at once: on_closed(local) follows.
    void abort();
    struct Counters {
        std::uint64_t messages = 0; // handed over
        std::uint64_t bytes = 0;    // of those messages
    };
    const Counters& counters() const noexcept;
    // For the user: what belongs to this sender, a number or an object that goes with it.
    std::uint64_t tag = 0;
    std::shared_ptr<void> context;

  private:
    ReceiveCore& core_;
};

class NETIO_EXPORT ListenSocket final {
  public:
    struct Options {
        AddressList addresses{};
        bool open = false;                           // any peer of other machines may connect
        SessionOptions session = {.send_count = 16}; // sends only credits
        std::size_t peer_limit = 4096;               // senders connected at once
        // Senders of one host; 0: half of peer_limit. Where there are keys, their limit counts.
        std::size_t links_per_host = 0;
        // Of a buffered sender's message that is larger than a page; a larger one is refused there.
        std::size_t largest_message_bytes = std::size_t{16} * 1024 * 1024;
        std::shared_ptr<ServerKeys> keys{}; // of the accepted peers; null: all
    };

    class Handler {
      public:
        virtual void on_connected(ReceiveSocket&) {}
        // A message; its bytes are valid during the call only. Immediate data is unbuffered only.
        virtual void on_message(ReceiveSocket& socket, std::span<const std::byte> message,
                                std::optional<std::uint64_t> immediate) = 0;
        virtual void on_closed(ReceiveSocket&, const Closed&) {}
        // After close() or abort(), behind the on_closed of every sender.
        virtual void on_listen_closed(ListenSocket&, const Closed&) {}

      protected:
        ~Handler() = default;
    };

    // Monotonic since construction.
    struct Counters {
        std::uint64_t messages = 0; // handed over
        std::uint64_t bytes = 0;    // of those messages
        std::uint64_t connected = 0;
        // The loop's observer is notified of both (netio/base/observer.hpp).
        std::uint64_t rejected = 0;
        std::uint64_t accept_failed = 0;
    };

    // Throws std::invalid_argument: an option; FabricError: an address is in use, not local, or
    // served by no provider.
    ListenSocket(Transport& transport, Options options, Handler& handler);
    ~ListenSocket();
    ListenSocket(const ListenSocket&) = delete;
    ListenSocket& operator=(const ListenSocket&) = delete;

    // No further sender can connect; connected senders stay.
    void stop_listening() noexcept;
    // stop_listening(), and ends every connection in order; on_listen_closed follows.
    void close();
    // The same, at once.
    void abort();

    // Where it listens.
    std::vector<Endpoint> endpoints() const;
    std::size_t peer_count() const noexcept;
    // The connected senders, in no order. Good until the next of the loop's events.
    std::vector<ReceiveSocket*> peers() const;
    const Counters& counters() const noexcept;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// NetIO has a listen socket for each kind of send socket; this one serves both.
using BufferedListenSocket = ListenSocket;

} // namespace netio::inline v0_3
