// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stream for those who just want a socket: read, write and time-outs, over a loop that runs
// inside the calls.
//
//     auto peer = stream::BlockingStream::connect("10.0.0.1:1234", {.timeout = 5s});
//     peer.write(request);
//     peer.read_exactly(answer);
//     peer.close();
//
//     stream::BlockingListener listener{"0.0.0.0:1234"};
//     stream::BlockingStream client = listener.accept();
//
// Every call throws StreamError when it cannot do its work. After a time-out of a read of up to
// 64 KiB the stream can be used on; other calls end the connection, for the memory they have lent
// to the network must be free when they return.
//
// Threads: one at a time; a listener and the streams it has accepted count as one, and it outlives
// them. Nothing is sent or received between the calls, so heartbeats are off, and a stream that is
// not used holds its peer up.

#include "netio/base/export.hpp"
#include "stream/socket/stream_listener.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace netio::stream::inline v0_2 {

class NETIO_EXPORT StreamError : public std::runtime_error {
  public:
    enum class Kind : std::uint8_t {
        timed_out,
        ended,  // read_exactly: the stream ended before
        closed, // there is no connection, or none any more; what() says why
    };
    StreamError(Kind kind, const std::string& what) : std::runtime_error{what}, kind_{kind} {}
    Kind kind() const noexcept { return kind_; }

  private:
    Kind kind_;
};

struct BlockingOptions {
    StreamOptions stream = {};
    std::string provider = "auto";
    std::chrono::milliseconds timeout{0}; // of each call; 0: none
};

class NETIO_EXPORT BlockingStream {
  public:
    // Throws FabricError (no provider reaches the address), std::invalid_argument (the address or
    // the options), StreamError.
    static BlockingStream connect(std::string_view address, const BlockingOptions& options = {});
    ~BlockingStream(); // aborts what was not closed
    BlockingStream(BlockingStream&& other) noexcept;
    BlockingStream& operator=(BlockingStream&& other) noexcept;

    // What there is, at least one byte; 0: the peer has ended the stream.
    std::size_t read(std::span<std::byte> memory);
    // A write of up to 64 KiB would return without waiting.
    bool has_capacity() const noexcept;
    // Waits until there is something to read here or the stream has ended (peer), or the descriptor
    // is readable, or, if there was none, there is room; whatever comes first.
    enum class Ready : std::uint8_t { peer, descriptor, room };
    static constexpr int no_descriptor = -1;
    Ready wait_for(int descriptor);
    // All of it, or StreamError.
    void read_exactly(std::span<std::byte> memory);
    // Returns when all of it is on its way.
    void write(std::span<const std::byte> memory);
    // No more writes; the peer reads the end of the stream behind the last byte.
    void finish();
    // finish(), and waits until the peer's side has received everything.
    void close();

    void set_timeout(std::chrono::milliseconds timeout) noexcept;
    std::string peer_address() const;
    StreamCounters counters() const;

  private:
    friend class BlockingListener;
    class Connection;
    explicit BlockingStream(std::unique_ptr<Connection> connection);

    std::unique_ptr<Connection> connection_;
};

class NETIO_EXPORT BlockingListener {
  public:
    // Throws FabricError and std::invalid_argument.
    explicit BlockingListener(std::string_view address, const BlockingOptions& options = {});
    ~BlockingListener();
    BlockingListener(const BlockingListener&) = delete;
    BlockingListener& operator=(const BlockingListener&) = delete;

    // The next peer that connects. Throws FabricError if there is none yet, and one was turned away
    // since the last call because there was no memory or no descriptor for it: the peer has been
    // told, and the next call goes on.
    BlockingStream accept();
    // With the port that was really bound.
    Address address() const;

  private:
    class Acceptor;
    std::unique_ptr<Acceptor> acceptor_;
};

} // namespace netio::stream::inline v0_2
