// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends requests to one responder, and receives its replies, from any thread:
//
//     netio::Requester requester{"10.0.0.1:12345"};
//     const netio::KeptBytes reply = requester.request("how are you?");
//
//     netio::Reply later = requester.send(request, 5s);   // does not wait for the reply
//     while (const auto part = later.next()) std::cout << part->text();
//
// Many requests may be open; replies arrive in any order. Every request ends exactly once: replied,
// timed out, canceled, disconnected, or failed. The responder is notified of a request that timed
// out or was canceled. A request is not repeated. The first request connects. A request waits,
// until its time is over, for a responder that does not listen yet. A lost connection is
// established again.
//
// Requesters to many responders share a Context. A forked child process must not use a Requester of
// its parent; its destructor does nothing there.

#include "netio/base/address_list.hpp"
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
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace netio::inline v0_3 {

class ClientKey;
struct ReplyState;

// How a request ended.
enum class RequestEnd : std::uint8_t {
    open,         // it has not ended
    replied,      // the whole reply has arrived
    timed_out,    // its time is over
    canceled,     // by Reply::cancel(), by destroying the Reply, or by the end of the Requester
    disconnected, // it was sent, and the connection was lost or ended
    no_reply,     // the responder has destroyed the request without a reply
    failed,       // the responder has called Request::fail(); what() has its text
    too_large,    // the responder receives no request, or this side no reply, of this size
};
NETIO_EXPORT std::string_view to_string(RequestEnd end) noexcept;

// A request ended without a whole reply. what() has the responder's address and the reason.
class NETIO_EXPORT RequestError : public Error {
  public:
    RequestError(RequestEnd end, const std::string& what)
        : Error{Status::closed, what}, end_{end} {}
    RequestEnd end() const noexcept { return end_; }

  private:
    RequestEnd end_;
};

// The reply to one request: one message or more, which arrive in order. Movable; may be used by one
// thread at a time, and outlive its Requester. The destructor cancels the request.
class NETIO_EXPORT Reply final {
  public:
    Reply() = default;
    explicit Reply(std::shared_ptr<ReplyState> state) noexcept; // called by the library
    ~Reply();
    Reply(Reply&&) noexcept = default;
    Reply& operator=(Reply&& other) noexcept;

    // Returns the next message of the reply, and waits for it. Returns nullopt after the last one.
    // If the request ended in another way than `replied`, returns the messages that had arrived,
    // then throws RequestError. Throws Error (again) if it would have to wait on the context's
    // thread.
    std::optional<KeptBytes> next();
    // Waits until next() returns without waiting. Returns false after `timeout`. Does not wait on
    // the context's thread.
    bool wait_for(std::chrono::milliseconds timeout) const;
    bool is_ready() const { return wait_for(std::chrono::milliseconds{0}); }
    // Ends the request, if it is still open, and notifies the responder. Messages that have arrived
    // can still be taken.
    void cancel();
    // `open` while the request has not ended; `canceled` for an empty Reply.
    RequestEnd end() const;

  private:
    std::shared_ptr<ReplyState> state_;
};

class NETIO_EXPORT Requester final {
  public:
    struct Options {
        std::optional<Context> context{}; // nullopt: creates its own
        // Limit of the time from the call until the whole reply has arrived, for requests without a
        // `timeout`.
        std::chrono::milliseconds request_timeout{60000};
        std::size_t outstanding_limit = 131072; // open requests
        // Limit of the bytes of requests, plus 64 bytes for each, that wait for the connection.
        std::size_t queue_limit_bytes = std::size_t{16} << 20;
        // Limit of the bytes of all replies, plus 64 bytes for each of their messages, that have
        // arrived and were not taken by next(). A request whose reply exceeds it ends as too_large.
        std::size_t reply_limit_bytes = std::size_t{256} << 20;
        std::shared_ptr<const ClientKey> key{}; // for authentication
        // Called on the context's thread after messages of replies have arrived, or requests have
        // ended: for a loop of the user, which then looks at its replies (Reply::is_ready). Must
        // not wait, and must not destroy the Requester.
        std::function<void()> on_ready{};
        // Further options. The key above and the protocol override them, and the Requester always
        // reconnects.
        MessageSocket::Options socket{};
    };

    // `responder`: one address. Throws std::invalid_argument for an invalid option or address.
    explicit Requester(const AddressList& responder);
    Requester(const AddressList& responder, Options options);
    ~Requester(); // as close()
    Requester(const Requester&) = delete;
    Requester& operator=(const Requester&) = delete;

    // All functions below may be called from any thread. Do not call request() on the context's
    // thread: it throws Error (again) there.

    // Sends a request, and waits for its reply. Returns the first message of the reply. Throws
    // RequestError, and what send() throws.
    KeptBytes request(std::span<const std::byte> message);
    KeptBytes request(std::span<const std::byte> message, std::chrono::milliseconds timeout);
    KeptBytes request(std::string_view message) {
        return request(std::as_bytes(std::span{message}));
    }
    KeptBytes request(std::string_view message, std::chrono::milliseconds timeout) {
        return request(std::as_bytes(std::span{message}), timeout);
    }
    // Sends a request without waiting for its reply. Waits until a limit permits the request, at
    // most `timeout`. Throws Error: again (a limit is reached; on the context's thread, without
    // waiting), closed.
    Reply send(std::span<const std::byte> message, std::chrono::milliseconds timeout);
    Reply send(std::span<const std::byte> message);
    Reply send(std::string_view message) { return send(std::as_bytes(std::span{message})); }
    Reply send(std::string_view message, std::chrono::milliseconds timeout) {
        return send(std::as_bytes(std::span{message}), timeout);
    }

    // Ends all open requests as canceled, and the connection.
    void close();

    struct Stats {
        std::size_t outstanding = 0; // open now
        // Requests that ended, by their end.
        std::uint64_t replied = 0;
        std::uint64_t timed_out = 0;
        std::uint64_t canceled = 0;
        std::uint64_t disconnected = 0;
        std::uint64_t failed = 0; // no_reply, failed, too_large
        // Messages of replies to requests that had ended. They are dropped.
        std::uint64_t late = 0;
        std::size_t queued_bytes = 0; // requests that wait, as queue_limit_bytes counts them
        std::size_t reply_bytes = 0;  // as reply_limit_bytes counts them
        bool connected = false;
    };
    Stats stats() const;

  private:
    struct Impl;
    static constexpr char type[] = "Requester";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::inline v0_3
