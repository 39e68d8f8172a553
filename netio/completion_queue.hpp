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
        message,       // bytes; point-to-point: immediate, peer; published: fid, status, time
        received,      // end of a stream's receive: cookie, outcome, count of bytes, end_of_stream
        sent,          // end of a send: cookie, outcome
        published,     // end of a publication: cookie; count: subscribers that were sent it
        lost,          // fid; count: lost messages of this fid
        connected,     // of a listen socket: peer
        subscribed,    // the publisher has accepted the fids from fid to last_fid
        refused,       // the publisher has refused the fids from fid to last_fid, for any reason
        writable,      // a call that returned `again` may succeed now
        end_of_stream, // after the last byte of a stream, or the last message of a MessageSocket
        closed,        // `closed`: the reason; if `retrying`, the socket connects again by itself
    };

    Kind kind = Kind::message;
    std::uint8_t status = 0;
    Completion::Outcome outcome = Completion::Outcome::done;
    bool end_of_stream = false;
    bool retrying = false;
    std::uint64_t tag = 0;  // of the Queued socket, as passed to its constructor
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
        // Bytes of the messages in the queue; a socket stops in the same way at this limit. The
        // memory of these messages also counts for SessionOptions::keep_limit_bytes of their
        // connection.
        std::size_t queue_limit_bytes = std::size_t{64} << 20;
    };

    CompletionQueue() : CompletionQueue{Options{}} {}
    // Throws std::invalid_argument for an invalid option.
    explicit CompletionQueue(const Options& options);
    // Calls close(), and waits until no thread is in dequeue(). Destroy the queue's sockets before
    // (checked).
    ~CompletionQueue();
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    // All functions may be called from any thread.

    // Moves the oldest events into `events`, up to its size; first destroys the former contents of
    // `events`. Waits until the queue has at least one event, the time-out has passed, or close()
    // is called. Returns the number of moved events; 0: time-out, or the queue is closed and empty.
    // The events of one socket come in the order in which they happened.
    std::size_t dequeue(std::span<QueueEvent> events, std::chrono::milliseconds timeout);
    // Returns a descriptor for poll() or epoll, which is readable while the queue has events, and
    // after close(). The queue owns it: do not read from it or close it. Throws FabricError if the
    // process has no free descriptor.
    int pollable_fd();
    // The number of events in the queue.
    std::size_t size() const;
    // From now on dequeue() does not wait; it still returns the events in the queue.
    void close();
    bool is_closed() const;

  private:
    friend class QueueWriter;
    struct Impl;
    static constexpr char type[] = "CompletionQueue";
    ProcessBound<Impl, type> impl_;
};

// The part of a Queued socket that writes into the queue; programs do not use it. Belongs to the
// loop's thread.
class NETIO_EXPORT QueueWriter final {
  public:
    // After push() or reserve() has returned false, on_writable() is called in a turn of the loop
    // when half of the queue is free.
    QueueWriter(CompletionQueue& queue, EventLoop& loop, std::uint64_t tag,
                std::function<void()> on_writable);
    ~QueueWriter();
    QueueWriter(const QueueWriter&) = delete;
    QueueWriter& operator=(const QueueWriter&) = delete;

    // Adds the event in any case. Returns whether the queue has space for another one.
    bool push(QueueEvent&& event);
    // Reserves space for the completion of an operation; call it before the operation begins.
    // Returns false if the queue is full.
    bool reserve();
    // Releases the reserved space, because the operation was not accepted.
    void cancel();
    // Adds the completion of an operation, which uses its reserved space. Also for operations that
    // began without reserve().
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

// A socket that delivers its events into a completion queue, each with the tag of this object.
// Belongs to the loop's thread, as the socket does: only CompletionQueue may be used on any thread.
template <class Socket>
class Queued;

} // namespace netio::inline v0_3
