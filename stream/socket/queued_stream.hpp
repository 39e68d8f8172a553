// SPDX-License-Identifier: Apache-2.0
#pragma once

// A byte stream that delivers its completions into a queue (netio/completion_queue.hpp).
//
//     netio::Queued<stream::StreamSocket> stream{queue, 4, *transport, {}};
//     stream->connect(address);
//     // in a task of the loop, after the event `connected`:
//     Status status = stream.receive(slice, cookie, stream::Fill::some); // `received` follows

#include "netio/completion_queue.hpp"
#include "stream/socket/stream_listener.hpp"
#include "stream/socket/stream_socket.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace netio::inline v0_3 {

template <>
class Queued<stream::StreamSocket> final : private stream::StreamSocket::Handler {
    using Socket = stream::StreamSocket;

  public:
    // For connect(). Throws as the socket does.
    Queued(CompletionQueue& queue, std::uint64_t tag, Transport& transport,
           stream::StreamSocket::Options options)
        : writer_{queue, transport.loop(), tag, [this] { report_writable(); }},
          socket_{std::make_unique<Socket>(transport, std::move(options),
                                           static_cast<Socket::Handler&>(*this))} {}
    // Accepts a peer, in StreamListener::Handler::on_incoming. Throws as accept() does.
    Queued(CompletionQueue& queue, std::uint64_t tag, EventLoop& loop,
           stream::IncomingStream& incoming, stream::StreamSocket::Options options)
        : writer_{queue, loop, tag, [this] { report_writable(); }}, socket_{incoming.accept(
                                                                        std::move(options),
                                                                        *this)} {}

    // As the functions of the socket; they also return Status::again while the queue is full. A
    // receive reserves its space in the queue, so that the peer is blocked when no receive can be
    // posted.
    Status send(const Slice& slice, Cookie cookie) {
        return begin([&] { return socket_->send(slice, cookie); });
    }
    Status receive(const Slice& slice, Cookie cookie, stream::Fill fill) {
        return begin([&] { return socket_->receive(slice, cookie, fill); });
    }

    stream::StreamSocket& operator*() noexcept { return *socket_; }
    stream::StreamSocket* operator->() noexcept { return socket_.get(); }

  private:
    using Kind = QueueEvent::Kind;

    template <typename Call>
    Status begin(Call call) {
        if (!writer_.reserve()) return is_waiting_ = true, Status::again;
        Status status = Status::closed;
        try {
            status = call();
        } catch (...) { // the memory cannot be registered
            writer_.cancel();
            throw;
        }
        if (status != Status::ok) writer_.cancel();
        return status;
    }

    void on_connected(Socket&) override { writer_.push({.kind = Kind::connected}); }
    void on_send_completed(Socket&, Cookie cookie, Completion::Outcome outcome) override {
        writer_.complete({.kind = Kind::sent, .outcome = outcome, .cookie = cookie});
    }
    void on_received(Socket&, const stream::Received& received) override {
        writer_.complete({.kind = Kind::received,
                          .outcome = received.outcome,
                          .end_of_stream = received.end_of_stream,
                          .cookie = received.cookie,
                          .count = received.bytes});
    }
    void on_end_of_stream(Socket&) override { writer_.push({.kind = Kind::end_of_stream}); }
    void on_writable(Socket&) override { writer_.push({.kind = Kind::writable}); }
    void on_closed(Socket&, const Closed& closed) override { writer_.closed(closed); }
    void report_writable() {
        if (std::exchange(is_waiting_, false)) writer_.push({.kind = Kind::writable});
    }

    QueueWriter writer_;
    bool is_waiting_ = false;        // a call has returned again, because the queue was full
    std::unique_ptr<Socket> socket_; // last, so that it is destroyed first
};

} // namespace netio::inline v0_3
