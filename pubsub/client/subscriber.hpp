// SPDX-License-Identifier: Apache-2.0
#pragma once

// Subscribes to fids at publishers, whose addresses are given or which are found on a bus:
//
//     netio::Subscriber subscriber{"127.0.0.1:12345"};
//     subscriber.subscribe({0, 63});
//     for (const netio::Message& message : subscriber)
//         std::cout << message.fid() << ": " << message.text() << '\n';
//
// It connects by itself, waits for a publisher that is not there yet, and connects again when a
// connection is lost. The thread of its Context puts what arrives into a bounded queue, from which
// the iteration takes it. While the queue is full the publishers wait, or what `when_full` says.
// Each message that does not arrive is counted, and Message::lost_before() tells it with the next
// one of its fid.
//
// Any thread may call it. Several threads may iterate: each message goes to one of them. A
// Subscriber may be a global object. A child process that is forked must not use one of its parent;
// its destructor does nothing there.

#include "netio/base/address_list.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "netio/context.hpp"
#include "netio/loop/process.hpp"
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
    on_loss, // after a connection was lost, but not after the publisher has ended in order
    always,  // also then
    never,
};

class NETIO_EXPORT Subscriber final {
  public:
    struct Options {
        std::optional<Context> context{}; // none: one of its own
        // With a bus on_loss is the same as always: the bus says which publishers there are.
        Reconnect reconnect = Reconnect::on_loss;
        std::shared_ptr<const ClientKey> key{}; // to be admitted with
        // What waits for the iteration.
        std::size_t queue_limit_messages = 65536;
        std::size_t queue_limit_bytes = std::size_t{64} << 20;
        // What happens when it is full: block (publishers wait, as for any slow subscriber), drop,
        // or newest (of each fid the last message is kept). disconnect is as block here.
        pubsub::SlowPolicy when_full = pubsub::SlowPolicy::block;
        // So long after a subscription was accepted, if nothing has arrived, the log says whether
        // the publisher publishes these fids at all. 0: never.
        std::chrono::milliseconds silence_hint{5000};
        // Called for each message on the context's thread, in place of the queue and the iteration.
        // It must not throw, and must not destroy the subscriber.
        std::function<void(const Message& message)> on_message{};
        // The rest, of each connection. The options above replace what this one says.
        pubsub::SubscribeSocket::Options socket{};
    };

    // Throws std::invalid_argument: an option or an address.
    explicit Subscriber(AddressList publishers);
    Subscriber(AddressList publishers, Options options);
    explicit Subscriber(const Bus& bus);
    Subscriber(const Bus& bus, Options options);
    // Ends as close() does, and waits for a second at most.
    ~Subscriber();
    Subscriber(const Subscriber&) = delete;
    Subscriber& operator=(const Subscriber&) = delete;

    // Asks all publishers for these fids, now and after each connection; does not wait. A policy
    // says how publishers treat this subscriber for these fids while it is slow, if they would
    // otherwise wait longer. Throws std::invalid_argument: a range ends before it begins.
    void subscribe(Fid fid, std::optional<pubsub::SlowPolicy> policy = {});
    void subscribe(const FidRange& fids, std::optional<pubsub::SlowPolicy> policy = {});
    void subscribe(const FidSet& fids, std::optional<pubsub::SlowPolicy> policy = {});
    void unsubscribe(Fid fid);
    void unsubscribe(const FidRange& fids);
    void unsubscribe(const FidSet& fids);
    // Waits until each fid that was subscribed to has been accepted by a publisher: messages that
    // are published from then on arrive. False: the time is over, or the subscriber has ended. On
    // the context's thread it does not wait.
    bool wait_until_subscribed(std::chrono::milliseconds timeout) const;
    template <typename Period>
    bool wait_until_subscribed(std::chrono::duration<std::int64_t, Period> timeout) const {
        return wait_until_subscribed(clamped_milliseconds(timeout));
    }

    // The iteration waits for messages, and begins with the first one that was not taken. It ends
    // after close(), and, where addresses were given, when every publisher has ended in order (not
    // with Reconnect::always). Throws Error: a publisher refuses a subscription (the iteration may
    // be started again for the others); or all publishers have ended, and one of them refused this
    // subscriber for good, or was lost with Reconnect::never.
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

        Subscriber* subscriber_; // null: at the end
        std::shared_ptr<pubsub::MessageBatch> held_;
        Message message_;
    };
    Iterator begin() { return Iterator{*this}; }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    // The next message; nothing: none came in time, or the iteration would have ended. Throws as
    // the iteration.
    std::optional<OwnedMessage> receive(std::chrono::milliseconds timeout);
    template <typename Period>
    std::optional<OwnedMessage> receive(std::chrono::duration<std::int64_t, Period> timeout) {
        return receive(clamped_milliseconds(timeout));
    }
    // Readable while something waits in the queue, for loops of one's own: then call receive(0ms)
    // until it returns nothing.
    int pollable_fd() const noexcept;

    // Ends all connections in order, and waits for that. The iteration still yields what is in the
    // queue. On the context's thread it does not wait.
    void close();
    bool is_closed() const noexcept; // nothing more will arrive

    struct Stats {
        std::uint64_t messages = 0;    // arrived
        std::uint64_t lost = 0;        // published and not received, as far as it is known
        std::uint64_t lost_at_end = 0; // of those: after the last message of their fid
        std::uint64_t dropped = 0;     // of those: arrived, and the queue had no room
        std::uint64_t restarts = 0;    // another publisher answered where one had
        // Publishers that ended without telling how much they had published: what they published
        // last and did not arrive is not in `lost`.
        std::uint64_t unknown_tails = 0;
        std::size_t publishers = 0; // connected now
    };
    Stats stats() const;

  private:
    struct Impl;
    static constexpr char type[] = "Subscriber";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::inline v0_3
