// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sending side of a point-to-point connection for small messages. They are copied into pages; a
// page is sent when it is full, at the watermark, after the flush time, or on flush(). A
// ListenSocket at the other end delivers each message separately.
//
//     struct Handler : netio::BufferedSendSocket::Handler { ... } handler;
//     netio::BufferedSendSocket socket{*transport, {.flush_time = 100us}, handler};
//     socket.connect(netio::parse_address("10.0.0.1:1234"));
//     // in on_connected:
//     Status status = socket.send(bytes);
//
// The bytes are copied before send() returns. A message larger than a page is sent in several pages
// and arrives whole, in order. Messages that were not sent when the connection ends are lost.
// Belongs to the loop's thread; may be destroyed in any of its handlers.

#include "netio/base/copy.hpp"
#include "netio/base/export.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/loop/check_caller.hpp"
#include "netio/messages/send_socket.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace netio::inline v0_3 {

class BufferedSendCore;

class NETIO_EXPORT BufferedSendSocket final {
  public:
    struct Options {
        SendSocket::Options socket{};
        std::size_t page_size_bytes = 64 * 1024; // reduced if the receiver's buffers are smaller
        std::size_t page_count = 128;
        std::size_t watermark_bytes = 0; // a page is sent when it has this many bytes; 0: when full
        // The longest time that a message waits for its page to fill; 0: no timer. At most one page
        // per flush time is sent for this reason; the first one after a pause is sent at the end of
        // the turn.
        std::chrono::microseconds flush_time{40};
    };

    class Handler {
      public:
        virtual void on_connected(BufferedSendSocket&) {}
        // After send() returned `again`: a page is free, so try again.
        virtual void on_writable(BufferedSendSocket&) {}
        // The connection, or the attempt at one, has ended: refused, rejected, lost, closed ...
        // Messages that were not sent are discarded, and every page is free. Call connect() to
        // connect again; if is_retrying(), the socket does so by itself.
        virtual void on_closed(BufferedSendSocket& socket, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // Since construction; they do not decrease.
    struct Counters {
        std::uint64_t messages = 0; // accepted
        std::uint64_t bytes = 0;    // of those messages
        std::uint64_t pages = 0;    // closed for sending
        std::uint64_t again = 0;    // calls that returned again, because no page was free
    };

    // Throws std::invalid_argument, which names the option and the allowed values.
    BufferedSendSocket(Transport& transport, const Options& options, Handler& handler);
    ~BufferedSendSocket();
    BufferedSendSocket(const BufferedSendSocket&) = delete;
    BufferedSendSocket& operator=(const BufferedSendSocket&) = delete;

    // Tries every address of the host over every provider that reaches it, best first; on_connected
    // or on_closed follows. Must not be called while connected or connecting (checked).
    void connect(const Address& remote);
    // Closes in order. on_closed(orderly) follows when the user of the receiver has received
    // everything that was accepted. on_closed(unconfirmed), with Closed::unconfirmed_frames,
    // follows if that user receives nothing more for socket.session.close_timeout, or not
    // everything within close_limit.
    void close();
    // Closes at once: on_closed(local) follows, with Closed::unconfirmed_frames.
    void abort();

    // Copies the message into a page. ok: it will be sent. again: all pages are in flight, and
    // nothing was copied; on_writable follows when a page is free. too_large: above
    // message_limit(). closed: not connected, or closing.
    Status send(std::span<const std::byte> message) {
        // Usually no function call is needed: there is an open page with space.
        NETIO_CHECK_FREQUENT_CALLER(*this, "BufferedSendSocket");
        std::byte* const out = filling_.writer.append(message.size());
        if (out == nullptr) return sendv({&message, 1});
        copy_bytes(out, message);
        count(message.size());
        return Status::ok;
    }
    // The parts together are one message.
    Status sendv(MessageParts parts);
    // Sends all coalesced messages now.
    void flush();

    bool is_connected() const noexcept;
    // With socket.reconnect: whether the socket will connect again by itself; valid in on_closed
    // and after it.
    bool is_retrying() const noexcept;
    // The largest message that send() takes; valid while connected.
    std::size_t message_limit() const noexcept;
    // The number of pages that are being filled, are queued, or are in flight.
    std::size_t pages_in_use() const noexcept;
    const Counters& counters() const noexcept {
        NETIO_CHECK_CALLER(*this, "BufferedSendSocket");
        return filling_.counters;
    }
    SendSnapshot snapshot() const noexcept;
    // The provider in use; valid while connected.
    const std::string& provider() const noexcept;
    // Ends the program if another thread runs the loop now; debug builds check each call.
    void check_caller(const char* type, const char* call) const noexcept;

  private:
    friend class BufferedSendCore;
    // The page that is being filled, for the inline part of send().
    struct Filling {
        PageWriter writer; // without an open page it has no space
        std::size_t watermark_bytes = 0;
        Counters counters;
    };

    void count(std::size_t bytes) {
        ++filling_.counters.messages;
        filling_.counters.bytes += bytes;
        if (filling_.writer.used() >= filling_.watermark_bytes) flush();
    }

    Filling filling_;
    std::unique_ptr<BufferedSendCore> core_;
};

// Throws std::invalid_argument, which names the option and the allowed values.
NETIO_EXPORT void validate(const BufferedSendSocket::Options& options);

} // namespace netio::inline v0_3
