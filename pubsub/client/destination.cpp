// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/destination.hpp"

#include <exception>
#include <utility>

namespace netio::pubsub::inline v0_2 {

Destination::Destination(Destinations& all, const Address& address, std::size_t queue_bytes)
    : all_{all}, address_{address}, outbox_{queue_bytes}, errand_{all.calls_.post,
                                                                  [this] { serve(); }} {}

Status Destination::put(std::span<const std::byte> message) {
    if (message.size() > message_limit_.load(std::memory_order_relaxed)) return Status::too_large;
    const Status put = outbox_.put({.bytes = {message.begin(), message.end()}});
    if (put == Status::ok) errand_.ask(shared_from_this());
    return put;
}

void Destination::leave() {
    take_no_more();
    leaving_.store(true);
    errand_.ask(shared_from_this());
}

void Destination::serve() {
    const bool waits = again_ && again_->armed();
    if (!socket_ && !closing_ && !waits && !outbox_.empty()) connect();
    if (leaving_.load() && !closing_) return all_.begin_to_close(*this);
    if (socket_ && socket_->is_connected()) send_what_waits();
}

void Destination::connect() {
    try {
        if (!socket_) {
            socket_ = std::make_unique<BufferedSendSocket>(
                *all_.transport_, all_.options_.socket,
                static_cast<BufferedSendSocket::Handler&>(*this));
        }
        socket_->connect(address_);
        return;
    } catch (const std::exception& error) {
        all_.tell(to_string(address_) + ": " + error.what());
    }
    socket_.reset();
    try_later();
}

void Destination::try_later() {
    if (!again_) again_ = std::make_unique<Timer>(all_.transport_->loop(), [this] { connect(); });
    again_->start(all_.options_.socket.socket.retry_limit);
}

void Destination::send_what_waits() {
    using Drained = Outbox<Item>::Drained;
    if (wait_) wait_->on_progress(); // whoever calls, but close(): it has taken something
    EventLoop& loop = all_.transport_->loop();
    const Drained drained = outbox_.drain([this](const Item& item) { return send(item); },
                                          [&loop] { return loop.time_is_up(); });
    if (drained == Drained::time_is_up) {
        if (!go_on_) go_on_ = std::make_unique<Timer>(loop, [this] { serve(); });
        go_on_->start(Duration::zero());
    } else if (drained == Drained::all && closing_) {
        wait_->end();
        socket_->close();
    }
}

// False: not yet.
bool Destination::send(const Item& item) {
    const Status status = socket_->send(item.bytes);
    if (status == Status::again || status == Status::closed) return false;
    if (status == Status::ok) {
        all_.counted_.sent.fetch_add(1, std::memory_order_relaxed);
    } else {
        all_.counted_.unsent.fetch_add(1, std::memory_order_relaxed);
        all_.tell(to_string(address_) + " takes no message of " +
                  std::to_string(item.bytes.size()) + " bytes");
    }
    return true;
}

bool Destination::close() {
    closing_ = true;
    if (again_ && again_->armed()) { // and there is no connection
        again_->cancel();
        socket_.reset();
    }
    if (!socket_) return end(), false;
    const SessionOptions& session = all_.options_.socket.socket.session;
    wait_ = std::make_unique<DrainTimeout>(
        all_.transport_->loop(),
        DrainTimeout::Times{.timeout = session.close_timeout, .in_all = session.close_limit},
        [this] { give_up(); });
    wait_->begin();
    if (socket_->is_connected()) {
        send_what_waits();
    } else if (socket_->is_retrying()) {
        socket_->close();
    } // else the attempt that is being made decides
    return true;
}

// It has had the time that the socket would give it for its pages.
void Destination::give_up() {
    all_.tell(to_string(address_) + " has " + wait_->verdict());
    socket_->abort();
}

void Destination::end() {
    if (wait_) wait_->end();
    const std::size_t left = outbox_.give_up();
    if (left == 0) return;
    all_.counted_.unsent.fetch_add(left, std::memory_order_relaxed);
    all_.tell("not sent to " + to_string(address_) + ": " + std::to_string(left) + " messages");
}

void Destination::on_connected(BufferedSendSocket& socket) {
    all_.tell("connected to " + to_string(address_) + " (" + socket.provider() + ")");
    message_limit_.store(socket.message_limit(), std::memory_order_relaxed);
    connected_.store(true, std::memory_order_relaxed);
    send_what_waits();
}

void Destination::on_writable(BufferedSendSocket&) {
    send_what_waits();
}

void Destination::on_closed(BufferedSendSocket& socket, const Closed& closed) {
    if (closed.reason != CloseReason::local && closed.reason != CloseReason::orderly) {
        all_.tell(to_string(address_) + ": " + to_string(closed));
    }
    all_.counted_.unconfirmed_frames.fetch_add(closed.unconfirmed_frames,
                                               std::memory_order_relaxed);
    message_limit_.store(SIZE_MAX, std::memory_order_relaxed);
    connected_.store(false, std::memory_order_relaxed);
    if (!closing_) {
        if (!socket.is_retrying()) try_later();
    } else if (socket.is_retrying()) {
        socket.close(); // nobody waits for it any more
    } else {
        end();
        all_.one_has_ended(*this); // this may be gone
    }
}

} // namespace netio::pubsub::inline v0_2
