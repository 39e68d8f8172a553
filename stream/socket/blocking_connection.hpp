// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is behind a BlockingStream: one connection, and the answers to the calls that wait for them.

#include "stream/socket/blocking_stream.hpp"

#include "netio/loop/event_loop.hpp"
#include "netio/transport.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace netio::stream::inline v0_2 {

// A loop and a transport that nobody else has.
struct BlockingEngine {
    explicit BlockingEngine(const std::string& provider);

    EventLoop loop;
    std::unique_ptr<Transport> transport;
};

// How long a call may take. 0: for ever.
struct BlockingLimits {
    std::chrono::milliseconds call{0};
    std::chrono::milliseconds progress{0};
    std::chrono::milliseconds farewell{0}; // 0: not at all
};
// Runs the loop until it is done; `moved` counts what has moved, and so tells progress. Throws
// StreamError::timed_out.
void run_until(EventLoop& loop, const BlockingLimits& limits,
               const std::function<std::uint64_t()>& moved, const std::function<bool()>& done);

// What is shorter is copied through registered memory that is kept; registering more than this
// for one call costs less than the copy.
inline constexpr std::size_t copy_limit_bytes = 64 * 1024;

// Where short writes are copied to: one after the other, and not more than the socket takes sends.
class WriteSlots {
  public:
    explicit WriteSlots(std::size_t send_limit_count)
        : memory_{std::clamp<std::size_t>(send_limit_count, 1, most) * copy_limit_bytes,
                  Access::send} {}

    std::size_t count() const noexcept { return memory_.size() / copy_limit_bytes; }
    Slice slice(std::uint64_t number, std::size_t bytes) noexcept {
        return memory_.slice(number % count() * copy_limit_bytes, bytes);
    }

  private:
    static constexpr std::size_t most = 8;

    RegisteredBuffer memory_;
};

class BlockingStream::Connection final : private StreamSocket::Handler {
  public:
    // Connects.
    Connection(std::string_view address, const BlockingStream::Options& options);
    Connection(IncomingStream& incoming, const BlockingStream::Options& options, EventLoop& loop);

    std::size_t read(std::span<std::byte> memory);
    // Less than all of it: the stream has ended.
    std::size_t read_all(std::span<std::byte> memory);
    bool has_capacity() const noexcept { return sends_open_ < outgoing_.count(); }
    Ready wait_for(int descriptor);
    void write(std::span<const std::byte> memory);
    void shutdown_send();
    void close();

    BlockingLimits limits;

    std::string peer_address() const;
    StreamSocket::Counters counters() const { return socket_->counters(); }
    bool is_connected() const noexcept { return connected_; }
    bool has_failed() const noexcept { return closed_.has_value(); }

  private:
    static constexpr Cookie standing_cookie{0};
    static constexpr Cookie direct_cookie{1};
    static constexpr Cookie rest_cookie{2};

    bool has_arrivals() const noexcept { return !arrived_.empty() || !rescued_.rest.empty(); }
    bool may_receive_directly(std::size_t bytes) const noexcept;
    void wait_for_arrivals(const std::function<bool()>& or_else = [] { return false; });
    std::size_t receive_into(std::span<std::byte> memory, Fill fill);
    std::size_t nothing_more();
    void settle();
    void send(const Slice& slice);
    void wait(const std::function<bool()>& done);
    void run(const std::function<bool()>& done);
    std::uint64_t moved_bytes() const;
    [[noreturn]] void throw_closed() const;

    void on_connected(StreamSocket& socket) override;
    void on_send_completed(StreamSocket& socket, Cookie cookie,
                           Completion::Outcome outcome) override;
    void on_received(StreamSocket& socket, const Received& received) override;
    void on_end_of_stream(StreamSocket& socket) override;
    void on_lost(StreamSocket& socket, std::uint64_t arrived_bytes) override;
    void on_closed(StreamSocket& socket, const Closed& closed) override;

    std::unique_ptr<BlockingEngine> engine_; // of a stream that connected; else its listener's
    EventLoop& loop_;
    RegisteredBuffer incoming_{copy_limit_bytes, Access::remote_write};
    WriteSlots outgoing_;
    std::span<const std::byte> arrived_; // of incoming_, and not yet read
    // What the ring held when the connection was lost; to be read behind that.
    struct Rescued {
        std::unique_ptr<RegisteredBuffer> memory;
        std::span<const std::byte> rest;
        std::uint64_t dropped_bytes = 0; // for want of memory
    } rescued_;
    bool standing_ = false; // a receive into incoming_ is posted
    bool connected_ = false;
    enum class End : std::uint8_t { none, arrived, read } end_ = End::none;
    std::uint64_t sends_ = 0;
    std::size_t sends_open_ = 0;
    bool send_canceled_ = false;
    std::optional<Received> received_; // the answer to direct_cookie
    std::optional<Closed> closed_;
    std::unique_ptr<StreamSocket> socket_; // last: goes first
};

} // namespace netio::stream::inline v0_2
