// SPDX-License-Identifier: Apache-2.0
#pragma once

// Publish and subscribe sockets that deliver into a completion queue (netio/completion_queue.hpp).
//
//     netio::Queued<pubsub::SubscribeSocket> subscriber{
//         queue, 3, *transport, {.publisher = address}};
//     subscriber->subscribe({Fid{0}, Fid{63}});

#include "netio/completion_queue.hpp"
#include "pubsub/core/time_stamp.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace netio::inline v0_3 {

// The bytes of its messages are kept (SubscribeSocket::keep()). While the queue is full, the socket
// is paused, and the publisher treats it as a slow subscriber: only this object may call pause()
// and resume() of the socket.
template <>
class Queued<pubsub::SubscribeSocket> final : private pubsub::SubscribeSocket::Handler {
  public:
    // Throws as the socket does; whole_pages has no effect.
    Queued(CompletionQueue& queue, std::uint64_t tag, Transport& transport,
           pubsub::SubscribeSocket::Options options)
        : writer_{queue, transport.loop(), tag, [this] { resume(); }},
          socket_{transport, one_by_one(std::move(options)), *this} {}

    pubsub::SubscribeSocket& operator*() noexcept { return socket_; }
    pubsub::SubscribeSocket* operator->() noexcept { return &socket_; }

  private:
    using Socket = pubsub::SubscribeSocket;
    using Kind = QueueEvent::Kind;

    static Socket::Options one_by_one(Socket::Options options) {
        options.whole_pages = false;
        return options;
    }

    void on_connected(Socket&) override { add({.kind = Kind::connected}); }
    void on_subscribed(Socket&, const FidRange& range) override { add(about(range, true)); }
    void on_subscription_refused(Socket&, const FidRange& range) override {
        add(about(range, false));
    }
    void on_message(Socket& socket, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override {
        const auto stamp = time_stamp::of(message, socket.stamps());
        add({.kind = Kind::message,
             .status = status,
             .fid = pubsub::to_integer(fid),
             .time = stamp ? std::optional{stamp->time} : std::nullopt,
             .bytes = socket.keep(message)});
    }
    void on_gap(Socket&, Fid fid, std::uint64_t count) override {
        add({.kind = Kind::lost, .fid = pubsub::to_integer(fid), .count = count});
    }
    void on_lost_while_disconnected(Socket& socket, Fid fid, std::uint64_t count) override {
        on_gap(socket, fid, count);
    }
    void on_closed(Socket&, const Closed& closed, bool retrying) override {
        writer_.closed(closed, 0, retrying);
    }

    static QueueEvent about(const FidRange& range, bool accepted) {
        return {.kind = accepted ? Kind::subscribed : Kind::refused,
                .fid = pubsub::to_integer(range.first),
                .last_fid = pubsub::to_integer(range.last)};
    }
    void add(QueueEvent&& event) {
        if (writer_.push(std::move(event)) || is_paused_) return;
        is_paused_ = true;
        socket_.pause();
    }
    void resume() {
        if (std::exchange(is_paused_, false)) socket_.resume();
    }

    QueueWriter writer_;
    bool is_paused_ = false; // by this object
    Socket socket_;          // last, so that it is destroyed first
};

template <>
class Queued<pubsub::PublishSocket> final : private pubsub::PublishSocket::Handler {
  public:
    using Extras = pubsub::PublishSocket::Extras;

    // Throws as the socket does.
    Queued(CompletionQueue& queue, std::uint64_t tag, Transport& transport,
           const pubsub::PublishSocket::Options& options)
        : writer_{queue, transport.loop(), tag, [this] { report_writable(); }}, socket_{transport,
                                                                                        options,
                                                                                        *this} {}

    // As the functions of the socket; they also return Status::again while the queue is full.
    Status publish(Fid fid, const Slice& slice, Cookie cookie) {
        return publishv(fid, {&slice, 1}, cookie, Extras{});
    }
    Status publishv(Fid fid, std::span<const Slice> slices, Cookie cookie, const Extras& extras) {
        if (!writer_.reserve()) return is_waiting_ = true, Status::again;
        const Status status = socket_.publishv(fid, slices, cookie, extras);
        if (status != Status::ok) writer_.cancel();
        return status;
    }

    pubsub::PublishSocket& operator*() noexcept { return socket_; }
    pubsub::PublishSocket* operator->() noexcept { return &socket_; }

  private:
    using Kind = QueueEvent::Kind;

    void on_publish_completed(pubsub::PublishSocket&, Cookie cookie,
                              const pubsub::PublicationOutcome& outcome) override {
        writer_.complete({.kind = Kind::published, .cookie = cookie, .count = outcome.sent});
    }
    void on_writable(pubsub::PublishSocketBase&) override {
        writer_.push({.kind = Kind::writable});
    }
    void on_closed(pubsub::PublishSocketBase&, const Closed& closed) override {
        writer_.closed(closed);
    }
    void report_writable() {
        if (std::exchange(is_waiting_, false)) writer_.push({.kind = Kind::writable});
    }

    QueueWriter writer_;
    bool is_waiting_ = false;      // a call has returned again, because the queue was full
    pubsub::PublishSocket socket_; // last, so that it is destroyed first
};

// Publishes copies, which are complete when the call returns. Its events are `writable` (after a
// call that returned `again`), and `closed`.
template <>
class Queued<pubsub::BufferedPublishSocket> final : private pubsub::BufferedPublishSocket::Handler {
  public:
    // Throws as the socket does.
    Queued(CompletionQueue& queue, std::uint64_t tag, Transport& transport,
           const pubsub::BufferedPublishSocket::Options& options)
        : writer_{queue, transport.loop(), tag, [] {}}, socket_{transport, options, *this} {}

    pubsub::BufferedPublishSocket& operator*() noexcept { return socket_; }
    pubsub::BufferedPublishSocket* operator->() noexcept { return &socket_; }

  private:
    void on_writable(pubsub::PublishSocketBase&) override {
        writer_.push({.kind = QueueEvent::Kind::writable});
    }
    void on_closed(pubsub::PublishSocketBase&, const Closed& closed) override {
        writer_.closed(closed);
    }

    QueueWriter writer_;
    pubsub::BufferedPublishSocket socket_; // last, so that it is destroyed first
};

} // namespace netio::inline v0_3
