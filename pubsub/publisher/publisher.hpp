// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface that buffered and unbuffered publish sockets have in common.

#include "netio/base/address_list.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/time_stamp.hpp"
#include "pubsub/publisher/publisher_snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::inline v0_3 {
class ServerKeys;
} // namespace netio::inline v0_3

namespace netio::pubsub::inline v0_3 {

// The page format has 30 bits for the size of a message.
inline constexpr std::size_t largest_message_limit = (std::size_t{1} << 30) - 1;

// A connected subscriber, for display and for the user's own data.
struct SubscriberPeer {
    SubscriberId id{};
    std::string address;
    bool gone = false; // its session has ended, or is about to
};

class NETIO_EXPORT PublishSocketBase {
  public:
    struct Options {
        AddressList listen{};
        bool allow_remote_anonymous = false; // peers of other machines may connect without keys
        std::shared_ptr<ServerKeys> keys{};  // of the peers that may connect; null: all may
        // The fids of this socket, if several loops publish (pubsub/core/fid_shards.hpp):
        // publishing another fid returns not_owned, and a subscription to more fids gets these.
        // nullopt: all.
        std::optional<std::vector<FidRange>> fids{};
        // Subscribers send only requests and heartbeats, so their frames here are few and small.
        SessionOptions session = {
            .receive_buffer_bytes = 4096, .receive_count = 8, .window_limit = 0};
        // The policy for slow subscribers. A subscriber may request, for some of its fids, a policy
        // that blocks the publisher less. `newest` is for buffered publishers only: an unbuffered
        // one would keep the user's memory in flight.
        SlowPolicy slow_policy = SlowPolicy::block;
        // With the policy `disconnect`: how long publishing waits for a subscriber without
        // progress.
        std::chrono::milliseconds disconnect_after{10000};
        std::size_t subscriber_limit = 4096;
        // Limit of subscribers per host; 0: half of subscriber_limit. With keys, the limit of the
        // keys applies.
        std::size_t connections_per_host = 0;
        std::size_t ranges_per_subscriber_limit = 16384;
        // Requests and replies that may be queued for one subscriber; one more request ends its
        // session.
        std::size_t pending_reply_limit = 4096;
        // Publishing a larger message returns too_large; subscribers that cannot receive messages
        // of this size are rejected.
        std::size_t largest_message_bytes = std::size_t{16} * 1024 * 1024;
        // The clock of the time that is sent with each message, in 8 more bytes; subscribers read
        // it with MessageView::time(). tai: publish() reads the clock, publish_at() passes a time
        // of that clock. own: of the user's clock, which only publish_at() passes.
        StampClock time_stamps = StampClock::none;
        // close(): a subscriber that makes no progress for this long is disconnected, and the limit
        // of the whole close.
        std::chrono::milliseconds close_timeout{10000};
        std::chrono::milliseconds close_limit{60000};
    };

    // Every function has an empty default. Each may destroy the publisher.
    class Handler {
      public:
        virtual void on_subscriber_connected(PublishSocketBase&, const SubscriberPeer&) {}
        // A subscription was accepted, and its answer is not sent yet; on_subscribed follows. For a
        // user whose other threads ask which fids are subscribed: they must know it before the
        // subscriber does. Must not use or destroy the socket.
        virtual void on_subscribing(PublishSocketBase&, const SubscriberPeer&, const FidRange&) {}
        virtual void on_subscribed(PublishSocketBase&, const SubscriberPeer&, const FidRange&) {}
        // Also called for each subscription of a subscriber that is gone (peer.gone);
        // on_subscriber_closed follows.
        virtual void on_unsubscribed(PublishSocketBase&, const SubscriberPeer&, const FidRange&) {}
        virtual void on_subscriber_closed(PublishSocketBase&, const SubscriberPeer&,
                                          const Closed&) {}
        // After publish() returned `again`: try it again.
        virtual void on_writable(PublishSocketBase&) {}
        // The last event, after close() or abort(). orderly: every subscriber has confirmed that it
        // has received everything; otherwise the detail has the number of those that have not.
        virtual void on_closed(PublishSocketBase&, const Closed&) {}

      protected:
        ~Handler() = default;
    };

    // Since construction; they do not decrease, except where stated.
    struct Counters {
        std::uint64_t messages = 0; // accepted with at least one subscriber
        std::uint64_t without_subscribers = 0;
        std::uint64_t again = 0;   // calls that returned again
        std::uint64_t partial = 0; // calls of try_publish that returned partial
        std::uint64_t dropped = 0; // messages dropped for slow subscribers, summed over them
        std::uint64_t pages = 0;   // pages sent to at least one subscriber (buffered)
        // Why pages of small messages were sent: they were full, or memory was short; flush_time
        // was over; their sessions were idle; or the user called flush(), a subscription changed,
        // or the publisher closed.
        struct PagesLeft {
            std::uint64_t full = 0;
            std::uint64_t in_time = 0;
            std::uint64_t idle = 0;
            std::uint64_t asked = 0;
        };
        PagesLeft pages_left;
        // Bytes of the accepted messages. Not adjacent to their number, or g++ 12 adds the two as a
        // vector, with 7 instructions per message instead of 2.
        std::uint64_t bytes = 0;
        std::size_t subscribers = 0; // now
        // The events of the loop's observer (netio/base/observer.hpp).
        std::uint64_t rejected = 0;
        std::uint64_t accept_failed = 0;
        std::uint64_t requests_refused = 0;
    };

    PublishSocketBase() = default;
    virtual ~PublishSocketBase() = default;
    PublishSocketBase(const PublishSocketBase&) = delete;
    PublishSocketBase& operator=(const PublishSocketBase&) = delete;

    // Closes in order: what was published is sent, every subscriber gets its totals and confirms
    // them, then on_closed. No other subscriber can connect, and the address is free for another
    // socket at once.
    virtual void close() = 0;
    // Ends all sessions at once: what is in flight is lost, then on_closed(local).
    virtual void abort() = 0;
    // The addresses where it listens, with the ports that were actually bound.
    virtual std::vector<Endpoint> endpoints() const = 0;
    virtual const Counters& counters() noexcept = 0;
    // Returns the subscribers and their queues, the free memory, and the counters of each fid. The
    // limits bound the cost of the call. Values of "since the last snapshot" start again.
    virtual PublisherSnapshot snapshot(const SnapshotLimits& limits) = 0;
    PublisherSnapshot snapshot() { return snapshot(SnapshotLimits{}); }
};

// Throws std::invalid_argument, which names the option and the allowed values.
NETIO_EXPORT void validate(const PublishSocketBase::Options& options);

using Publisher = PublishSocketBase;

} // namespace netio::pubsub::inline v0_3
