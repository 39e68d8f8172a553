// SPDX-License-Identifier: Apache-2.0
#pragma once

// What buffered and unbuffered publish sockets have in common towards their users.

#include "netio/base/address_list.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/publisher/publisher_snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::inline v0_2 {
class ServerKeys;
} // namespace netio::inline v0_2

namespace netio::pubsub::inline v0_2 {

// The page format gives a message's size 30 bits.
inline constexpr std::size_t largest_message_limit = (std::size_t{1} << 30) - 1;

// A connected subscriber, for the user.
struct SubscriberPeer {
    SubscriberId id{};
    std::string address;
    bool gone = false; // its session has ended, or is about to
};

class NETIO_EXPORT Publisher {
  public:
    struct Options {
        AddressList addresses{};
        bool open = false; // other machines may reach them, and whoever does may connect
        std::shared_ptr<ServerKeys> keys{}; // of those who are let in; null: everybody
        // The fids that are this socket's, where several loops publish
        // (pubsub/core/fid_shards.hpp): publishing another is refused with not_owned, and of a
        // subscription to more it sends these. Absent: every fid.
        std::optional<std::vector<FidRange>> owned{};
        // Subscribers send only requests and heartbeats, so their frames here are few and small.
        SessionOptions session = {.receive_bytes = 4096, .receive_count = 8, .window_limit = 0};
        // A subscriber may ask, for some of its fids, for a policy that holds the publisher up
        // less.
        // `newest` is for buffered publishers only: others would keep memory that is lent.
        SlowPolicy slow_policy = SlowPolicy::block;
        std::chrono::milliseconds disconnect_after{10000};
        std::size_t subscriber_limit = 4096;
        // So many of one host; 0: half of the subscribers. Where there are keys, theirs counts.
        std::size_t links_per_host = 0;
        std::size_t ranges_per_subscriber_limit = 16384;
        // Requests and answers that may wait for one subscriber; one more request ends its session.
        std::size_t answer_limit = 4096;
        // A larger message is refused with too_large; subscribers that cannot take it are rejected.
        std::size_t largest_message_bytes = std::size_t{16} * 1024 * 1024;
        // close(): how long a subscriber may make no progress before it is cut off, and how long
        // closing may take in all.
        std::chrono::milliseconds close_timeout{10000};
        std::chrono::milliseconds close_limit{60000};
    };

    // Every function has an empty default: implement what matters. Each may destroy the publisher.
    class Handler {
      public:
        virtual void on_subscriber_connected(Publisher&, const SubscriberPeer&) {}
        virtual void on_subscribed(Publisher&, const SubscriberPeer&, const FidRange&) {}
        // Also of what a subscriber still has when it goes (peer.gone): on_subscriber_closed
        // follows.
        virtual void on_unsubscribed(Publisher&, const SubscriberPeer&, const FidRange&) {}
        virtual void on_subscriber_closed(Publisher&, const SubscriberPeer&, const Closed&) {}
        // It is worth trying again what publish answered with `again`.
        virtual void on_writable(Publisher&) {}
        // The last event, after close() or abort(). orderly: every subscriber has confirmed that it
        // has everything; else the detail says how many did not.
        virtual void on_closed(Publisher&, const Closed&) {}

      protected:
        ~Handler() = default;
    };

    // Monotonic since the publisher's construction unless said otherwise.
    struct Counters {
        std::uint64_t messages = 0; // accepted with at least one subscriber
        std::uint64_t without_subscribers = 0;
        std::uint64_t again = 0;   // refusals for want of room
        std::uint64_t partial = 0; // explicit publications that some could not take at once
        std::uint64_t dropped = 0; // messages that slow subscribers missed (drop, newest)
        std::uint64_t pages = 0;   // pages sent to at least one subscriber (buffered)
        // Of the pages of small messages, why they left: they were full, or had to make room; their
        // flush_time was over; their subscribers had nothing else to take; or the user asked for
        // it, as do a change of subscriptions and the end.
        struct PagesLeft {
            std::uint64_t full = 0;
            std::uint64_t in_time = 0;
            std::uint64_t idle = 0;
            std::uint64_t asked = 0;
        };
        PagesLeft pages_left;
        // Of the accepted messages. Not beside their number, or g++ 12 adds the two as a vector, in
        // 7 instructions a message instead of 2.
        std::uint64_t bytes = 0;
        std::size_t subscribers = 0; // now
        // As the loop's observer is told (netio/base/observer.hpp).
        std::uint64_t rejected = 0;
        std::uint64_t accept_failed = 0;
        std::uint64_t requests_refused = 0;
    };

    Publisher() = default;
    virtual ~Publisher() = default;
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    // Ends in order: what was published arrives, every subscriber learns how much it was and
    // answers, then on_closed.
    virtual void close() = 0;
    // Ends at once: what is under way is lost, then on_closed(local).
    virtual void abort() = 0;
    virtual std::vector<Endpoint> endpoints() const = 0;
    virtual const Counters& counters() noexcept = 0;
    // Who is connected and how far behind, what is free, and how much was published of which fid.
    // Takes as long as the limits allow, and begins what is known since the last one anew.
    virtual PublisherSnapshot snapshot(const SnapshotLimits& limits) = 0;
    PublisherSnapshot snapshot() { return snapshot(SnapshotLimits{}); }
};

// Throws std::invalid_argument naming the option and what is allowed.
NETIO_EXPORT void validate(const Publisher::Options& options);

} // namespace netio::pubsub::inline v0_2
