// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages in both directions over one connection. One side connects, the other has a
// MessageListener; after that both sides are equal.
//
//     netio::MessageSocket socket{netio::network_of(loop), {}, {
//         .on_connected = [&] { static_cast<void>(socket.send(request)); },
//         .on_message = [](const auto& message) { std::cout << message.text() << '\n'; }}};
//     socket.connect(netio::parse_address("10.0.0.1:1234"));
//
// A message that is passed as bytes is copied into pages: it is sent at once if no page is in
// flight, else together with the messages that follow. A message in registered memory is sent
// without a copy. All messages of one side arrive in the order of the calls.
//
// Messages that a connection left unconfirmed are not sent again automatically. Belongs to the
// loop's thread; may be destroyed in any of its functions.

#include "netio/base/address_list.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "netio/base/kept_bytes.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/memory/keep_pool.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netio::inline v0_3 {

class ClientKey;
class IncomingSession;
class MessageCore;
class ServerKeys;

// A message that has arrived. Valid during on_message.
class NETIO_EXPORT IncomingMessage final {
  public:
    IncomingMessage(MessageCore& core, std::span<const std::byte> bytes,
                    std::optional<std::uint64_t> immediate) noexcept // called by the library
        : core_{core}, bytes_{bytes}, immediate_{immediate} {}

    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    std::size_t size() const noexcept { return bytes_.size(); }
    std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    }
    // Only messages that were sent without a copy may have one.
    std::optional<std::uint64_t> immediate() const noexcept { return immediate_; }
    // Returns the same bytes, valid until the last copy of the result is destroyed, on any thread,
    // also after the socket is destroyed. 8 KiB or more are not copied. If more than
    // Options::session.keep_limit_bytes are kept, this connection receives nothing until the user
    // has destroyed some.
    KeptBytes keep() const;

  private:
    MessageCore& core_;
    std::span<const std::byte> bytes_;
    std::optional<std::uint64_t> immediate_;
};

class NETIO_EXPORT MessageSocket final {
  public:
    struct Options {
        SessionOptions session{};
        std::string local_host{};               // empty: any
        std::shared_ptr<const ClientKey> key{}; // for authentication; null: none
        // After connect(), until close() or abort(): retries until a listener has accepted, and
        // reconnects after a connection was lost or ended by the peer, but not after finish().
        bool reconnect = false;
        // Between two attempts: about doubled each time, up to the limit, with random variation.
        std::chrono::milliseconds retry_interval{250};
        std::chrono::milliseconds retry_limit{4000};
        // The largest message that this side receives in several frames; a message that fits into
        // one frame is not limited. The peer's send() returns too_large for larger ones.
        std::size_t largest_message_bytes = std::size_t{16} * 1024 * 1024;
        // The pages into which send() copies messages. A message that needs more pages than are
        // free is copied into other memory, of up to page_count * page_size_bytes, or as large as
        // one message.
        std::size_t page_size_bytes = 64 * 1024;
        std::size_t page_count = 32;
        // Messages are received into the memory of post_receive(), and on_received is called
        // instead of on_message.
        bool receive_into_posted = false;
        std::size_t posted_limit = 1024; // limit of posted memories that wait for a message
        // A number from 0 to 2 (3 is for Requester and Responder). A listener rejects a peer with
        // another number, so that a program does not receive messages of another kind of program.
        std::uint8_t protocol = 0;
    };

    // The outcome of one post_receive().
    struct Received {
        Cookie cookie{};
        // ok: the message is in the posted memory. too_large: the message has more bytes than the
        // posted memory, which is unchanged; the message waits for the next post_receive().
        Status status = Status::ok;
        std::size_t bytes = 0; // of the message
        std::optional<std::uint64_t> immediate{};
    };

    // Called from the loop; functions that are not set are not called.
    struct Functions {
        std::function<void()> on_connected{};
        std::function<void(const IncomingMessage& message)> on_message{};
        std::function<void(const Received& received)> on_received{};
        // The memory of `cookie` may be used again. done: the message was sent. canceled, failed:
        // the connection ended first, and the peer may or may not have received the message.
        std::function<void(Cookie cookie, Completion::Outcome outcome)> on_sent{};
        // After a call returned `again`: try it again.
        std::function<void()> on_writable{};
        // The peer has called finish(): no further message arrives. This side may still send.
        std::function<void()> on_peer_finished{};
        // The connection, or the attempt at one, has ended. Posted memory may be used again. Call
        // connect() to connect again; if is_retrying(), the socket does so by itself.
        std::function<void(const Closed& closed)> on_closed{};
    };

    // Since construction; they do not decrease.
    struct Counters {
        std::uint64_t messages_sent = 0; // accepted
        std::uint64_t bytes_sent = 0;    // of those messages
        std::uint64_t again = 0;         // calls that returned again
        std::uint64_t messages_received = 0;
        std::uint64_t bytes_received = 0;
        std::uint64_t copied = 0;      // received messages that were copied into posted memory
        std::uint64_t too_large = 0;   // posted memories that were too small for their message
        std::uint64_t connections = 0; // established
    };

    // Throws std::invalid_argument, which names the option and the allowed values.
    MessageSocket(Transport& transport, Options options, Functions functions);
    ~MessageSocket();
    MessageSocket(const MessageSocket&) = delete;
    MessageSocket& operator=(const MessageSocket&) = delete;

    // Tries every address of the host over every provider that reaches it, best first; on_connected
    // or on_closed follows. Must not be called while connected or connecting (checked). Throws
    // std::invalid_argument for port 0.
    void connect(const Address& remote);
    // Ends this direction: everything that was accepted is sent, later calls of send() return
    // closed, and the peer's on_peer_finished follows. This side still receives messages. When both
    // sides have finished, the connection closes in order. Has no effect without a connection.
    void finish();
    // Closes in order: sends what was accepted, and delivers no further message. on_closed(orderly)
    // follows if the user of the peer has received everything. on_closed(unconfirmed) follows if
    // not, if the peer makes no progress for session.close_timeout, or if it needs longer than
    // session.close_limit. If messages arrived here and were not delivered, the peer's on_closed
    // reports that.
    void close();
    // Closes at once: on_closed(local) follows.
    void abort();

    // Sends a copy of the message; its memory is free when the call returns. Returns ok, again (all
    // pages are in flight), too_large (above message_limit(), or no memory for it), closed.
    Status send(std::span<const std::byte> message) { return send_parts({&message, 1}); }
    // The parts together are one message.
    Status send_parts(MessageParts parts);
    // Sends a message without a copy. Its memory is in flight until on_sent(cookie). With
    // `immediate`, eight more bytes are sent with it. Returns ok, again, too_large (above
    // frame_limit()), too_many_segments, closed.
    Status send(const Slice& slice, Cookie cookie, std::optional<std::uint64_t> immediate = {}) {
        return sendv({&slice, 1}, cookie, immediate);
    }
    // Up to SendSocket::slice_limit slices, of one or several buffers, arrive as one message.
    Status sendv(std::span<const Slice> slices, Cookie cookie,
                 std::optional<std::uint64_t> immediate = {});
    // Sends the messages that wait in a page for further messages.
    void flush();

    // With receive_into_posted: posts memory for one message; messages fill posted memory in the
    // order of the calls. `memory` must stay valid until on_received(cookie) or on_closed. Returns
    // ok, or again if posted_limit memories wait. While no memory is posted, nothing is delivered,
    // and the peer is blocked when all receive buffers are full.
    Status post_receive(std::span<std::byte> memory, Cookie cookie);
    // The number of posted memories that wait for a message.
    std::size_t posted_count() const noexcept;

    // Stops delivery, from the next message on; the peer is blocked when all receive buffers are
    // full. The socket stays paused after it has reconnected. If the connection ends while messages
    // wait, on_closed comes after them. Has no effect after close() or abort().
    void pause();
    // Continues in one of the next turns of the loop.
    void resume();

    bool is_connected() const noexcept; // false also while the connection closes
    // Whether the socket will connect again by itself; valid in on_closed and after it.
    bool is_retrying() const noexcept;
    // The largest message that is sent by copy, and without a copy; valid while connected.
    std::size_t message_limit() const noexcept;
    std::size_t frame_limit() const noexcept;
    std::string peer_address() const; // empty without a connection
    // The provider in use; valid while connected.
    const std::string& provider() const noexcept;
    // The received memory that the user keeps, of the present connection.
    KeepStats kept() const;
    const Counters& counters() const noexcept;

    // For the user: a number or pointer that belongs to this socket.
    std::uint64_t tag = 0;
    std::shared_ptr<void> context;

  private:
    friend class IncomingPeer;
    void accept(IncomingSession& incoming);

    std::unique_ptr<MessageCore> core_;
};

// Throws std::invalid_argument, which names the option and the allowed values.
NETIO_EXPORT void validate(const MessageSocket::Options& options);

// A peer that asks for a connection. Valid during on_incoming.
class NETIO_EXPORT IncomingPeer final {
  public:
    IncomingPeer(Transport& transport, IncomingSession& incoming) noexcept // called by the library
        : transport_{transport}, incoming_{incoming} {}

    std::string peer_address() const;
    // Accepts the peer; on_connected or on_closed of the socket follows. Throws
    // std::invalid_argument (options), and FabricError if this side lacks a resource, or if the
    // peer was already answered. Do not catch FabricError in on_incoming: the listener notifies the
    // peer and the observer.
    std::unique_ptr<MessageSocket> accept(MessageSocket::Options options,
                                          MessageSocket::Functions functions);
    // `why` is passed to the loop's observer, not to the peer. If on_incoming neither accepts nor
    // rejects the peer, the listener rejects it.
    void reject(std::string why);

  private:
    Transport& transport_;
    IncomingSession& incoming_;
};

// Listens for the connections of message sockets:
//
//     netio::MessageListener listener{netio::network_of(loop), {.listen = "0.0.0.0:1234"},
//         [&](netio::IncomingPeer& peer) { sockets.push_back(peer.accept(options, functions)); }};
//
// Belongs to the loop's thread; may be destroyed in its function. Accepted sockets are independent
// of it.
class NETIO_EXPORT MessageListener final {
  public:
    struct Options {
        AddressList listen{};
        bool allow_remote_anonymous = false; // peers of other machines may connect without keys
        std::size_t peer_limit = 4096;       // connected peers
        // Limit of peers per host; 0: half of peer_limit. With keys, the limit of the keys applies.
        std::size_t connections_per_host = 0;
        std::shared_ptr<ServerKeys> keys{}; // of the accepted peers; null: no key is needed
        std::uint8_t protocol = 0;          // as MessageSocket::Options::protocol
    };

    // Throws FabricError if an address is in use, not local, or served by no provider. Throws
    // std::invalid_argument if other machines can reach it, there are no keys, and
    // `allow_remote_anonymous` is false.
    MessageListener(Transport& transport, Options options,
                    std::function<void(IncomingPeer& peer)> on_incoming);
    ~MessageListener();
    MessageListener(const MessageListener&) = delete;
    MessageListener& operator=(const MessageListener&) = delete;

    // The addresses where it listens.
    std::vector<Endpoint> endpoints() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace netio::inline v0_3
