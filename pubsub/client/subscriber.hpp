// SPDX-License-Identifier: Apache-2.0
#pragma once

// Subscribes to fids at publishers, which have given addresses or are found on a bus:
//
//     netio::Subscriber subscriber{"127.0.0.1:12345"};
//     subscriber.subscribe({0, 63});
//     for (const netio::Message& message : subscriber)
//         std::cout << message.fid() << ": " << message.text() << '\n';
//
// A Subscriber connects by itself, waits for publishers that do not listen yet, and establishes a
// lost connection again. The thread of its Context puts messages into a bounded queue, from which
// the iteration takes them. When the queue is full, Options::when_full decides; by default the
// publishers wait. Each lost message is counted, and Message::lost_before() of the next message of
// its fid reports it. receive(batch) takes many messages at a time.
//
// Any thread may call it. Several threads may iterate: each message goes to one of them. A
// Subscriber may be a global object. A forked child process must not use a Subscriber of its
// parent; its destructor does nothing there.

#include "netio/base/address_list.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "netio/context.hpp"
#include "netio/loop/process.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/message_batch.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

namespace netio::inline v0_3 {

// When a subscriber connects again to a publisher that it was connected to.
enum class Reconnect : std::uint8_t {
    on_loss, // after a connection was lost, but not after the publisher has closed in order
    always,  // after both
    never,
};

class NETIO_EXPORT Subscriber final {
  public:
    using Source = pubsub::Subscriptions::Source;   // a publisher
    using Refusal = pubsub::Subscriptions::Refusal; // why it refuses fids

    struct Options {
        std::optional<Context> context{}; // nullopt: creates its own
        // With a bus, on_loss is the same as always, because the bus reports which publishers
        // exist.
        Reconnect reconnect = Reconnect::on_loss;
        std::shared_ptr<const ClientKey> key{}; // for authentication
        // Limit of messages that wait for the iteration.
        std::size_t queue_limit_messages = 65536;
        std::size_t queue_limit_bytes = std::size_t{64} << 20;
        // When the queue is full: block (publishers wait, as for any slow subscriber), drop, or
        // newest (only the last message of each fid is kept), or disconnect (as block; if the queue
        // stays full for disconnect_after, the subscriber closes, and the iteration ends with an
        // Error).
        pubsub::SlowPolicy when_full = pubsub::SlowPolicy::block;
        std::chrono::milliseconds disconnect_after{10000};
        // If nothing has arrived this long after a subscription was accepted, the log reports
        // whether the publisher publishes these fids at all. It also reports if subscribe() was not
        // called this long after the construction. 0: never.
        std::chrono::milliseconds silence_hint{5000};
        // The functions below are called on the context's thread, in the order of the events. They
        // must not throw, and must not destroy the subscriber.

        // If set, it is called for each message, and the queue and the iteration get none.
        std::function<void(const Message& message)> on_message{};
        // At this position `count` messages of the fid are lost: the publisher dropped them, or
        // they were published between two connections. lost_before() of the next message includes
        // them.
        std::function<void(Fid fid, std::uint64_t count)> on_lost{};
        // The publisher has accepted these fids. Called again after each reconnection.
        std::function<void(const Source&, const FidRange&)> on_subscribed{};
        // The publisher refuses these fids, and this subscriber does not request them from it
        // again. Without this function, the iteration throws an Error instead.
        std::function<void(const Source&, const FidRange&, Refusal)> on_refused{};
        // Another publish socket answers at the publisher's address, for instance after a restart;
        // its counts start from the beginning.
        std::function<void(const Source&, const pubsub::PublisherChange&)> on_publisher_changed{};
        // Further options of each connection. The options above override them.
        pubsub::SubscribeSocket::Options socket{};
    };

    // Throws std::invalid_argument for an invalid option or address.
    explicit Subscriber(AddressList publishers);
    Subscriber(AddressList publishers, Options options);
    explicit Subscriber(const Bus& bus);
    Subscriber(const Bus& bus, Options options);
    // Closes as close() does, but waits for a second at most.
    ~Subscriber();
    Subscriber(const Subscriber&) = delete;
    Subscriber& operator=(const Subscriber&) = delete;

    // Subscribes to these fids at all publishers, now and after each connection; does not wait. A
    // policy determines how publishers treat this subscriber for these fids while it is slow, if
    // their own policy would wait longer. Throws std::invalid_argument if a range ends before it
    // begins.
    void subscribe(Fid fid, std::optional<pubsub::SlowPolicy> policy = {});
    void subscribe(const FidRange& fids, std::optional<pubsub::SlowPolicy> policy = {});
    void subscribe(const FidSet& fids, std::optional<pubsub::SlowPolicy> policy = {});
    // Ends the subscriptions at all publishers; does not wait. Messages that have arrived stay in
    // the queue.
    void unsubscribe(Fid fid);
    void unsubscribe(const FidRange& fids);
    void unsubscribe(const FidSet& fids);
    // Waits until a publisher has accepted each subscribed fid, or each of `fids`: messages that
    // are published later arrive. Returns false if the time-out passes, if a publisher with a given
    // address has refused some of them, or if the subscriber has ended. Does not wait on the
    // context's thread.
    bool wait_until_subscribed(std::chrono::milliseconds timeout) const;
    template <typename Period>
    bool wait_until_subscribed(std::chrono::duration<std::int64_t, Period> timeout) const {
        return wait_until_subscribed(clamped_milliseconds(timeout));
    }
    bool wait_until_subscribed(const FidSet& fids, std::chrono::milliseconds timeout) const;
    template <typename Period>
    bool wait_until_subscribed(const FidSet& fids,
                               std::chrono::duration<std::int64_t, Period> timeout) const {
        return wait_until_subscribed(fids, clamped_milliseconds(timeout));
    }

    // The iteration waits for messages, and starts with the first one in the queue. It ends after
    // close(), and, with given addresses, when every publisher has closed in order (not with
    // Reconnect::always). Throws Error if a publisher refuses a subscription (the iteration may be
    // started again for the others), or if all publishers have ended and one of them has rejected
    // this subscriber permanently, or was lost with Reconnect::never.
    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using iterator_concept = std::input_iterator_tag;
        using value_type = Message;
        using difference_type = std::ptrdiff_t;
        using pointer = const Message*;
        using reference = const Message&;

        const Message& operator*() const noexcept { return message_; }
        const Message* operator->() const noexcept { return &message_; }
        Iterator& operator++() { return take_next(), *this; }
        void operator++(int) { take_next(); }
        friend bool operator==(const Iterator& iterator, std::default_sentinel_t) noexcept {
            return iterator.subscriber_ == nullptr;
        }

      private:
        friend class Subscriber;
        explicit Iterator(Subscriber& subscriber) : subscriber_{&subscriber} { take_next(); }
        NETIO_EXPORT void take_next();

        Subscriber* subscriber_; // nullptr: at the end
        std::shared_ptr<pubsub::MessageBatch> held_;
        Message message_;
    };
    Iterator begin() { return Iterator{*this}; }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    // Waits for the next message and returns a copy. Returns nullopt after the time-out, or if the
    // iteration would end. Throws as the iteration does.
    std::optional<OwnedMessage> receive(std::chrono::milliseconds timeout);
    template <typename Period>
    std::optional<OwnedMessage> receive(std::chrono::duration<std::int64_t, Period> timeout) {
        return receive(clamped_milliseconds(timeout));
    }
    // As receive(timeout), but returns what Message::keep() returns in the iteration, usually
    // without a copy.
    std::optional<KeptMessage> receive_kept(std::chrono::milliseconds timeout);
    // Waits for messages, and replaces the content of `batch` by many of them at once, without
    // copying them. Returns their number; 0 after the time-out, or if the iteration would end.
    // Throws as the iteration does. A batch may have an item without a message (is_gap): it reports
    // losses after the last message of its fid.
    std::size_t receive(pubsub::MessageBatch& batch, std::chrono::milliseconds timeout);
    template <typename Period>
    std::size_t receive(pubsub::MessageBatch& batch,
                        std::chrono::duration<std::int64_t, Period> timeout) {
        return receive(batch, clamped_milliseconds(timeout));
    }
    // Returns a descriptor for an event loop of the user, which is readable while the queue is not
    // empty, and once when the subscriber has ended. When it is readable, call receive(0ms) until
    // it returns nullopt. The subscriber owns it: do not read from it or close it.
    int pollable_fd() const noexcept;

    // Closes all connections in order, and waits until that is done. The iteration still returns
    // the messages in the queue. Does not wait on the context's thread.
    void close();
    bool is_closed() const noexcept; // no further message will arrive

    struct Stats {
        std::uint64_t messages = 0;    // arrived
        std::uint64_t lost = 0;        // published and not received, as far as is known
        std::uint64_t lost_at_end = 0; // of `lost`: after the last message of their fid
        std::uint64_t dropped = 0;     // of `lost`: they arrived when the queue was full
        std::uint64_t restarts = 0;    // another publisher answered at the same address
        // Publishers that ended without sending their totals: their last messages, if they did not
        // arrive, are not counted in `lost`.
        std::uint64_t unknown_tails = 0;
        std::size_t publishers = 0; // connected
    };
    Stats stats() const;

  private:
    struct Impl;
    static constexpr char type[] = "Subscriber";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::inline v0_3
