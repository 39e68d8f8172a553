// SPDX-License-Identifier: Apache-2.0
#pragma once

// Subscribes to one publisher, buffered or unbuffered.
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
// The socket connects by itself, and waits for a publisher that is not there yet. subscribe() may
// be called at any time; requests are sent when the socket is connected, and repeated when it has
// reconnected. A publisher closes the connection of a subscriber without subscriptions; the next
// subscribe() connects again. Belongs to the loop's thread; may be destroyed in any of its
// handlers.

#include "netio/base/address_list.hpp"
#include "netio/base/export.hpp"
#include "netio/memory/keep_pool.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"
#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/page_view.hpp"
#include "pubsub/core/publisher_change.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/time_stamp.hpp"
#include "pubsub/subscriber/fid_query.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::inline v0_3 {
class ClientKey;
} // namespace netio::inline v0_3

namespace netio::pubsub::inline v0_3 {

class ResumeState;

class NETIO_EXPORT SubscribeSocket final {
  public:
    struct Options {
        Address publisher{};
        AddressList fallback_addresses{};       // of the same publisher, tried after it in order
        std::string local_host{};               // empty: any
        std::shared_ptr<const ClientKey> key{}; // for authentication; nullptr: none
        // Receive buffers for the publisher's pages. Larger messages arrive in fragments of this
        // size.
        SessionOptions session = {
            .receive_buffer_bytes = 258 * 1024, .receive_count = 8, .send_count = 16};
        // If the publisher requires larger receive buffers, they are enlarged up to this limit.
        std::size_t receive_buffer_limit_bytes = std::size_t{16} * 1024 * 1024;
        // Fragmented messages up to this size are reassembled.
        std::size_t largest_message_bytes = std::size_t{64} * 1024 * 1024;
        // Each fid that has arrived has counters, of up to 350 bytes. The connection is closed if
        // the publisher sends more fids.
        std::size_t fid_limit = 2000000;
        // wait_for_publisher: retry until a publisher answers, also if its name does not resolve
        // yet, and if it has no free slot or no resources at the moment. reconnect: retry after a
        // lost connection; then, with a key, also after any answer of an unauthenticated peer.
        bool wait_for_publisher = true;
        bool reconnect = false;
        // With `reconnect`: also after the publisher has ended in order.
        bool reconnect_after_end = true;
        // Between two attempts: doubled each time up to the limit, with random variation.
        std::chrono::milliseconds retry_interval{250};
        std::chrono::milliseconds retry_limit{4000};
        // If no message of some fids has arrived this long after their subscription was accepted,
        // the publisher is asked over another connection whether it publishes them. If not,
        // on_nothing_published follows. 0: never.
        std::chrono::milliseconds silence_hint{0};
        // on_page is called instead of on_message, with all messages of a page.
        bool whole_pages = false;
        // Each subscription is for history: first the messages of its fids that the publisher still
        // keeps (BufferedPublishSocket::Options::history_limit_bytes), oldest first, then the new
        // ones, without a gap or a duplicate. Kept messages that the publisher discards before they
        // are sent are reported lost. After a reconnection to the same publish socket only new
        // messages arrive. If the publisher keeps none, the loop's observer is notified, once per
        // connection.
        bool history = false;
        // resume_state() of a former socket that this one replaces, perhaps at another address:
        // messages published between the two are reported as after a lost connection. nullptr:
        // none.
        std::shared_ptr<ResumeState> resume_state{};
    };

    class Handler {
      public:
        virtual void on_connected(SubscribeSocket&) {}
        // The publisher has accepted. Messages published from now on arrive.
        virtual void on_subscribed(SubscribeSocket&, const FidRange&) {}
        // The subscription of these fids has ended. This is the last call in which arrivals() has
        // their counters.
        virtual void on_unsubscribed(SubscribeSocket&, const FidRange&) {}
        // The publisher refused, because the limit of ranges of a subscriber is reached. The fids
        // are not wanted any more.
        virtual void on_subscription_refused(SubscribeSocket&, const FidRange&) {}
        // The publisher refused to unsubscribe these fids, because of the same limit. They stay
        // subscribed.
        virtual void on_unsubscription_refused(SubscribeSocket&, const FidRange&) {}
        // The publisher refused, because the requested policy would block it longer than its own
        // policy does.
        virtual void on_policy_refused(SubscribeSocket& socket, const FidRange& range) {
            on_subscription_refused(socket, range);
        }
        // The publisher refused, because the key does not permit these fids, or not with this
        // policy.
        virtual void on_subscription_not_permitted(SubscribeSocket& socket, const FidRange& range) {
            on_subscription_refused(socket, range);
        }
        // The bytes are valid during the call only.
        virtual void on_message(SubscribeSocket&, Fid fid, std::span<const std::byte> message,
                                std::uint8_t status) = 0;
        // With `whole_pages`: instead of on_message. The page is valid during the call only.
        virtual void on_page(SubscribeSocket&, const netio::PageView& /*page*/) {}
        // The publisher dropped `count` messages of this fid here in the stream, because this
        // subscriber is too slow.
        virtual void on_gap(SubscribeSocket&, Fid, std::uint64_t /*count*/) {}
        // With `reconnect`: `count` messages of this fid, which was subscribed, were published
        // after the last connection to the same publish socket and did not arrive. Comes before
        // on_subscribed.
        virtual void on_lost_while_disconnected(SubscribeSocket&, Fid, std::uint64_t /*count*/) {}
        // With `reconnect`: another publish socket than in the last connection; its counts start
        // from the beginning. The losses at the end of the former one are known only if it had sent
        // its totals.
        virtual void on_publisher_changed(SubscribeSocket&, const PublisherChange&) {}
        // With `silence_hint`: the publisher has not published these fids so far. Up to 8 ranges at
        // a time, once a minute at most. A publisher of version 0.2 cannot report it.
        virtual void on_nothing_published(SubscribeSocket&, const FidQuery::Near&) {}
        // The publisher has closed in order; arrivals() has the losses. on_closed(orderly) follows.
        virtual void on_totals(SubscribeSocket&) {}
        // The connection ended, or all attempts failed: then detail has the reason of each. With
        // `retrying` the socket retries by itself, and resolves the name again. Without it, the
        // next subscribe() connects again. After close() or abort() this is the last event.
        virtual void on_closed(SubscribeSocket&, const Closed& closed, bool retrying) = 0;

      protected:
        ~Handler() = default;
    };

    // Functions that are called instead of a Handler, as far as they are set. Each may destroy the
    // socket.
    struct Functions {
        // lost_before() is the sum that on_lost has reported since the previous message.
        std::function<void(netio::MessageView message)> on_message{};
        // If set, it is called instead of on_message, with all messages of a page; lost_before() of
        // these is 0.
        std::function<void(const netio::PageView& page)> on_page{};
        // `count` messages of this fid were published and did not arrive: a policy dropped them
        // because this subscriber was too slow, or it was not connected.
        std::function<void(Fid fid, std::uint64_t count)> on_lost{};
        std::function<void()> on_connected{};
        std::function<void(const FidRange& fids)> on_subscribed{};
        // The publisher refuses these fids, for any reason.
        std::function<void(const FidRange& fids)> on_refused{};
        std::function<void(const PublisherChange& change)> on_publisher_changed{};
        std::function<void(const Closed& closed, bool retrying)> on_closed{};
    };
    // Uses the loop's own network (network_of), and the addresses of one publisher. Without
    // options, it reconnects after a connection was lost, until the publisher closes in order.
    SubscribeSocket(EventLoop& loop, AddressList publisher, Functions functions);
    SubscribeSocket(EventLoop& loop, AddressList publisher, Functions functions, Options options);
    // Connects from the loop. Tries all addresses of the publisher and all providers that reach it,
    // the best first. Throws std::invalid_argument for an invalid option.
    SubscribeSocket(Transport& transport, Options options, Handler& handler);
    ~SubscribeSocket();
    SubscribeSocket(const SubscribeSocket&) = delete;
    SubscribeSocket& operator=(const SubscribeSocket&) = delete;

    // Requests the messages of these fids from the publisher, now or as soon as the socket is
    // connected; on_subscribed or a refusal follows. `policy` applies to these fids if this
    // subscriber is too slow; without it, the publisher's policy applies. The last policy for a fid
    // counts.
    void subscribe(const FidRange& range, std::optional<SlowPolicy> policy = {});
    void subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy = {});
    // Also while not connected: then messages of these fids do not count as lost later.
    void unsubscribe(const FidRange& range);
    // As unsubscribe(), for fids that another socket receives for the same user from now on. If
    // they are subscribed here again, messages published since a lost connection count as lost.
    void release(const FidRange& range);
    // Closes in order, permanently. on_closed is the only event that follows.
    void close();
    // Closes at once. on_closed(local) is the only event that follows.
    void abort();

    // Stops reading, from the next message, gap or answer on. Messages wait in the receive buffers,
    // and then at the publisher, which treats this subscriber as slow: by its policy it blocks,
    // drops messages (reported after those that had arrived), or disconnects. The socket stays
    // paused when it has reconnected. on_connected and on_closed are reported; but if the
    // connection ends while messages wait, they and on_closed wait until resume(), close() or
    // abort(). Has no effect after close() or abort().
    void pause();
    // Continues in one of the next turns of the loop.
    void resume();
    bool is_paused() const noexcept;

    // The format of the time stamps of this connection's messages, valid from on_subscribed on. If
    // the connection has time stamps, the 8 bytes of memory before those that on_message gets are
    // the stamp; time_stamp::of() reads it.
    StampFormat stamps() const noexcept;

    // Call it in on_message or on_page, with the message or page, or a part of it. Returns the same
    // bytes, valid until the last copy of the result is destroyed, on any thread, also after this
    // socket is destroyed. 8 KiB or more are not copied: the user keeps the receive buffer, and
    // another one replaces it. If more than Options::session.keep_limit_bytes are kept, the
    // connection receives nothing until the user has destroyed some, and the publisher treats this
    // subscriber as slow.
    KeptBytes keep(std::span<const std::byte> message);
    // The received memory that the user keeps, of the present connection.
    KeepStats kept() const;
    // Whether the kept memory stays within half of keep_limit_bytes if the user keeps one more
    // receive buffer.
    bool may_keep_buffer() const;

    // Since construction; they do not decrease.
    struct Counters {
        std::uint64_t messages = 0; // passed to the handler
        std::uint64_t bytes = 0;    // of those messages
        std::uint64_t connections = 0;
        std::uint64_t pauses = 0;
    };
    const Counters& counters() noexcept;
    // The subscribed fids, with or without an answer yet: disjoint, not adjacent, ascending.
    std::vector<FidRange> wanted() const;
    // The parts of a range whose last subscribe() the publisher has not answered yet. In
    // on_subscribed and on_subscription_refused: the answer there was to an earlier call for these
    // parts, and another one follows.
    std::vector<FidRange> awaited(const FidRange& range) const;
    bool is_connected() const noexcept;
    // The provider in use; valid while connected and in on_closed.
    const std::string& provider() const noexcept;
    // With `reconnect`: the publish socket that accepted the last subscription; 0: none.
    std::uint64_t publisher_instance() const noexcept;
    // With `reconnect`: the positions in the stream of each fid, for a socket that replaces this
    // one.
    std::shared_ptr<ResumeState> resume_state() const;
    // Which kinds of frames have arrived.
    const FramesSeen& seen() const noexcept;
    const ArrivalCounter& arrivals() const noexcept;

  private:
    struct Impl;
    // Checks the thread of the caller.
    Impl& impl(const char* call = __builtin_FUNCTION()) const noexcept;

    class FunctionHandler;
    std::unique_ptr<FunctionHandler> functions_;
    std::unique_ptr<Impl> impl_;
};

// Throws std::invalid_argument, which names the option and the allowed values.
NETIO_EXPORT void validate(const SubscribeSocket::Options& options);

} // namespace netio::pubsub::inline v0_3
