// SPDX-License-Identifier: Apache-2.0
#pragma once

// One end of a copy's connection: the stream socket, the messages of apps/copy/protocol.hpp on it,
// and several buffers of one chunk each with its header, so that disk and network work at the same
// time. Both sides are its Handler. Belongs to the loop's thread, except that the bytes of a buffer
// belong to the thread that currently uses the buffer.
//
// Memory is allocated after the handshake, so an unauthenticated peer costs none.

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
        // The channel is open: all buffers are free, and a message is expected.
        virtual void on_open() = 0;
        // Called instead of on_open() if there is no memory for the buffers.
        virtual void on_no_memory(const std::string& why) = 0;
        // The expected message has arrived; kind() and body() are valid until expect().
        virtual void on_message() = 0;
        // The chunk in the buffer was sent.
        virtual void on_sent(Buffer /*buffer*/) {}
        // A message was sent.
        virtual void on_message_sent() {}
        // A chunk of `bytes`, including its header, is in the buffer.
        virtual void on_chunk(Buffer /*buffer*/, std::uint64_t /*bytes*/) {}
        // The peer violated the protocol.
        virtual void on_flaw(std::string_view what) = 0;
        // The peer has ended its data.
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
    // All received bytes, including those of an unfinished chunk.
    std::uint64_t arrived_bytes() const;

    bool has_free_buffer() const noexcept { return !free_buffers_.empty(); }
    Buffer take_buffer();
    void free_buffer(Buffer buffer) { free_buffers_.push_back(buffer); }
    // The bytes of a chunk; they begin at a page boundary.
    std::span<std::byte> bytes(Buffer buffer, std::size_t size) const;
    std::span<std::byte, chunk_header_bytes> header(Buffer buffer) const;
    // Sends a chunk of `size` bytes and its header. Throws FabricError if no more memory may be
    // locked. If the connection has ended, on_closed follows.
    void send(Buffer buffer, std::size_t size);
    void receive(Buffer buffer, std::size_t size);

    // Returns false if the connection has ended or the peer does not receive earlier messages. If
    // there is no memory for a message, the connection ends, and on_closed has the reason.
    bool send(const Message& message);
    // Number of further messages that may be sent now.
    std::size_t free_message_count() const noexcept { return free_messages_.size(); }
    // Returns true if no message is in flight.
    bool has_sent_all_messages() const noexcept;
    // Requests the next message; one at a time.
    void expect();
    Kind kind() const noexcept { return prelude_.kind; }
    std::span<const std::byte> body() const;

  private:
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t stride_bytes = page_bytes + chunk_bytes;

    // The header is at the end of a page.
    static std::size_t offset(Buffer buffer) {
        return buffer * stride_bytes + page_bytes - chunk_header_bytes;
    }
    void make_memory();
    void take_prelude();
    // Ends the connection if no more memory may be locked.
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
    std::unique_ptr<netio::RegisteredBuffer>
        messages_; // slots of sent messages, then of the received one
    std::vector<Buffer> free_buffers_;
    std::vector<std::uint32_t> free_messages_;
    Prelude prelude_;
    std::string no_memory_;                               // reason for ending
    std::unique_ptr<netio::stream::StreamSocket> socket_; // last: destroyed first
};

} // namespace apps::copy
