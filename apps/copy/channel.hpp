// SPDX-License-Identifier: Apache-2.0
#pragma once

// One end of a copy's connection: the stream socket, the messages of apps/copy/protocol.hpp on it,
// and several buffers of a chunk each with their headers, so that disk and network work at the same
// time. Both sides are its Handler. Belongs to the loop's thread, except that the bytes of a buffer
// are used by who has taken it.
//
// The memory is made when the connection is there: a stranger who gets no further costs none.

#include "apps/copy/protocol.hpp"
#include "netio/memory/buffer.hpp"
#include "stream/socket/stream_listener.hpp"
#include "stream/socket/stream_socket.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace apps::copy {

class Channel final : private netio::stream::StreamSocket::Handler {
  public:
    using Buffer = std::uint32_t;

    class Handler {
      public:
        // All buffers are free, and a message is expected.
        virtual void on_open() = 0;
        // Instead: there is no memory for the buffers.
        virtual void on_no_memory(const std::string& why) = 0;
        // The message that was expected; kind() and body() until expect().
        virtual void on_message() = 0;
        // What was sent from the buffer has left.
        virtual void on_sent(Buffer /*buffer*/) {}
        // A message has left.
        virtual void on_message_sent() {}
        // A chunk of `bytes`, its header included, is in the buffer.
        virtual void on_chunk(Buffer /*buffer*/, std::uint64_t /*bytes*/) {}
        // The peer did what the protocol does not allow.
        virtual void on_flaw(std::string_view what) = 0;
        // The peer sends no more.
        virtual void on_end() = 0;
        virtual void on_closed(const netio::Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    Channel(std::size_t buffer_count, netio::stream::RemoteWrites remote_writes, Handler& handler)
        : buffer_count_{buffer_count}, remote_writes_{remote_writes}, handler_{handler} {}

    void connect(netio::Transport& transport, const netio::Address& server,
                 const std::string& local_host, std::shared_ptr<const netio::ClientKey> key);
    // Throws as IncomingStream::accept.
    void accept(netio::stream::IncomingStream& incoming);
    void shutdown_send() { socket_->shutdown_send(); }
    void close() { socket_->close(); }
    void abort() { socket_->abort(); }

    const std::string& provider() const noexcept { return socket_->provider(); } // while connected
    // All that has arrived, of an unfinished chunk too.
    std::uint64_t arrived_bytes() const;

    bool has_free_buffer() const noexcept { return !free_buffers_.empty(); }
    Buffer take_buffer();
    void free_buffer(Buffer buffer) { free_buffers_.push_back(buffer); }
    // The bytes of a chunk; they begin at a page.
    std::span<std::byte> bytes(Buffer buffer, std::size_t size) const;
    std::span<std::byte, chunk_header_bytes> header(Buffer buffer) const;
    // A chunk of `size` bytes and its header. Throws FabricError: no more memory may be locked. A
    // connection that has ended says so by on_closed.
    void send(Buffer buffer, std::size_t size);
    void receive(Buffer buffer, std::size_t size);

    // False: the connection has ended, or the peer does not take what it was sent before. If there
    // is no memory for a message, the connection ends, and on_closed says why.
    bool send(const Message& message);
    // How many more messages may be sent now.
    std::size_t free_message_count() const noexcept { return free_messages_.size(); }
    // Nothing that was sent before is still under way.
    bool has_sent_all_messages() const noexcept;
    // Asks for the next message; one at a time.
    void expect();
    Kind kind() const noexcept { return prelude_.kind; }
    std::span<const std::byte> body() const;

  private:
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t stride_bytes = page_bytes + chunk_bytes;

    // The header lies at the end of a page.
    static std::size_t offset(Buffer buffer) {
        return buffer * stride_bytes + page_bytes - chunk_header_bytes;
    }
    void make_memory();
    void take_prelude();
    // No more memory may be locked: it ends.
    template <class Post>
    netio::Status post(Post post);

    void on_connected(netio::stream::StreamSocket& socket) override;
    void on_send_completed(netio::stream::StreamSocket& socket, netio::Cookie cookie,
                           netio::Completion::Outcome outcome) override;
    void on_received(netio::stream::StreamSocket& socket,
                     const netio::stream::Received& received) override;
    void on_end_of_stream(netio::stream::StreamSocket& socket) override;
    void on_closed(netio::stream::StreamSocket& socket, const netio::Closed& closed) override;

    std::size_t buffer_count_;
    netio::stream::RemoteWrites remote_writes_;
    Handler& handler_;
    std::unique_ptr<netio::RegisteredBuffer> chunks_;
    std::unique_ptr<netio::RegisteredBuffer> messages_; // sent ones, then the one received
    std::vector<Buffer> free_buffers_;
    std::vector<std::uint32_t> free_messages_;
    Prelude prelude_;
    std::string no_memory_;                               // why it has to end
    std::unique_ptr<netio::stream::StreamSocket> socket_; // last: goes first
};

} // namespace apps::copy
