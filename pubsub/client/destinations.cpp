// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/destinations.hpp"

#include "netio/loop/event_loop.hpp"
#include "netio/session/drain_timer.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_3 {

// One destination: its queue and its connection.
class Destinations::Destination final : public std::enable_shared_from_this<Destination>,
                                        private BufferedSendSocket::Handler {
  public:
    Destination(Destinations& all, const Address& address, std::size_t queue_bytes);

    // Any thread.
    Status put(std::span<const std::byte> message);
    void take_no_more() { queue_.close(); }
    // Requests close() in one of the next turns of the client's thread.
    void leave();
    // Whether nothing is queued, and there is no connection as far as is known.
    bool is_idle() { return !connected_.load(std::memory_order_relaxed) && queue_.empty(); }

    // The client's thread. Returns true if there is a connection or an attempt, whose end follows.
    bool close();
    bool is_closing() const noexcept { return closing_; }

  private:
    struct Item {
        std::vector<std::byte> bytes;
    };

    void serve();
    void connect();
    void try_later();
    void send_what_waits();
    bool send(const Item& item);
    void give_up();
    void end();

    void on_connected(BufferedSendSocket& socket) override;
    void on_writable(BufferedSendSocket& socket) override;
    void on_closed(BufferedSendSocket& socket, const Closed& closed) override;

    Destinations& all_;
    Address address_;
    ClientSendQueue<Item> queue_;
    CoalescedTask serve_;
    std::atomic<std::size_t> message_limit_{SIZE_MAX}; // of the last connection
    std::atomic<bool> connected_{false};
    std::atomic<bool> leaving_{false};
    // Used by the client's thread only.
    bool closing_ = false;
    std::unique_ptr<Timer> go_on_;
    std::unique_ptr<DrainTimeout> wait_; // at the end
    std::unique_ptr<Timer> again_;       // retries even after a final refusal, but not soon
    std::unique_ptr<BufferedSendSocket> socket_;
};

Destinations::Destination::Destination(Destinations& all, const Address& address,
                                       std::size_t queue_bytes)
    : all_{all}, address_{address}, queue_{queue_bytes}, serve_{all.calls_.post,
                                                                [this] { serve(); }} {}

Status Destinations::Destination::put(std::span<const std::byte> message) {
    if (message.size() > message_limit_.load(std::memory_order_relaxed)) return Status::too_large;
    const Status put = queue_.put({.bytes = {message.begin(), message.end()}});
    if (put == Status::ok) serve_.request(shared_from_this());
    return put;
}

void Destinations::Destination::leave() {
    take_no_more();
    leaving_.store(true);
    serve_.request(shared_from_this());
}

void Destinations::Destination::serve() {
    const bool waits = again_ && again_->armed();
    if (!socket_ && !closing_ && !waits && !queue_.empty()) connect();
    if (leaving_.load() && !closing_) return all_.begin_to_close(*this);
    if (socket_ && socket_->is_connected()) send_what_waits();
}

void Destinations::Destination::connect() {
    try {
        if (!socket_) {
            socket_ = std::make_unique<BufferedSendSocket>(
                *all_.transport_, all_.options_.socket,
                static_cast<BufferedSendSocket::Handler&>(*this));
        }
        socket_->connect(address_);
        return;
    } catch (const std::exception& error) {
        all_.calls_.report(to_string(address_) + ": " + error.what());
    }
    socket_.reset();
    try_later();
}

void Destinations::Destination::try_later() {
    if (!again_) again_ = std::make_unique<Timer>(all_.transport_->loop(), [this] { connect(); });
    again_->start(all_.options_.socket.socket.retry_limit);
}

void Destinations::Destination::send_what_waits() {
    using Drained = ClientSendQueue<Item>::Drained;
    if (wait_) wait_->on_progress(); // except from close(), the peer has made progress
    EventLoop& loop = all_.transport_->loop();
    const Drained drained = queue_.drain([this](const Item& item) { return send(item); },
                                         [&loop] { return loop.time_is_up(); });
    if (drained == Drained::time_is_up) {
        if (!go_on_) go_on_ = std::make_unique<Timer>(loop, [this] { serve(); });
        go_on_->start(Duration::zero());
    } else if (drained == Drained::all && closing_) {
        wait_->end();
        socket_->close();
    }
}

// Returns false if there is no space yet.
bool Destinations::Destination::send(const Item& item) {
    const Status status = socket_->send(item.bytes);
    if (status == Status::again || status == Status::closed) return false;
    if (status == Status::ok) {
        all_.counted_.sent.fetch_add(1, std::memory_order_relaxed);
    } else {
        all_.counted_.unsent.fetch_add(1, std::memory_order_relaxed);
        all_.calls_.report(to_string(address_) + " takes no message of " +
                           std::to_string(item.bytes.size()) + " bytes");
    }
    return true;
}

bool Destinations::Destination::close() {
    closing_ = true;
    if (again_ && again_->armed()) { // there is no connection
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
    } // else the end of the attempt follows
    return true;
}

// The peer had the time that the socket allows for its pages.
void Destinations::Destination::give_up() {
    all_.calls_.report(to_string(address_) + " has " + wait_->verdict());
    socket_->abort();
}

void Destinations::Destination::end() {
    if (wait_) wait_->end();
    const std::size_t left = queue_.discard();
    if (left == 0) return;
    all_.counted_.unsent.fetch_add(left, std::memory_order_relaxed);
    all_.calls_.report("not sent to " + to_string(address_) + ": " + std::to_string(left) +
                       " messages");
}

void Destinations::Destination::on_connected(BufferedSendSocket& socket) {
    all_.calls_.report("connected to " + to_string(address_) + " (" + socket.provider() + ")");
    message_limit_.store(socket.message_limit(), std::memory_order_relaxed);
    connected_.store(true, std::memory_order_relaxed);
    send_what_waits();
}

void Destinations::Destination::on_writable(BufferedSendSocket&) {
    send_what_waits();
}

void Destinations::Destination::on_closed(BufferedSendSocket& socket, const Closed& closed) {
    if (closed.reason != CloseReason::local && closed.reason != CloseReason::orderly) {
        all_.calls_.report(to_string(address_) + ": " + to_string(closed));
    }
    all_.counted_.unconfirmed_frames.fetch_add(closed.unconfirmed_frames,
                                               std::memory_order_relaxed);
    message_limit_.store(SIZE_MAX, std::memory_order_relaxed);
    connected_.store(false, std::memory_order_relaxed);
    if (!closing_) {
        if (!socket.is_retrying()) try_later();
    } else if (socket.is_retrying()) {
        socket.close(); // no caller waits for it any more
    } else {
        end();
        all_.on_ended(*this); // may destroy this
    }
}

// --- all destinations ------------------------------------------------------------------------

Destinations::Destinations(Options options, const ClientCalls& calls)
    : options_{(validate(options.socket), std::move(options))}, calls_{calls} {
    options_.socket.socket.reconnect = true;
}

Destinations::~Destinations() = default;

Status Destinations::send(const Address& to, std::span<const std::byte> message) {
    for (;;) {
        const Found found = find_or_add(to);
        if (found.status != Status::ok) return found.status;
        const Status put = found.destination->put(message);
        if (put != Status::closed) return put;
    } // it was released in the meantime
}

Destinations::Found Destinations::find_or_add(const Address& to) {
    std::string key = to_string(to);
    const std::lock_guard lock{mutex_};
    if (closed_) return {.status = Status::closed};
    const auto found = all_.find(key);
    if (found != all_.end()) return {.destination = found->second};
    if (all_.size() >= options_.limit) close_idle_destination();
    if (all_.size() >= options_.limit) {
        throw std::length_error{"destination_limit is " + std::to_string(options_.limit) +
                                "; nothing is sent to " + key};
    }
    if (all_.size() + leaving_.size() >= options_.limit) return {.status = Status::again};
    const auto made = std::make_shared<Destination>(*this, to, options_.queue_bytes);
    all_.emplace(std::move(key), made);
    return {.destination = made};
}

// mutex_ is held.
void Destinations::release(ByAddress::iterator which) {
    leaving_.push_back(which->second);
    which->second->leave();
    all_.erase(which);
}

void Destinations::close_idle_destination() {
    const auto idle =
        std::ranges::find_if(all_, [](const auto& each) { return each.second->is_idle(); });
    if (idle != all_.end()) release(idle);
}

void Destinations::disconnect(const Address& from) {
    const std::lock_guard lock{mutex_};
    const auto found = all_.find(to_string(from));
    if (found != all_.end()) release(found);
}

void Destinations::take_no_more() {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    for (const auto& [key, destination] : all_)
        destination->take_no_more();
}

void Destinations::close() {
    take_no_more(); // so that no thread adds a destination
    std::vector<Shared> all;
    {
        const std::lock_guard lock{mutex_};
        for (const auto& [key, destination] : all_)
            all.push_back(destination);
        all.insert(all.end(), leaving_.begin(), leaving_.end());
    }
    for (const Shared& each : all)
        if (!each->is_closing()) begin_to_close(*each);
}

void Destinations::begin_to_close(Destination& which) {
    if (which.close()) {
        ++open_;
    } else {
        forget(which);
    }
}

void Destinations::on_ended(const Destination& which) {
    --open_;
    forget(which);
    calls_.ended();
}

void Destinations::forget(const Destination& which) {
    Shared last; // outlives the lock
    const std::lock_guard lock{mutex_};
    const auto at = std::ranges::find_if(
        leaving_, [&which](const Shared& each) { return each.get() == &which; });
    if (at == leaving_.end()) return;
    last = std::move(*at);
    leaving_.erase(at);
}

} // namespace netio::pubsub::inline v0_3
