// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sockets of messages that deliver into a completion queue (netio/completion_queue.hpp).
//
//     netio::Queued<netio::SendSocket> sender{queue, 2, *transport, {}};
//     sender->connect(address);
//     // in a task of the loop, after the event `connected`:
//     Status status = sender.send(slice, cookie); // the event `sent` follows

#include "netio/completion_queue.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/message_socket.hpp"
#include "netio/messages/send_socket.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace netio::inline v0_3 {

// The bytes of its messages are kept (ReceiveSocket::keep()). While the queue is full, it reads
// from no sender: only this object may call pause() and resume() of its ReceiveSockets.
template <>
class Queued<ListenSocket> final : private ListenSocket::Handler {
  public:
    // Throws as the socket does.
    Queued(CompletionQueue& queue, std::uint64_t tag, Transport& transport,
           ListenSocket::Options options)
        : writer_{queue, transport.loop(), tag, [this] { resume(); }}, socket_{transport,
                                                                               std::move(options),
                                                                               *this} {}

    // ReceiveSocket::tag is the number of the sender (QueueEvent::peer); do not change it.
    ListenSocket& operator*() noexcept { return socket_; }
    ListenSocket* operator->() noexcept { return &socket_; }

  private:
    void on_connected(ReceiveSocket& peer) override {
        peer.tag = ++peers_;
        add({.kind = QueueEvent::Kind::connected, .peer = peer.tag});
        if (is_paused_) peer.pause();
    }
    void on_message(ReceiveSocket& peer, std::span<const std::byte> message,
                    std::optional<std::uint64_t> immediate) override {
        add({.kind = QueueEvent::Kind::message,
             .peer = peer.tag,
             .immediate = immediate,
             .bytes = peer.keep(message)});
    }
    void on_closed(ReceiveSocket& peer, const Closed& closed) override {
        writer_.closed(closed, peer.tag);
    }
    void on_listen_closed(ListenSocket&, const Closed& closed) override { writer_.closed(closed); }

    void add(QueueEvent&& event) {
        if (writer_.push(std::move(event)) || is_paused_) return;
        is_paused_ = true;
        for (ReceiveSocket* const each : socket_.peers())
            each->pause();
    }
    void resume() {
        if (!std::exchange(is_paused_, false)) return;
        for (ReceiveSocket* const each : socket_.peers())
            each->resume();
    }

    QueueWriter writer_;
    std::uint64_t peers_ = 0;
    bool is_paused_ = false;
    ListenSocket socket_; // last, so that it is destroyed first
};

// Sends copies, which are complete when the call returns. Its events are `connected`, `writable`
// (after a call that returned `again`), and `closed`.
template <>
class Queued<BufferedSendSocket> final : private BufferedSendSocket::Handler {
  public:
    // Throws as the socket does.
    Queued(CompletionQueue& queue, std::uint64_t tag, Transport& transport,
           const BufferedSendSocket::Options& options)
        : writer_{queue, transport.loop(), tag, [] {}}, socket_{transport, options, *this} {}

    BufferedSendSocket& operator*() noexcept { return socket_; }
    BufferedSendSocket* operator->() noexcept { return &socket_; }

  private:
    void on_connected(BufferedSendSocket&) override {
        writer_.push({.kind = QueueEvent::Kind::connected});
    }
    void on_writable(BufferedSendSocket&) override {
        writer_.push({.kind = QueueEvent::Kind::writable});
    }
    void on_closed(BufferedSendSocket& socket, const Closed& closed) override {
        writer_.closed(closed, 0, socket.is_retrying());
    }

    QueueWriter writer_;
    BufferedSendSocket socket_; // last, so that it is destroyed first
};

template <>
class Queued<SendSocket> final : private SendSocket::Handler {
  public:
    // Throws as the socket does.
    Queued(CompletionQueue& queue, std::uint64_t tag, Transport& transport,
           SendSocket::Options options)
        : writer_{queue, transport.loop(), tag, [this] { report_writable(); }},
          socket_{transport, std::move(options), *this} {}

    // As the functions of the socket; they also return Status::again while the queue is full.
    Status send(const Slice& slice, Cookie cookie, std::optional<std::uint64_t> immediate = {}) {
        return sendv({&slice, 1}, cookie, immediate);
    }
    Status sendv(std::span<const Slice> slices, Cookie cookie,
                 std::optional<std::uint64_t> immediate = {}) {
        if (!writer_.reserve()) return is_waiting_ = true, Status::again;
        const Status status = socket_.sendv(slices, cookie, immediate);
        if (status != Status::ok) writer_.cancel();
        return status;
    }

    SendSocket& operator*() noexcept { return socket_; }
    SendSocket* operator->() noexcept { return &socket_; }

  private:
    void on_connected(SendSocket&) override { writer_.push({.kind = QueueEvent::Kind::connected}); }
    void on_send_completed(SendSocket&, Cookie cookie, Completion::Outcome outcome) override {
        writer_.complete({.kind = QueueEvent::Kind::sent, .outcome = outcome, .cookie = cookie});
    }
    void on_writable(SendSocket&) override { writer_.push({.kind = QueueEvent::Kind::writable}); }
    void on_closed(SendSocket& socket, const Closed& closed) override {
        writer_.closed(closed, 0, socket.is_retrying());
    }
    void report_writable() {
        if (std::exchange(is_waiting_, false)) on_writable(socket_);
    }

    QueueWriter writer_;
    bool is_waiting_ = false; // a call has returned again, because the queue was full
    SendSocket socket_;       // last, so that it is destroyed first
};

// The bytes of its messages are kept (IncomingMessage::keep()). While the queue is full, the socket
// is paused: only this object may call its pause() and resume().
template <>
class Queued<MessageSocket> final {
  public:
    // For connect(). Throws as the socket does; receive_into_posted has no effect.
    Queued(CompletionQueue& queue, std::uint64_t tag, Transport& transport,
           MessageSocket::Options options)
        : writer_{queue, transport.loop(), tag, [this] { on_space(); }},
          socket_{std::make_unique<MessageSocket>(transport, one_by_one(std::move(options)),
                                                  functions())} {}
    // Accepts a peer, in the function of the MessageListener. Throws as accept() does.
    Queued(CompletionQueue& queue, std::uint64_t tag, EventLoop& loop, IncomingPeer& peer,
           MessageSocket::Options options)
        : writer_{queue, loop, tag, [this] { on_space(); }}, socket_{peer.accept(
                                                                 one_by_one(std::move(options)),
                                                                 functions())} {}

    // As the functions of the socket. Sends without a copy also return Status::again while the
    // queue is full. The event `writable` follows only if a call of this object, not of the socket,
    // returned Status::again.
    Status send(std::span<const std::byte> message) { return send_parts({&message, 1}); }
    Status send_parts(MessageParts parts) { return noted(socket_->send_parts(parts)); }
    Status send(const Slice& slice, Cookie cookie, std::optional<std::uint64_t> immediate = {}) {
        return sendv({&slice, 1}, cookie, immediate);
    }
    Status sendv(std::span<const Slice> slices, Cookie cookie,
                 std::optional<std::uint64_t> immediate = {}) {
        if (!writer_.reserve()) return noted(Status::again);
        const Status status = socket_->sendv(slices, cookie, immediate);
        if (status != Status::ok) writer_.cancel();
        return noted(status);
    }

    MessageSocket& operator*() noexcept { return *socket_; }
    MessageSocket* operator->() noexcept { return socket_.get(); }

  private:
    using Kind = QueueEvent::Kind;

    static MessageSocket::Options one_by_one(MessageSocket::Options options) {
        options.receive_into_posted = false;
        return options;
    }
    MessageSocket::Functions functions() {
        return {.on_connected = [this] { add({.kind = Kind::connected}); },
                .on_message =
                    [this](const IncomingMessage& message) {
                        add({.kind = Kind::message,
                             .immediate = message.immediate(),
                             .bytes = message.keep()});
                    },
                .on_sent =
                    [this](Cookie cookie, Completion::Outcome outcome) {
                        writer_.complete(
                            {.kind = Kind::sent, .outcome = outcome, .cookie = cookie});
                    },
                .on_writable = [this] { report_writable(); },
                .on_peer_finished = [this] { add({.kind = Kind::end_of_stream}); },
                .on_closed =
                    [this](const Closed& closed) {
                        is_waiting_ = false;
                        writer_.closed(closed, 0, socket_->is_retrying());
                    }};
    }
    Status noted(Status status) noexcept {
        if (status == Status::again) is_waiting_ = true;
        return status;
    }
    void add(QueueEvent&& event) {
        if (writer_.push(std::move(event)) || is_paused_) return;
        is_paused_ = true;
        socket_->pause();
    }
    void on_space() {
        if (std::exchange(is_paused_, false)) socket_->resume();
        report_writable();
    }
    void report_writable() {
        if (std::exchange(is_waiting_, false)) writer_.push({.kind = Kind::writable});
    }

    QueueWriter writer_;
    bool is_paused_ = false;
    bool is_waiting_ = false;               // a call has returned again
    std::unique_ptr<MessageSocket> socket_; // last, so that it is destroyed first
};

} // namespace netio::inline v0_3
