// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes queued bytes on a thread of its own, so that a loop never waits for a terminal, a pipe or
// a disk. The loop's thread queues bytes; where `is_full()` is true it stops taking more from its
// peer. The event descriptor becomes readable when a full queue has room again, when everything is
// written, and when writing fails.
//
//     BackgroundWriter writer{DescriptorOutput{STDOUT_FILENO, "cannot write"}.write()};
//     DescriptorWatch watch{loop, writer.event_descriptor(), readable, [&] {
//         writer.clear_event();
//         if (writer.failure()) return loop.stop();
//         if (!writer.is_full()) socket.resume();
//     }};
//     writer.put(bytes);
//     if (writer.is_full()) socket.pause();
//
// Belongs to one thread. Its destructor drops the queue and does not wait for a write that blocks,
// so what `Write` and `Finish` use must belong to them.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace apps {

class BackgroundWriter {
  public:
    // Runs on the thread, and may block. Writes the beginning of what is queued and returns how
    // many bytes that was. What it throws ends the writing. Bytes of one put() arrive together.
    using Write = std::function<std::size_t(std::span<const std::byte>)>;
    // Runs on the thread after the last byte.
    using Finish = std::function<void()>;

    static constexpr std::size_t queue_limit_bytes = std::size_t{1} << 20;

    // Throws std::system_error: the system grants no thread or no descriptor.
    explicit BackgroundWriter(Write write, std::size_t limit_bytes = queue_limit_bytes);
    ~BackgroundWriter();
    BackgroundWriter(const BackgroundWriter&) = delete;
    BackgroundWriter& operator=(const BackgroundWriter&) = delete;

    // Queues all of it, also beyond the limit: the caller looks at is_full() before it takes more
    // from its peer. Does nothing after a failure.
    void put(std::span<const std::byte> bytes) { put({}, bytes); }
    void put(std::string_view text) { put({}, std::as_bytes(std::span{text})); }
    void put(std::span<const std::byte> head, std::span<const std::byte> body);
    // No more bytes come. is_done() becomes true after `finish` has run. The first call counts.
    void finish(Finish finish = [] {});

    // From when `limit_bytes` are queued until half of them are written.
    bool is_full() const;
    std::size_t queued_bytes() const;
    std::uint64_t written_bytes() const;
    // Everything is written, and finish() is carried out if it was called.
    bool is_done() const;
    // Null: none. Writing stops at the first failure.
    std::exception_ptr failure() const;

    int event_descriptor() const noexcept;
    void clear_event() noexcept;

    // For programs whose loop has ended: waits until everything is written. False: a signal that
    // asks for the end (end_signals(), where they are blocked) came first. Throws the failure.
    bool wait();

  private:
    struct Shared; // with the thread, which may outlive this
    std::shared_ptr<Shared> shared_;
};

// Writes to a duplicate of the descriptor. `place` begins the text of a failure, as in
// "cannot write to standard output".
class DescriptorOutput {
  public:
    DescriptorOutput(int descriptor, std::string_view place);

    BackgroundWriter::Write write() const;
    // After it nothing is written. The reader of a pipe or a socket sees the end of the stream. The
    // number of the descriptor stays in use, for /dev/null.
    void close() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

} // namespace apps
