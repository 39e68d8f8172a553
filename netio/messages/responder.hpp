// SPDX-License-Identifier: Apache-2.0
#pragma once

// Receives requests of requesters, and replies to them, on any thread:
//
//     netio::Responder responder{"127.0.0.1:12345"};
//     for (netio::Request& request : responder)
//         request.reply("hello " + std::string{request.text()});
//
// Several threads may iterate: each request goes to one of them. The iteration destroys a request
// when it goes to the next one. To reply later, move the request out of the iteration; replies may
// be sent in any order, and in several messages. A request that is destroyed without a reply ends
// as `no_reply` at its requester.
//
// At the limits of open requests and of their bytes, no further request is received until one has
// ended. One requester gets at most half of these limits. A requester that receives no replies is
// disconnected after send_timeout. A forked child process must not use a Responder of its parent;
// its destructor does nothing there.

#include "netio/base/address_list.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "netio/base/kept_bytes.hpp"
#include "netio/base/status.hpp"
#include "netio/context.hpp"
#include "netio/loop/process.hpp"
#include "netio/messages/message_socket.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netio::inline v0_3 {

class ServerKeys;
struct OpenRequest;

// One request. Movable; may be used by one thread at a time, and outlive its Responder.
class NETIO_EXPORT Request final {
  public:
    explicit Request(std::shared_ptr<OpenRequest> open) noexcept; // called by the library
    ~Request();
    Request(Request&&) noexcept = default;
    Request& operator=(Request&& other) noexcept;

    std::span<const std::byte> bytes() const noexcept;
    std::size_t size() const noexcept { return bytes().size(); }
    std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(bytes().data()), bytes().size()};
    }
    const std::string& peer_address() const noexcept;
    // Returns true if the requester has canceled the request or is gone. Then a reply has no
    // effect.
    bool is_canceled() const noexcept;

    // Replies, and ends the request. Returns false, without an effect, if the request had ended
    // before (by a reply, because the requester has canceled, or because it is gone), and after
    // Responder::close(). Waits while reply_queue_limit_bytes wait for this requester. Throws
    // Error, and leaves the request open: too_large (for the requester); again (it would wait on
    // the context's thread; retry later).
    bool reply(std::span<const std::byte> message);
    bool reply(std::string_view message) { return reply(std::as_bytes(std::span{message})); }
    // As reply(), but the request stays open: further messages of the reply follow, until reply()
    // sends the last one.
    bool reply_part(std::span<const std::byte> message);
    bool reply_part(std::string_view message) {
        return reply_part(std::as_bytes(std::span{message}));
    }
    // As reply(), but the request ends as `failed` at its requester, which gets up to 4096 bytes of
    // the text. Does not throw too_large.
    bool fail(std::string_view why);

  private:
    std::shared_ptr<OpenRequest> open_;
};

class NETIO_EXPORT Responder final {
  public:
    struct Options {
        std::optional<Context> context{}; // nullopt: creates its own
        // Requests that wait for a thread or are in use, and their bytes.
        std::size_t request_limit = 1024;
        std::size_t request_limit_bytes = std::size_t{64} << 20;
        // Limit of the bytes of replies that wait for one requester. While it is reached, no
        // further request of this requester is received.
        std::size_t reply_queue_limit_bytes = std::size_t{16} << 20;
        // How long reply() waits while this limit is reached. Then the requester is disconnected.
        std::chrono::milliseconds send_timeout{60000};
        // Peers of other machines may connect without keys.
        bool allow_remote_anonymous = false;
        // Must be created on the context's loop: context.run([&] { keys = ...; }).
        std::shared_ptr<ServerKeys> keys{};
        std::size_t peer_limit = 1024;        // connected requesters
        std::size_t connections_per_host = 0; // 0: half of peer_limit; with keys, their limit
        // Called on the context's thread after requests have arrived or were canceled, and when
        // close() is complete: for a loop of the user, which then calls receive(0ms). Must not
        // wait, and must not destroy the Responder.
        std::function<void()> on_ready{};
        // Further options of each connection, such as the largest request. The protocol is fixed.
        MessageSocket::Options socket{};
    };

    // Listens at these addresses; port 0 means any free port. Throws std::invalid_argument for an
    // invalid option or address, and FabricError if an address cannot be used.
    explicit Responder(AddressList addresses);
    Responder(AddressList addresses, Options options);
    ~Responder(); // as close()
    Responder(const Responder&) = delete;
    Responder& operator=(const Responder&) = delete;

    // All functions below may be called from any thread.

    // The addresses where it listens.
    std::vector<Endpoint> endpoints() const;

    // Waits for the next request. Returns nullopt after the time-out, and after close().
    std::optional<Request> receive(std::chrono::milliseconds timeout);
    // Waits without limit. Ends after close().
    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using iterator_concept = std::input_iterator_tag;
        using value_type = Request;
        using difference_type = std::ptrdiff_t;
        using pointer = Request*;
        using reference = Request&;

        Request& operator*() const noexcept { return *request_; }
        Request* operator->() const noexcept { return &*request_; }
        Iterator& operator++() { return take_next(), *this; }
        void operator++(int) { take_next(); }
        friend bool operator==(const Iterator& iterator, std::default_sentinel_t) noexcept {
            return !iterator.request_;
        }

      private:
        friend class Responder;
        explicit Iterator(Responder& responder) : responder_{&responder} { take_next(); }
        NETIO_EXPORT void take_next();

        Responder* responder_;
        mutable std::optional<Request> request_;
    };
    Iterator begin() { return Iterator{*this}; }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    // Stops listening. Requests that no thread has received end as `no_reply`, and iterations end.
    // Waits until the replies that were passed to reply() are sent and all connections have closed
    // in order, at most socket.session.close_limit. Does not wait on the context's thread.
    void close();
    bool is_closed() const noexcept;

    struct Stats {
        std::size_t peers = 0;   // connected requesters
        std::size_t waiting = 0; // requests that no thread has received yet
        std::size_t open = 0;    // requests that have not ended, with those that wait
        std::uint64_t requests = 0;
        std::uint64_t replied = 0;
        std::uint64_t failed = 0;   // by fail()
        std::uint64_t no_reply = 0; // destroyed without a reply
        std::uint64_t canceled = 0; // by their requester, or because it is gone
        std::uint64_t too_slow = 0; // requesters that were disconnected after send_timeout
    };
    Stats stats() const;

  private:
    struct Impl;
    static constexpr char type[] = "Responder";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::inline v0_3
