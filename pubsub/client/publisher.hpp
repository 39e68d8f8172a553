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
// subscribers that want the fid. The messages that one thread publishes under one fid arrive in
// order. A message that no subscriber wants is counted, so that a subscriber that was connected
// before learns how many it lost.
//
// The destructor calls close(). A Publisher may be a global object. A child process that is forked
// must not use one of its parent; its destructor does nothing there.

#include "netio/base/address_list.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "netio/context.hpp"
#include "netio/loop/process.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/slow_policy.hpp"
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
        std::optional<Context> context{}; // none: one of its own
        // How long publish() waits while there is no room. A subscriber that is gone without a word
        // is noticed after socket.publisher.session.dead_after, 30 s.
        std::chrono::milliseconds publish_timeout{60000};
        // Bytes of messages, with 48 bytes for each, that wait for the context's thread.
        std::size_t queue_limit_bytes = std::size_t{16} << 20;
        // What happens to a subscriber that does not keep up.
        pubsub::SlowPolicy slow_policy = pubsub::SlowPolicy::block;
        // close(): how long a subscriber may make no progress before it is cut off, and how long
        // closing may take in all.
        std::chrono::milliseconds close_timeout{10000};
        std::chrono::milliseconds close_limit{60000};
        // Whether other machines may connect though there are no keys: then traffic is not
        // encrypted, and anybody that reaches the address may subscribe.
        bool allow_remote_anonymous = false;
        // Made on the context's loop: context.run([&] { keys = ...; }).
        std::shared_ptr<ServerKeys> keys{};
        // Announces the publisher on this bus, under a name that is unique there, with `fids`. An
        // empty name stands for host, process and port; subscribers recognise a publisher that was
        // started again by its name.
        std::optional<Bus> bus{};
        std::string name{};
        // The fids that it publishes: others are refused with not_owned. None: every fid.
        std::optional<FidSet> fids{};
        // The rest: pages, flush time, limits. The options above replace what this one says.
        pubsub::BufferedPublishSocket::Options socket{};
    };

    // Listens at these addresses; port 0 is any free port. Throws std::invalid_argument: an option
    // or an address; FabricError: an address cannot be used.
    explicit Publisher(AddressList addresses);
    Publisher(AddressList addresses, Options options);
    ~Publisher();
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    // Any thread may call all of these.

    // Waits while there is no room. True: at least one subscriber wants the fid; false: none did at
    // the moment of the call. Throws Error: again (no room for publish_timeout; on the context's
    // thread, at once), too_large, not_owned, closed.
    //
    // A message is a range of bytes or of characters (std::string, std::vector<std::uint8_t>,
    // std::span<const std::byte>, ...). A string literal goes without the character that ends it;
    // an array of char that is not const goes as a whole.
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
    // The bytes of a value: a number, an enumerator, a structure of them. Of a structure, bytes
    // between its members are sent as well.
    template <MessageValue Value>
    bool publish_value(Fid fid, const Value& value, std::uint8_t status = 0) {
        return publish(fid, std::as_bytes(std::span{&value, 1}), status);
    }

    // The same without waiting. ok; no_subscribers: accepted as well, but no subscriber wanted the
    // fid at the moment of the call; again: no room now, perhaps for another fid; too_large,
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

    // Waits until `count` subscribers have a subscription each. False: the time is over, or the
    // publisher is closed. On the context's thread it does not wait.
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const;
    template <typename Period>
    bool wait_for_subscribers(std::size_t count,
                              std::chrono::duration<std::int64_t, Period> timeout) const {
        return wait_for_subscribers(count, clamped_milliseconds(timeout));
    }

    // Ends in order: sends what was published, waits until every subscriber has confirmed it, and
    // returns. It gives up on a subscriber after close_timeout without progress, and on all after
    // close_limit; the log then has a line. On the context's thread it does not wait.
    void close();

    // Where it listens, with the port that was chosen.
    std::vector<Endpoint> endpoints() const;
    Address address() const; // the first of them

    struct Stats {
        std::uint64_t published = 0;           // given to the network, or counted for nobody
        std::uint64_t without_subscribers = 0; // of those: no subscriber wanted the fid
        std::uint64_t unpublished = 0;         // accepted, and given up by close()
        std::size_t subscribers = 0;           // with at least one subscription, now
    };
    Stats stats() const;

  private:
    struct Impl;
    static constexpr char type[] = "Publisher";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::inline v0_3
