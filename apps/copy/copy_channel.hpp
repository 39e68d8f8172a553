// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of one side of a copy, and its messages on the stream socket: several buffers of a
// chunk each with their headers, so that disk and network work at the same time, and room for the
// messages of apps/copy/copy_protocol.hpp. Cookies below buffer_count are the buffers', the rest
// its own. Belongs to the loop's thread, except that the bytes of a buffer are used by who has
// taken it.

#include "apps/copy/copy_protocol.hpp"
#include "netio/memory/buffer.hpp"
#include "stream/socket/stream_socket.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace apps {

// What both sides of a copy connect with. The ring does not grow: the buffers are what carries a
// file over a distance, and all the memory that a connection takes is known beforehand.
netio::stream::StreamSocket::Options copy_stream_options(const std::string& local_host = {});

class CopyChannel {
  public:
    using Buffer = std::uint32_t;

    explicit CopyChannel(std::size_t buffer_count);

    // All buffers are free and no message is under way: a new connection.
    void reset();

    bool has_free_buffer() const noexcept { return !free_buffers_.empty(); }
    Buffer take_buffer();
    void free_buffer(Buffer buffer) { free_buffers_.push_back(buffer); }
    // The bytes of a chunk; they begin at a page.
    std::span<std::byte> bytes(Buffer buffer, std::size_t size) const;
    std::span<std::byte, copy_chunk_header_bytes> header(Buffer buffer) const;
    // Header and bytes in one.
    netio::Slice slice(Buffer buffer, std::size_t size);

    static bool is_buffer(netio::Cookie cookie) noexcept {
        return static_cast<std::uint64_t>(cookie) < first_own_cookie;
    }

    // False: the connection has ended, or the peer does not take what it was sent before.
    bool send(netio::stream::StreamSocket& socket, const CopyMessage& message);
    // For completed sends that are no buffer's.
    void on_sent(netio::Cookie cookie);

    // Asks for the next message; one at a time.
    void expect(netio::stream::StreamSocket& socket);
    enum class Progress : std::uint8_t {
        incomplete,
        message, // kind() and body() until expect()
        ended,   // the peer has ended its stream
        flawed,  // flaw() says what the peer did
    };
    // For completed receives that are no buffer's.
    Progress on_received(netio::stream::StreamSocket& socket, const netio::stream::Received& got);
    CopyKind kind() const noexcept { return prelude_.kind; }
    std::span<const std::byte> body() const;
    CopyFlaw flaw() const noexcept { return flaw_; }

  private:
    static constexpr std::uint64_t first_own_cookie = std::uint64_t{1} << 32;
    static constexpr netio::Cookie prelude_cookie{first_own_cookie};
    static constexpr netio::Cookie body_cookie{first_own_cookie + 1};
    static constexpr std::uint64_t first_message_cookie = first_own_cookie + 2;
    static constexpr std::size_t message_count = 4;
    static constexpr std::size_t message_bytes = copy_prelude_bytes + copy_body_limit_bytes;
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t stride_bytes = page_bytes + copy_chunk_bytes;

    // The header lies at the end of a page.
    static std::size_t offset(Buffer buffer) {
        return buffer * stride_bytes + page_bytes - copy_chunk_header_bytes;
    }

    std::size_t buffer_count_;
    netio::RegisteredBuffer chunks_;
    netio::RegisteredBuffer messages_; // those that are sent, then the one that is received
    std::vector<Buffer> free_buffers_;
    std::vector<std::uint32_t> free_messages_;
    CopyPrelude prelude_;
    CopyFlaw flaw_ = CopyFlaw::none;
};

} // namespace apps
