// SPDX-License-Identifier: Apache-2.0
#pragma once

// A completion queue: sockets on one or several loops put into it what they receive and complete,
// and any thread takes it out in batches (docs/guide.md, "Completion queues").
//
//     netio::CompletionQueue queue;
//     netio::Queued<netio::ListenSocket> listener{queue, 1, *transport, {.listen = {address}}};
//     // on any thread:
//     std::vector<netio::QueueEvent> events(64);
//     const std::size_t count = queue.dequeue(events, 100ms);
//
// A socket that delivers into a queue is made as Queued<Socket>: netio/messages/queued.hpp has
// those of messages, pubsub/queued.hpp and stream/socket/queued_stream.hpp the others. A full queue
// is backpressure: receiving sockets stop reading until there is space, so their peers wait; calls
// that begin an operation return `again`, and an event `writable` follows. A forked child process
// must not use a queue of its parent; its destructor does nothing there.

#include "netio/base/export.hpp"
#include "netio/base/kept_bytes.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/loop/process.hpp"
#include "netio/transport.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace netio::inline v0_3 {

struct QueueEvent {
    enum class Kind : std::uint8_t {
        message,       // bytes; immediate, or fid, status and time
        received,      // a receive of a stream: cookie, outcome, count of bytes, end_of_stream
        sent,          // a send: cookie, outcome
        published,     // a publication: cookie; count: subscribers that were sent it
        lost,          // count of messages of the fid
        connected,     // also a sender of a listen socket: peer
        subscribed,    // fid and last_fid
        refused,       // a subscription, for any reason: fid and last_fid
        writable,      // a call that returned `again` may succeed now
        end_of_stream, // after the last byte of a stream, or the last message of a MessageSocket
        closed,        // closed has the reason; a subscriber retries if `retrying`
    };

    Kind kind = Kind::message;
    std::uint8_t status = 0;
    Completion::Outcome outcome = Completion::Outcome::done;
    bool end_of_stream = false;
    bool retrying = false;
    std::uint64_t tag = 0;  // of the socket
    std::uint64_t peer = 0; // of a listen socket: number of the sender, from 1
    Cookie cookie{};
    std::uint64_t fid = 0;
    std::uint64_t last_fid = 0;
    std::uint64_t count = 0;
    std::optional<std::uint64_t> immediate{};
    // Of the publisher, in the unit of its clock (Publisher::Options::time_stamps); nullopt: none.
    std::optional<std::int64_t> time{};
    KeptBytes bytes{};
    std::shared_ptr<const Closed> closed{};
};

class QueueWriter;

class NETIO_EXPORT CompletionQueue final {
  public:
    struct Options {
        // Events in the queue and outstanding operations together. Beyond it a socket stops
        // reading after the message that it is delivering, and begins no operation.
        std::size_t queue_limit_events = 65536;
        // Bytes of the messages in the queue; the same. The memory of these messages also counts
        // for SessionOptions::keep_limit_bytes of each connection.
        std::size_t queue_limit_bytes = std::size_t{64} << 20;
    };

    CompletionQueue() : CompletionQueue{Options{}} {}
    // Throws std::invalid_argument for an invalid option.
    explicit CompletionQueue(const Options& options);
    // As close(), and waits until the threads that are in dequeue() have left it. Its sockets must
    // be destroyed before (checked).
    ~CompletionQueue();
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    // All functions may be called from any thread.

    // Moves the oldest events into `events`, whose former contents are destroyed first. Waits until
    // there is at least one. Returns their number; 0 after the time-out, and after close() if none
    // is left. Events of one socket come out in their order.
    std::size_t dequeue(std::span<QueueEvent> events, std::chrono::milliseconds timeout);
    // Readable while there are events, and after close(). Not to be read from. Throws FabricError
    // if there are no more descriptors.
    int pollable_fd();
    std::size_t size() const;
    // From now on dequeue() does not wait.
    void close();
    bool is_closed() const;

  private:
    friend class QueueWriter;
    struct Impl;
    static constexpr char type[] = "CompletionQueue";
    ProcessBound<Impl, type> impl_;
};

// The part of a Queued socket that writes into the queue. Belongs to the thread of its loop.
class NETIO_EXPORT QueueWriter final {
  public:
    // on_writable() is called in a turn of the loop when there is space, after push() has returned
    // false or reserve() has.
    QueueWriter(CompletionQueue& queue, EventLoop& loop, std::uint64_t tag,
                std::function<void()> on_writable);
    ~QueueWriter();
    QueueWriter(const QueueWriter&) = delete;
    QueueWriter& operator=(const QueueWriter&) = delete;

    // Returns whether there is space for more.
    bool push(QueueEvent&& event);
    // Before an operation begins: space for its completion. Returns false if there is none.
    bool reserve();
    // The operation was not accepted.
    void cancel();
    // The operation is complete. It may also have begun without reserve().
    void complete(QueueEvent&& event);
    void closed(const Closed& closed, std::uint64_t peer = 0, bool retrying = false);

  private:
    friend struct CompletionQueue::Impl;
    void add(QueueEvent&& event);
    void await_space();

    CompletionQueue::Impl& queue_;
    const ProcessMark process_;
    EventLoop& loop_;
    const std::uint64_t tag_;
    std::function<void()> on_writable_;
    std::size_t reserved_ = 0;           // with the queue's mutex
    bool is_waiting_ = false;            // the same
    std::shared_ptr<QueueWriter*> self_; // for tasks that may outlive it
};

// A socket that delivers into a completion queue. The tag stands in all of its events. Belongs to
// the thread of its loop, as the socket does.
template <class Socket>
class Queued;

} // namespace netio::inline v0_3
