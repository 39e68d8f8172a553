// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stream with blocking calls: read, write and time-outs, over a loop that runs inside the calls.
//
//     auto peer = stream::BlockingStream::connect("10.0.0.1:1234", {.progress_timeout = 5s});
//     peer.write(request);
//     peer.read_exactly(answer);
//     peer.close();
//
//     stream::BlockingListener listener{"0.0.0.0:1234", {.allow_remote_anonymous = true}};
//     stream::BlockingStream client = listener.accept();
//
// Every call throws StreamError when it cannot do its work. A call that fails loses no byte that
// has arrived: the next read returns it. After a time-out:
//
//     read, read_exactly  the stream can be used further, except if the peer writes directly into
//                         the caller's memory: over RDMA or with RemoteWrites::trusted, and with
//                         more than 64 KiB still to be read. Then the connection has ended
//     write               up to 64 KiB: nothing of it was sent, and the stream can be used further.
//                         Longer: the connection has ended, unless the text says that nothing was
//                         sent, and the peer may have received a part of it
//     wait_for, accept    nothing has happened; call it again
//     close               the stream is still closing; call it again
//
// The library does not use the caller's memory after a call has returned or thrown; after a read
// that throws, its contents are not specified. A time limit holds for a whole call, even if the
// peer sends meanwhile. A signal does not end a call.
//
// Threads: one at a time; a listener and the streams that it has accepted count as one, and the
// listener must outlive them. Only BlockingListener::stop() may be called from any thread. Nothing
// is sent or received between the calls, so heartbeats are off, and a peer waits while the stream
// is not used. A moved-from object may only be destroyed or assigned to: other calls throw
// std::logic_error.

#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/time.hpp"
#include "netio/session/server_keys.hpp"
#include "stream/socket/stream_listener.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace netio::stream::inline v0_3 {

class NETIO_EXPORT StreamError : public std::runtime_error {
  public:
    enum class Kind : std::uint8_t {
        timed_out,
        ended,  // read_exactly: the stream ended too early; the next read returns what has arrived
        closed, // there is no connection, or it has ended; what() has the reason
    };
    StreamError(Kind kind, const std::string& what) : std::runtime_error{what}, kind_{kind} {}
    Kind kind() const noexcept { return kind_; }

  private:
    Kind kind_;
};

class BlockingConnection;

class NETIO_EXPORT BlockingStream {
  public:
    struct Options {
        StreamSocket::Options stream = {};
        std::string provider = "auto"; // as FabricOptions::provider
        // Of a listener: peers of other machines may connect without keys.
        bool allow_remote_anonymous = false;
        std::optional<ServerKeys::Options> keys{}; // of a listener; nullopt: no key is needed
        // Limit of the time of each call; 0: no limit. Times must not be negative; more than a year
        // means no limit.
        std::chrono::milliseconds call_timeout{0};
        // Limit of the time in a call without a transferred byte; 0: no limit. Time in which this
        // process is stopped does not count.
        std::chrono::milliseconds progress_timeout{0};
        // A peer that closes needs the confirmation that everything was read, which is sent only
        // during a call. Therefore the call that reports the end of the stream, which may be the
        // last call, waits up to this time until the connection has ended, but not beyond its
        // call_timeout. 0: it does not wait.
        std::chrono::milliseconds farewell_timeout{2'000};
        // Receives events of the listener and of the streams that it has accepted, or of the stream
        // that connects: during their calls, on the calling thread. Must outlive them.
        Observer* observer = nullptr;
    };

    // Throws FabricError (no provider reaches the address), std::invalid_argument (the address or
    // the options), StreamError.
    static BlockingStream connect(std::string_view address, const Options& options);
    static BlockingStream connect(std::string_view address);
    ~BlockingStream(); // aborts a connection that was not closed
    BlockingStream(BlockingStream&& other) noexcept;
    BlockingStream& operator=(BlockingStream&& other) noexcept;

    // Returns what has arrived, at least one byte; 0: the peer has ended the stream.
    std::size_t read(std::span<std::byte> memory);
    // Fills the memory, or throws StreamError and consumes nothing: the next read returns what had
    // arrived.
    void read_exactly(std::span<std::byte> memory);
    // Returns when everything was sent, or, up to 64 KiB, when it was copied; the copy is sent in
    // later calls at the latest. If the connection ends during the call, the peer may have received
    // a part of it.
    void write(std::span<const std::byte> memory);
    // Whether a write of up to 64 KiB would return without waiting.
    bool has_capacity() const noexcept;

    enum class Ready : std::uint8_t { peer, descriptor, writable };
    static constexpr int no_descriptor = -1;
    // Waits until one of these is true, and returns which: bytes can be read here, or the stream
    // has ended and no read has reported it yet (peer); the descriptor is readable (descriptor);
    // without a descriptor, has_capacity() (writable). During the wait bytes are transferred. A
    // regular file is always readable. Throws StreamError if the connection has ended and nothing
    // is left to read, and FabricError if the descriptor is not open.
    Ready wait_for(int descriptor);

    // Ends this direction; the peer reads the end of the stream after the last byte. Does not wait.
    void shutdown_send();
    // Calls shutdown_send(), and waits until the peer's side has received everything, but not
    // longer than stream.session.close_timeout for a peer that reads nothing more, nor than
    // close_limit in total. Each further close() reports the same outcome: nothing, if the
    // connection ended in order. Bytes that the peer still sends are not received.
    void close();

    // Applies from the next call on. Throws std::invalid_argument for a negative time.
    void set_call_timeout(std::chrono::milliseconds timeout);
    void set_progress_timeout(std::chrono::milliseconds timeout);
    template <typename Period>
    void set_call_timeout(std::chrono::duration<std::int64_t, Period> timeout) {
        set_call_timeout(clamped_milliseconds(timeout));
    }
    template <typename Period>
    void set_progress_timeout(std::chrono::duration<std::int64_t, Period> timeout) {
        set_progress_timeout(clamped_milliseconds(timeout));
    }
    std::string peer_address() const;
    StreamSocket::Counters counters() const;

  private:
    friend class BlockingListener;
    explicit BlockingStream(std::unique_ptr<BlockingConnection> connection);
    BlockingConnection& connection() const;

    std::unique_ptr<BlockingConnection> connection_;
};

// Throws std::invalid_argument, which names the option and the allowed values.
NETIO_EXPORT void validate(const BlockingStream::Options& options);

class NETIO_EXPORT BlockingListener {
  public:
    // Throws FabricError, std::invalid_argument, and std::runtime_error of ServerKeys.
    explicit BlockingListener(std::string_view address,
                              const BlockingStream::Options& options = {});
    ~BlockingListener();
    BlockingListener(const BlockingListener&) = delete;
    BlockingListener& operator=(const BlockingListener&) = delete;

    // Returns the next peer that connects. Throws FabricError if no peer has connected yet and one
    // was rejected since the last call because there was no memory or no descriptor for it; the
    // peer was notified, and accept() can be called again. Throws StreamError (closed) after
    // stop().
    BlockingStream accept();
    // Stops listening: the address is free again, a peer that connects is refused, and a connected
    // peer that is not accepted is disconnected. An accept() that waits in another thread throws.
    // Accepted streams are not affected. Any thread; may be called repeatedly.
    void stop();
    // The address where it listens, with the port that was actually bound.
    Address address() const;
    std::vector<Endpoint> endpoints() const; // the same address for each provider in use
    // The loop of the listener and its streams, for instance for an observer that posts tasks. It
    // runs only during their calls.
    EventLoop& loop() noexcept;

  private:
    class Acceptor;
    std::unique_ptr<Acceptor> acceptor_;
};

} // namespace netio::stream::inline v0_3
