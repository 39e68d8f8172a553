// SPDX-License-Identifier: Apache-2.0
#pragma once

// The implementation of BlockingStream and BlockingListener: the loop that runs inside the calls,
// the deadline of a call, and one connection.

#include "stream/core/fifo.hpp"
#include "stream/core/inactivity_timer.hpp"
#include "stream/socket/blocking_stream.hpp"

#include "netio/loop/event_loop.hpp"
#include "netio/transport.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace netio::stream::inline v0_3 {

// An event loop and a transport that only blocking calls use. One thread is in a call at a time
// (checked).
class BlockingEngine {
  public:
    // With its own loop and transport. Throws FabricError.
    explicit BlockingEngine(const std::string& provider);
    // With those of a test, which must outlive it.
    BlockingEngine(EventLoop& loop, Transport& transport);

    EventLoop& loop() noexcept { return loop_; }
    Transport& transport() noexcept { return transport_; }

    // Marks a call in progress while it lives. A thread that is in a call may begin another one.
    class Use {
      public:
        explicit Use(BlockingEngine& engine);
        ~Use();
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

      private:
        BlockingEngine& engine_;
        bool is_outermost_;
    };

    // Runs the task at once, or, if another thread is in a call, between two turns of the loop;
    // returns after it has run. If called inside a handler of this thread's call, the task runs
    // after the handler has returned. Any thread.
    void interrupt(std::function<void()> task);
    // Runs the tasks that interrupt() has left for the call in progress.
    void run_interrupts();

  private:
    std::unique_ptr<EventLoop> own_loop_;
    EventLoop& loop_;
    std::unique_ptr<Transport> own_transport_;
    Transport& transport_;

    std::recursive_mutex mutex_; // of what follows
    std::condition_variable_any changed_;
    std::thread::id caller_{};
    std::vector<std::function<void()>> interrupts_;
    std::atomic<bool> has_interrupts_{false};
};

// Time limits of a call; 0: no limit.
struct BlockingLimits {
    std::chrono::milliseconds call{0};
    std::chrono::milliseconds progress{0};
    std::chrono::milliseconds farewell{0};
};

// One public call: its deadline, which is computed once, and the loop until then.
class BlockingCall {
  public:
    // `moved_bytes`: the number of bytes transferred so far. A change of it is progress.
    BlockingCall(BlockingEngine& engine, const BlockingLimits& limits,
                 std::function<std::uint64_t()> moved_bytes);

    // Runs the loop until `done` returns true. Returns false if the time of the call ends before.
    bool run_until(const std::function<bool()>& done) { return run_until(done, end_); }
    // The same, for `time` at most.
    bool run_for(std::chrono::milliseconds time, const std::function<bool()>& done);
    // The limit that was exceeded, as a text for StreamError.
    std::string verdict() const;

  private:
    bool run_until(const std::function<bool()>& done, TimePoint end);

    BlockingEngine& engine_;
    BlockingEngine::Use use_;
    BlockingLimits limits_;
    std::function<std::uint64_t()> moved_bytes_;
    TimePoint end_;
    InactivityTimer inactivity_;
    std::uint64_t seen_bytes_;
};

// Limit of copies: shorter reads and writes are copied through registered memory that is kept.
// Registering more than this for one call costs less than the copy.
inline constexpr std::size_t copy_limit_bytes = 64 * 1024;

// The memory into which short writes are copied, one after the other; at most as many as the socket
// takes sends.
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

// Bytes that have arrived and were not read yet, in order.
class UnreadBytes {
  public:
    bool empty() const noexcept { return pieces_.empty(); }
    std::size_t size() const noexcept;
    // Adds the next bytes of the stream. `owner`: of their memory, until they are read.
    void add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr);
    // Returns bytes that a read has taken but cannot deliver to the front. Copies them. Throws
    // std::bad_alloc.
    void put_back(std::span<const std::byte> bytes);
    // Copies as many bytes as there are and fit. Returns their number.
    std::size_t take(std::span<std::byte> memory) noexcept;
    void clear() noexcept { pieces_ = {}; }

  private:
    struct Piece {
        std::span<const std::byte> bytes;
        std::shared_ptr<const void> owner;
    };
    Fifo<Piece> pieces_;
};

class BlockingConnection final : private StreamSocket::Handler {
  public:
    // Connects.
    BlockingConnection(std::shared_ptr<BlockingEngine> engine, std::string_view address,
                       const BlockingStream::Options& options);
    BlockingConnection(std::shared_ptr<BlockingEngine> engine, IncomingStream& incoming,
                       const BlockingStream::Options& options);
    ~BlockingConnection();

    std::size_t read(std::span<std::byte> memory);
    void read_exactly(std::span<std::byte> memory);
    bool has_capacity() const noexcept { return sends_open_ < outgoing_.count(); }
    BlockingStream::Ready wait_for(int descriptor);
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

    BlockingCall begin();
    EventLoop& loop() noexcept { return engine_->loop(); }

    bool is_over() const noexcept;
    std::uint64_t partial_bytes() const noexcept;
    bool has_arrivals() const noexcept { return !unread_.empty() || partial_bytes() > 0; }
    bool is_at_end() const noexcept { return end_ == End::arrived && !standing_; }
    bool may_receive_directly(std::size_t bytes) const noexcept;
    bool wait_for_arrivals(
        BlockingCall& call, const std::function<bool()>& or_else = [] { return false; });
    std::size_t take_arrivals(std::span<std::byte> memory);

    std::size_t take(std::span<std::byte> memory, Fill fill, BlockingCall& call);
    void take(std::span<std::byte> memory, Fill fill, BlockingCall& call, std::size_t& filled);
    bool receive_directly(std::span<std::byte> memory, Fill fill, BlockingCall& call,
                          std::size_t& filled);
    bool keep_receiving(std::size_t bytes);
    std::string arrivals_of(std::size_t asked, std::size_t filled) const;
    void put_back(std::span<const std::byte> bytes);
    void report_end(BlockingCall& call);

    void send(const Slice& slice);
    void disconnect(const std::string& why);
    void wait_for_reason();
    std::uint64_t moved_bytes() const;
    [[noreturn]] void throw_closed() const;
    void add_arrivals(const std::shared_ptr<RegisteredBuffer>& memory, std::size_t begin,
                      std::size_t end);

    void on_connected(StreamSocket& socket) override;
    void on_send_completed(StreamSocket& socket, Cookie cookie,
                           Completion::Outcome outcome) override;
    void on_received(StreamSocket& socket, const Received& received) override;
    void on_end_of_stream(StreamSocket& socket) override;
    void on_lost(StreamSocket& socket, std::uint64_t arrived_bytes) override;
    void on_closed(StreamSocket& socket, const Closed& closed) override;

    std::shared_ptr<BlockingEngine> engine_; // shared with the listener that accepted the stream
    const std::shared_ptr<RegisteredBuffer> incoming_ =
        std::make_shared<RegisteredBuffer>(copy_limit_bytes, Access::remote_write);
    WriteSlots outgoing_;
    UnreadBytes unread_;
    // Bytes that had arrived and were dropped for lack of memory: no later bytes are read.
    std::uint64_t dropped_bytes_ = 0;
    std::uint64_t missing_bytes_ = 0; // of those: after the bytes in rest_
    // Memory of this object that a receive is posted to, and how much of it was read before the
    // receive is complete.
    std::shared_ptr<RegisteredBuffer> standing_;
    std::size_t standing_read_bytes_ = 0;
    std::shared_ptr<RegisteredBuffer> rest_; // unread ring bytes of a lost connection
    bool connected_ = false;
    enum class End : std::uint8_t { none, arrived, read } end_ = End::none;
    bool shut_down_ = false; // no more writes
    std::uint64_t sends_ = 0;
    std::size_t sends_open_ = 0;
    bool send_canceled_ = false;
    std::optional<Received> received_; // the answer to direct_cookie
    std::optional<Closed> closed_;
    std::unique_ptr<StreamSocket> socket_; // last member, so that it is destroyed first
};

} // namespace netio::stream::inline v0_3
