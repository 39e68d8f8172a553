// SPDX-License-Identifier: Apache-2.0
#pragma once

// Publishes messages under fids, from any thread:
//
//     netio::Publisher publisher{"127.0.0.1:12345"};
//     publisher.wait_for_subscribers(1, std::chrono::seconds{60});
//     publisher.publish(7, "a text");
//     publisher.publish_value(8, 3.14);
//
// It copies each message into a bounded queue, from which the thread of its Context sends it to all
// subscribers of the fid. Messages that one thread publishes under one fid arrive in order.
// Messages of a fid without subscribers are counted, so that a subscriber that reconnects gets the
// number that it lost.
//
// The destructor calls close(). A Publisher may be a global object. A forked child process must not
// use a Publisher of its parent; its destructor does nothing there.

#include "netio/base/address_list.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "netio/context.hpp"
#include "netio/loop/process.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/time_stamp.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netio::inline v0_3 {

class NETIO_EXPORT Publisher final {
  public:
    struct Options {
        std::optional<Context> context{}; // nullopt: creates its own
        // How long publish() waits while the queue has no space. A subscriber that disappears
        // without closing its connection is detected after socket.publisher.session.dead_after, 30
        // s.
        std::chrono::milliseconds publish_timeout{60000};
        // Limit of the bytes of messages, plus 48 bytes for each, that wait for the context's
        // thread.
        std::size_t queue_limit_bytes = std::size_t{16} << 20;
        // What happens to a slow subscriber.
        pubsub::SlowPolicy slow_policy = pubsub::SlowPolicy::block;
        // close(): how long a subscriber may make no progress before it is disconnected, and how
        // long closing may take in total.
        std::chrono::milliseconds close_timeout{10000};
        std::chrono::milliseconds close_limit{60000};
        // Whether peers of other machines may connect without keys. Then traffic is not encrypted,
        // and any peer that can reach the address may subscribe.
        bool allow_remote_anonymous = false;
        // Must be created on the context's loop: context.run([&] { keys = ...; }).
        std::shared_ptr<ServerKeys> keys{};
        // The clock of the time that is sent with each message; subscribers read it with
        // Message::time(). tai: publish() reads the clock. own: publish_at() passes the time.
        StampClock time_stamps = StampClock::none;
        // Announces the publisher on this bus, with `fids`, under a name that is unique there. If
        // `name` is empty, it is made of host, process and port. Subscribers recognise a restarted
        // publisher by its name. announce() can announce more.
        std::optional<Bus> bus{};
        std::string name{};
        // The fids that this publisher may publish; for others publish() reports not_owned.
        // nullopt: every fid.
        std::optional<FidSet> fids{};
        // Further options: pages, flush time, limits. The options above override them.
        pubsub::BufferedPublishSocket::Options socket{};
    };

    // Listens at these addresses; port 0 means any free port. Throws std::invalid_argument for an
    // invalid option or address, and FabricError if an address cannot be used.
    explicit Publisher(AddressList addresses);
    Publisher(AddressList addresses, Options options);
    ~Publisher();
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    // All functions below may be called from any thread.

    // Copies the message into the queue; waits while the queue has no space. Returns whether the
    // fid had at least one subscriber at the time of the call. Throws Error: again (no space for
    // publish_timeout; on the context's thread, without waiting), too_large, not_owned, closed.
    //
    // A message is a range of bytes or of characters (std::string, std::vector<std::uint8_t>,
    // std::span<const std::byte>, ...). A string literal is sent without its terminating null
    // character; an array of char that is not const is sent as a whole.
    bool publish(Fid fid, std::span<const std::byte> message, std::uint8_t status = 0);
    bool publish(Fid fid, std::string_view message, std::uint8_t status = 0) {
        return publish(fid, std::as_bytes(std::span{message}), status);
    }
    template <MessageBytes Range>
    bool publish(Fid fid, const Range& message, std::uint8_t status = 0) {
        return publish(fid, as_message_bytes(message), status);
    }
    template <std::size_t Size>
    bool publish(Fid fid, char (&message)[Size], std::uint8_t status = 0) {
        return publish(fid, std::as_bytes(std::span{message}), status);
    }
    // Publishes the bytes of a value: a number, an enumerator, or a structure of them. Padding
    // bytes of a structure are sent as well.
    template <MessageValue Value>
    bool publish_value(Fid fid, const Value& value, std::uint8_t status = 0) {
        return publish(fid, std::as_bytes(std::span{&value, 1}), status);
    }

    // The same with a time, in the unit of the option time_stamps; without the option the time is
    // not sent.
    bool publish_at(std::int64_t time, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status = 0);

    // The same without waiting. Returns ok; no_subscribers: accepted, but the fid had no subscriber
    // at the time of the call; again: no space now, but another fid may have space; too_large,
    // not_owned, closed.
    Status try_publish(Fid fid, std::span<const std::byte> message, std::uint8_t status = 0);
    Status try_publish(Fid fid, std::string_view message, std::uint8_t status = 0) {
        return try_publish(fid, std::as_bytes(std::span{message}), status);
    }
    template <MessageBytes Range>
    Status try_publish(Fid fid, const Range& message, std::uint8_t status = 0) {
        return try_publish(fid, as_message_bytes(message), status);
    }
    template <std::size_t Size>
    Status try_publish(Fid fid, char (&message)[Size], std::uint8_t status = 0) {
        return try_publish(fid, std::as_bytes(std::span{message}), status);
    }
    template <MessageValue Value>
    Status try_publish_value(Fid fid, const Value& value, std::uint8_t status = 0) {
        return try_publish(fid, std::as_bytes(std::span{&value, 1}), status);
    }

    // try_publish() with a time, as publish_at().
    Status try_publish_at(std::int64_t time, Fid fid, std::span<const std::byte> message,
                          std::uint8_t status = 0);

    // A message of publish_batch().
    struct Outgoing {
        Fid fid{};
        std::uint8_t status = 0;
        std::span<const std::byte> bytes{}; // must be valid during the call
    };
    // Publishes many messages in order, with one lock and one allocation for up to a thousand of
    // them. Returns how many of them, from the first one on, were accepted: fewer than all if the
    // queue had no space for `timeout`, or if the publisher was closed during the call. Throws
    // Error, and accepts none: too_large, not_owned, closed. Does not wait on the context's thread.
    std::size_t publish_batch(std::span<const Outgoing> messages,
                              std::chrono::milliseconds timeout);
    template <typename Period>
    std::size_t publish_batch(std::span<const Outgoing> messages,
                              std::chrono::duration<std::int64_t, Period> timeout) {
        return publish_batch(messages, clamped_milliseconds(timeout));
    }

    // Waits until at least `count` subscribers have a subscription. Returns false if the time-out
    // passes, or if the publisher is closed. Does not wait on the context's thread.
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const;
    template <typename Period>
    bool wait_for_subscribers(std::size_t count,
                              std::chrono::duration<std::int64_t, Period> timeout) const {
        return wait_for_subscribers(count, clamped_milliseconds(timeout));
    }

    // Announces the publisher on a bus with a name, fids, meanings and parameters of the caller,
    // which may differ from the options; adds its addresses, host and process. Another call
    // replaces the announcement; close() withdraws it. Throws AnnouncementError and what
    // pubsub::announce() throws.
    void announce(const Bus& bus, pubsub::Announcement announcement);

    // Closes in order: sends what was published, waits until every subscriber has confirmed it, and
    // returns. Disconnects a subscriber after close_timeout without progress, and all subscribers
    // after close_limit; then it writes a log line. Does not wait on the context's thread.
    void close();
    bool is_closed() const noexcept; // close() was called, and all connections have ended

    // The addresses where it listens, with the port that was chosen.
    std::vector<Endpoint> endpoints() const;
    Address address() const; // the first one

    struct Stats {
        std::uint64_t published = 0;           // sent, or published without subscribers
        std::uint64_t without_subscribers = 0; // of `published`: the fid had no subscriber
        std::uint64_t unpublished = 0;         // accepted, and discarded by close()
        std::size_t subscribers = 0;           // with at least one subscription, now
    };
    Stats stats() const;

  private:
    struct Impl;
    static constexpr char type[] = "Publisher";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::inline v0_3
