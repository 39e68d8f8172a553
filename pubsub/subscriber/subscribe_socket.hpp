// SPDX-License-Identifier: Apache-2.0
#pragma once

// Subscribes to a publisher, buffered or unbuffered: one socket, whichever its publisher is.
//
//     struct Handler final : pubsub::SubscribeSocket::Handler {
//         void on_message(pubsub::SubscribeSocket&, pubsub::Fid fid,
//                         std::span<const std::byte> message, std::uint8_t status) override;
//         void on_closed(pubsub::SubscribeSocket&, const Closed& closed, bool retrying) override;
//     } handler;
//     pubsub::SubscribeSocket socket{*transport, {.publisher = {"10.0.0.1", 1234}}, handler};
//     socket.subscribe(pubsub::FidRange{pubsub::Fid{0}, pubsub::Fid{63}});
//     loop.run();
//
// or without a handler, on the network of the loop:
//
//     const auto print = [](netio::MessageView message) { std::cout << message.text() << '\n'; };
//     pubsub::SubscribeSocket socket{loop, "10.0.0.1:1234", {.on_message = print}};
//
// The socket connects by itself, and waits for a publisher that is not there yet. Subscriptions may
// be made at any time; those made before it is connected, and all of them after it has reconnected,
// are asked for when it is. A publisher lets a subscriber go that has unsubscribed from everything;
// the next subscribe() connects again. Belongs to the loop's thread; may be destroyed in any of its
// handlers.

#include "netio/base/address_list.hpp"
#include "netio/base/export.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"
#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/publisher_change.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/subscriber/fid_query.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::inline v0_2 {
class ClientKey;
} // namespace netio::inline v0_2

namespace netio::pubsub::inline v0_2 {

class Continuity;
class SubscriberCore;

class NETIO_EXPORT SubscribeSocket final {
  public:
    struct Options {
        Address publisher{};
        AddressList other_addresses{};          // of the same publisher, tried behind it in order
        std::string local_host{};               // empty: any
        std::shared_ptr<const ClientKey> key{}; // to be let in with; null: none
        // Receive buffers for a publisher's pages; larger messages arrive in fragments of this
        // size.
        SessionOptions session = {
            .receive_bytes = 258 * 1024, .receive_count = 8, .send_count = 16};
        // A publisher whose pages are larger says so, and the receive buffers become as large, but
        // not larger than this.
        std::size_t receive_bytes_limit = std::size_t{16} * 1024 * 1024;
        // Messages larger than a receive buffer arrive in fragments and are put together here.
        std::size_t largest_message_bytes = std::size_t{64} * 1024 * 1024;
        // Each fid that has arrived has an account, of 350 bytes at most. A publisher that sends
        // more of what was asked for, which may be all there are, is left.
        std::size_t fid_limit = 2000000;
        // Try again until a publisher has answered, also where its name does not resolve yet, and
        // where it has no room or lacks the means for us at the moment; and after its connection
        // was lost; then, with a key, whatever is answered by who has not proved that it has it.
        bool wait_for_publisher = true;
        bool reconnect = false;
        // With `reconnect`: also after the publisher has ended in order.
        bool reconnect_after_end = true;
        // Between two attempts: about twice as long each time, up to the limit, and never as long
        // as others wait.
        std::chrono::milliseconds retry_interval{250};
        std::chrono::milliseconds retry_limit{4000};
        // So long after a subscription was accepted, if nothing has arrived of some of its fids,
        // the publisher is asked over another connection whether it publishes them:
        // on_nothing_published follows if not. 0: never.
        std::chrono::milliseconds silence_hint{0};
        // continuity() of a socket that is gone, for one in its place, at another address perhaps:
        // what was published between the two is told as behind a lost connection. Null: none.
        std::shared_ptr<Continuity> continuity{};
    };

    class Handler {
      public:
        virtual void on_connected(SubscribeSocket&) {}
        // The publisher has accepted; messages published from now on arrive.
        virtual void on_subscribed(SubscribeSocket&, const FidRange&) {}
        // arrivals() has their account for the last time.
        virtual void on_unsubscribed(SubscribeSocket&, const FidRange&) {}
        // The publisher refused: the session has as many ranges as its limit allows. What is
        // refused is not wanted any more.
        virtual void on_subscription_refused(SubscribeSocket&, const FidRange&) {}
        // It refused because of the same limit: the fids go on to arrive, and are wanted as before.
        virtual void on_unsubscription_refused(SubscribeSocket&, const FidRange&) {}
        // It refused: the policy would hold it up more than its own does.
        virtual void on_policy_refused(SubscribeSocket& socket, const FidRange& range) {
            on_subscription_refused(socket, range);
        }
        // It refused: the key does not permit these fids, or not with this policy.
        virtual void on_subscription_not_permitted(SubscribeSocket& socket, const FidRange& range) {
            on_subscription_refused(socket, range);
        }
        // The bytes are valid during the call only.
        virtual void on_message(SubscribeSocket&, Fid fid, std::span<const std::byte> message,
                                std::uint8_t status) = 0;
        // This subscriber was too slow, and the publisher's policy is to drop: in the order of the
        // stream, `count` messages of this fid are missing here.
        virtual void on_gap(SubscribeSocket&, Fid, std::uint64_t /*count*/) {}
        // With `reconnect`: behind a connection to the same publish socket, so many messages of
        // this fid, which was subscribed to then, were published and did not arrive. It comes in
        // front of on_subscribed.
        virtual void on_missed(SubscribeSocket&, Fid, std::uint64_t /*count*/) {}
        // With `reconnect`: it is another publish socket than that of the last connection, and
        // counts from the beginning. What the former one published at its end is known only if it
        // had told its totals.
        virtual void on_publisher_changed(SubscribeSocket&, const PublisherChange&) {}
        // With `silence_hint`: the publisher has published nothing under these fids so far. Up to 8
        // ranges at a time, and not more often than once a minute. A publisher of version 0.2
        // cannot say it.
        virtual void on_nothing_published(SubscribeSocket&, const FidQuery::Near&) {}
        // The publisher has ended in order; arrivals() has the loss. on_closed(orderly) follows.
        virtual void on_totals(SubscribeSocket&) {}
        // The connection ended, or no attempt at one succeeded: then detail has the reason of each.
        // With `retrying` the socket goes on by itself, and resolves the name again. Without, the
        // next subscribe() connects again; after close() or abort() this is the last event.
        virtual void on_closed(SubscribeSocket&, const Closed& closed, bool retrying) = 0;

      protected:
        ~Handler() = default;
    };

    // What is called in place of a Handler, as far as it is set. Each function may destroy the
    // socket.
    struct Functions {
        // lost_before() has what on_lost was given since the message before.
        std::function<void(netio::MessageView message)> on_message{};
        // So many messages of this fid were published and did not arrive: this subscriber was too
        // slow and a policy dropped them, or it was not connected.
        std::function<void(Fid fid, std::uint64_t count)> on_lost{};
        std::function<void()> on_connected{};
        std::function<void(const FidRange& fids)> on_subscribed{};
        // The publisher refuses these, for whatever reason.
        std::function<void(const FidRange& fids)> on_refused{};
        std::function<void(const PublisherChange& change)> on_publisher_changed{};
        std::function<void(const Closed& closed, bool retrying)> on_closed{};
    };
    // On the loop's own network (network_of), with the addresses of one publisher. Without options
    // it connects again after a connection was lost, until the publisher ends in order.
    SubscribeSocket(EventLoop& loop, AddressList publisher, Functions functions);
    SubscribeSocket(EventLoop& loop, AddressList publisher, Functions functions, Options options);
    // Connects, from the loop, over every address of the publisher's names and every provider that
    // reaches it, best first. Throws std::invalid_argument: an option.
    SubscribeSocket(Transport& transport, Options options, Handler& handler);
    ~SubscribeSocket();
    SubscribeSocket(const SubscribeSocket&) = delete;
    SubscribeSocket& operator=(const SubscribeSocket&) = delete;

    // With a policy, the publisher treats this subscriber so for these fids when it is too slow,
    // and without one as it treats everybody. The last of several policies for a fid counts.
    void subscribe(const FidRange& range, std::optional<SlowPolicy> policy = {});
    void subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy = {});
    // Also while it is not connected: then messages of these fids do not count as missed later.
    void unsubscribe(const FidRange& range);
    // As unsubscribe(), for fids that another socket receives for the same user from now on. If
    // they are subscribed to here again, messages published since a lost connection count as
    // missed.
    void release(const FidRange& range);
    // Ends in order, for good: on_closed follows, and no other call before it.
    void close();
    // Ends at once: on_closed(local) follows, and no other call before it.
    void abort();

    // Takes nothing more for the time being, from the next message, gap or answer on: what has
    // arrived waits here, and when the receive buffers are full the rest waits at the publisher,
    // which treats this subscriber as slow: by its policy others wait for it, or it misses messages
    // and is told so behind those that had arrived, or it is disconnected. It stays connected
    // otherwise, and stays paused when it has reconnected. on_connected and on_closed are told; if
    // messages had arrived when the connection ended, they wait and on_closed behind them, until
    // resume(), close() or abort(), behind which it does nothing.
    void pause();
    // Goes on in one of the loop's next turns.
    void resume();
    bool is_paused() const noexcept;

    // Monotonic since construction.
    struct Counters {
        std::uint64_t messages = 0; // handed over
        std::uint64_t bytes = 0;    // of those messages
        std::uint64_t connections = 0;
        std::uint64_t pauses = 0;
    };
    const Counters& counters() noexcept;
    std::vector<FidRange> wanted() const;
    bool is_connected() const noexcept;
    // The provider in use; valid while connected and in on_closed.
    const std::string& provider() const noexcept;
    // With `reconnect`: of the publish socket that has accepted a subscription last; 0: none has.
    std::uint64_t publisher_instance() const noexcept;
    // With `reconnect`: how far it is in the stream of each fid, for a socket behind this one.
    std::shared_ptr<Continuity> continuity() const;
    // Which kinds of frames have arrived.
    const FramesSeen& seen() const noexcept;
    const ArrivalCounter& arrivals() const noexcept;

  private:
    class FunctionHandler;
    std::unique_ptr<FunctionHandler> functions_;
    std::unique_ptr<SubscriberCore> core_;
};

// Throws std::invalid_argument naming the option and what is allowed.
NETIO_EXPORT void validate(const SubscribeSocket::Options& options);

} // namespace netio::pubsub::inline v0_2
