// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client_publisher.hpp"

#include "netio/access/host.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <exception>
#include <unistd.h>
#include <utility>

namespace netio::pubsub::inline v0_3 {

namespace {

// The address for subscribers: a wildcard address is replaced by the name of this host.
std::string announced_address(Endpoint endpoint) {
    const auto host = access::parse_host(endpoint.address.host);
    if (host && access::is_any(*host)) endpoint.address.host = this_host();
    return to_announced_address(endpoint);
}

} // namespace

ClientPublisher::ClientPublisher(Transport& transport,
                                 const BufferedPublishSocket::Options& options,
                                 std::size_t queue_bytes, std::string bus, const ClientCalls& calls)
    : loop_{transport.loop()}, queue_{queue_bytes}, calls_{calls}, drain_{calls.post,
                                                                          [this] { drain(); }},
      continue_{loop_, [this] { drain(); }}, wait_{loop_,
                                                   {.timeout = options.publisher.close_timeout,
                                                    .in_all = options.publisher.close_limit},
                                                   [this] { give_up(); }},
      socket_{transport, options, static_cast<Publisher::Handler&>(*this)},
      endpoints_{socket_.endpoints()},
      parameters_{{"page_size", std::to_string(options.page_size_bytes)},
                  {"largest_message", std::to_string(options.publisher.largest_message_bytes)}},
      announced_{.bus = std::move(bus)}, announce_{calls.post, [this] { announce_next(); }} {
    if (options.publisher.fids) owned_ = normalised(*options.publisher.fids);
}

Status ClientPublisher::publish(Fid fid, std::span<const std::byte> message, std::uint8_t status) {
    if (owned_ && !contains(*owned_, fid)) return Status::not_owned;
    if (message.size() > socket_.message_limit()) return Status::too_large;
    const Status put =
        queue_.put({.fid = fid, .status = status, .bytes = {message.begin(), message.end()}});
    if (put != Status::ok) return put;
    // Published without subscribers too, so that a subscriber that is away learns of its losses.
    drain_.request();
    return wanted_.has(fid) ? Status::ok : Status::no_subscribers;
}

void ClientPublisher::drain() {
    wait_.on_progress(); // except from close(), a subscriber has made progress
    using Drained = ClientPublishQueue::Drained;
    const Drained drained = queue_.drain([this](const Publication& item) { return publish(item); },
                                         [this] { return loop_.time_is_up(); });
    if (drained == Drained::time_is_up) {
        continue_.start(Duration::zero());
    } else if (drained == Drained::all && closing_) {
        wait_.end();
        socket_.close();
    } // else on_writable follows
}

// The socket still waits until subscribers have received its messages, each with its own time-outs.
void ClientPublisher::give_up() {
    const std::string why = wait_.verdict();
    wait_.end();
    continue_.cancel();
    const std::size_t left = queue_.discard();
    unpublished_.fetch_add(left, std::memory_order_relaxed);
    calls_.report("not published: " + std::to_string(left) + " messages; slow subscribers have " +
                  why);
    socket_.close();
}

// Returns false if there is no space yet.
bool ClientPublisher::publish(const Publication& item) {
    const Status status = socket_.publish(item.fid, item.bytes, item.status);
    if (status == Status::again) return false;
    if (status == Status::ok || status == Status::no_subscribers)
        published_.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void ClientPublisher::announce(Announcement announcement) {
    announcement.instance = announced_.instance;
    announcement.addresses.clear();
    for (const Endpoint& endpoint : endpoints_)
        announcement.addresses.push_back(announced_address(endpoint));
    announcement.mode = "buffered";
    announcement.host = this_host();
    announcement.pid = static_cast<int>(::getpid());
    announcement.parameters.insert(parameters_.begin(), parameters_.end());
    validate(announcement);
    {
        const std::lock_guard lock{announced_.mutex};
        announced_.next = std::move(announcement);
    }
    announce_.request();
}

void ClientPublisher::announce_next() {
    std::optional<Announcement> next;
    {
        const std::lock_guard lock{announced_.mutex};
        next.swap(announced_.next);
    }
    if (!next || closing_) return;
    try {
        if (announced_.announcer && announced_.name == next->name)
            return announced_.announcer->update(*std::move(next));
        announced_.announcer.reset();
        announced_.announcer =
            pubsub::announce(loop_, announced_.bus, *next, static_cast<Announcer::Handler&>(*this));
        announced_.name = next->name;
    } catch (const std::exception& error) {
        calls_.report(std::string{"it is not announced: "} + error.what());
    }
}

void ClientPublisher::close() {
    closing_ = true;
    announced_.announcer.reset();
    wait_.begin();
    drain();
}

} // namespace netio::pubsub::inline v0_3
