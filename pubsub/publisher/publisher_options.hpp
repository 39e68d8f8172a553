// SPDX-License-Identifier: Apache-2.0
#pragma once

// What buffered and unbuffered publish sockets have in common towards their users.

#include "netio/session/session_listener.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// The page format gives a message's size 30 bits.
inline constexpr std::size_t largest_message_limit = (std::size_t{1} << 30) - 1;

struct PublisherOptions {
    std::vector<Address> addresses;
    // Subscribers send only requests and heartbeats, so their frames here are few and small.
    SessionOptions session = {.receive_bytes = 4096, .receive_count = 8};
    // A subscriber may ask, for some of its fids, for a policy that holds the publisher up less.
    SlowPolicy slow_policy = SlowPolicy::block;
    std::chrono::milliseconds disconnect_after{10000};
    std::size_t subscriber_limit = 4096;
    std::size_t ranges_per_subscriber_limit = 16384;
    // A larger message is refused with too_large; subscribers that cannot take it are rejected.
    std::size_t largest_message_bytes = std::size_t{16} * 1024 * 1024;
    // finish(): how long a subscriber may make no progress before it is cut off.
    std::chrono::milliseconds finish_timeout{10000};
};

// Throws std::invalid_argument naming the option and what is allowed.
void validate(const PublisherOptions& options);

// A connected subscriber, for the user.
struct SubscriberPeer {
    SubscriberId id{};
    std::string address;
};

// What a publisher tells its user. Every function has an empty default: implement what matters.
class PublisherHandler {
  public:
    virtual void on_connected(const SubscriberPeer&) {}
    virtual void on_subscribe(const SubscriberPeer&, const FidRange&) {}
    virtual void on_unsubscribe(const SubscriberPeer&, const FidRange&) {}
    virtual void on_closed(const SubscriberPeer&, const Closed&) {}
    // A subscriber was turned away because this side lacks the means: no memory, no locked memory,
    // no descriptors, a device that refuses another endpoint; the reason names the remedy where
    // there is one. Ignoring it loses nothing: the subscriber has been told, tries again as it does
    // while there is no publisher, and nothing of it is kept here. But only here can it be mended,
    // so tell who looks after the program.
    virtual void on_accept_failed(const std::string& /*peer_address*/, const FabricError& /*why*/) {
    }
    // There may be room again after publish said `again`.
    virtual void on_writable() {}
    // After finish(): every subscriber has everything, or is gone.
    virtual void on_finished() {}

  protected:
    ~PublisherHandler() = default;
};

// How a publisher is doing; monotonic since its construction unless said otherwise.
struct PublisherCounters {
    std::uint64_t messages = 0; // accepted with at least one subscriber
    std::uint64_t bytes = 0;    // of those messages
    std::uint64_t without_subscribers = 0;
    std::uint64_t again = 0;   // refusals for want of room
    std::uint64_t partial = 0; // explicit publications that some subscribers could not take at once
    std::uint64_t dropped = 0; // messages that slow subscribers missed (policy drop)
    std::uint64_t pages = 0;   // pages sent (buffered), each counted once
    std::size_t subscribers = 0; // now
};

} // namespace netio::pubsub::inline v0_2
