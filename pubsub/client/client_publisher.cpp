// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client_publisher.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

ClientPublisher::ClientPublisher(Transport& transport,
                                 const BufferedPublishSocket::Options& options,
                                 std::size_t queue_bytes, Calls calls)
    : loop_{transport.loop()}, outbox_{queue_bytes}, calls_{std::move(calls)}, errand_{calls_.post,
                                                                                       [this] {
                                                                                           drain();
                                                                                       }},
      go_on_{loop_, [this] { drain(); }}, socket_{transport, options,
                                                  static_cast<Publisher::Handler&>(*this)},
      endpoints_{socket_.endpoints()} {
    if (options.publisher.owned) owned_ = normalised(*options.publisher.owned);
}

Status ClientPublisher::publish(Fid fid, std::span<const std::byte> message, std::uint8_t status) {
    if (owned_ && !contains(*owned_, fid)) return Status::not_owned;
    if (message.size() > socket_.message_limit()) return Status::too_large;
    const Status put =
        outbox_.put({.fid = fid, .status = status, .bytes = {message.begin(), message.end()}});
    if (put == Status::ok) errand_.ask();
    return put;
}

void ClientPublisher::drain() {
    using Drained = Outbox<Publication>::Drained;
    const Drained drained = outbox_.drain([this](const Publication& item) { return publish(item); },
                                          [this] { return loop_.time_is_up(); });
    if (drained == Drained::time_is_up) {
        go_on_.start(Duration::zero());
    } else if (drained == Drained::all && closing_) {
        socket_.close();
    } // else on_writable follows
}

// False: not yet.
bool ClientPublisher::publish(const Publication& item) {
    const Status status = socket_.publish(item.fid, item.bytes, item.status);
    if (status == Status::again) return false;
    if (status == Status::ok || status == Status::no_subscribers)
        published_.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void ClientPublisher::close() {
    closing_ = true;
    drain();
}

} // namespace netio::pubsub::inline v0_2
