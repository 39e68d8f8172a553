// SPDX-License-Identifier: Apache-2.0
#pragma once

// Subscribes to fids at any number of publishers: those with configured addresses, and those that
// are found on a bus, now or later. Each has a connection of its own, which reconnects by itself.
//
//     struct Handler final : pubsub::Subscriptions::Handler {
//         void on_message(pubsub::Subscriptions&, const pubsub::Subscriptions::Source& source,
//                         pubsub::Fid fid, std::span<const std::byte> message,
//                         std::uint8_t status) override;
//     } handler;
//     const auto bus = pubsub::open_bus(loop, "/run/netio/bus");
//     pubsub::Subscriptions all{*transport, {.bus = bus.get()}, handler};
//     all.subscribe(pubsub::FidRange{pubsub::Fid{0}, pubsub::Fid{63}});
//     loop.run();
//
// A configured publisher is asked for all wanted fids. A publisher on a bus is asked for the fids
// that it announces; if two announce the same fid, the first is asked, and the other if the first
// is gone or cannot be reached. Each message is received or reported as lost, except the last
// messages of a publisher that ended without sending its totals; Ending::complete and
// PublisherStats::unknown_tails report that. Belongs to the loop's thread; may be destroyed in any
// of its handlers.

#include "netio/base/address_list.hpp"
#include "netio/base/export.hpp"
#include "pubsub/core/account.hpp"
#include "pubsub/core/subscriptions_snapshot.hpp"
#include "pubsub/discovery/discovery.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class NETIO_EXPORT Subscriptions final {
  public:
    struct Options {
        AddressList publishers{};
        Discovery* bus = nullptr; // must outlive this object and have no other handler
        // The options of each connection; the addresses of the publisher are filled in. Without
        // `reconnect`, a lost connection is not established again.
        SubscribeSocket::Options socket = {.publisher = {}, .reconnect = true};
        std::size_t publisher_limit = 4096; // connections; others wait for a slot
        // The counters of a publisher that is gone are remembered, so that its losses are reported
        // when it returns to the bus. This limits the fids of all publishers that are gone; at most
        // publisher_limit of these publishers are remembered. The oldest are forgotten first.
        std::size_t remembered_fids_limit = 1000000;
    };
    // With wait_for_publisher: if a publisher on a bus rejects this subscriber permanently, for
    // instance because of its key, it is asked again after this multiple of the socket's
    // retry_limit.
    static constexpr int refused_pause = 10;

    // A current or former publisher.
    struct Source {
        std::string name;     // on the bus, or the address
        std::string address;  // HOST:PORT, the first of those that it announces
        StampFormat stamps{}; // as SubscribeSocket::stamps()
    };

    enum class Refusal : std::uint8_t {
        too_many_ranges, // the publisher's ranges_per_subscriber_limit
        policy,          // the requested policy blocks longer than the publisher's own policy
        not_permitted,   // the key does not permit these fids, or not with this policy
    };
    // The end of a connection, or of an attempt at one.
    struct Ending {
        const Closed& closed;
        bool retrying = false;
        bool complete = false; // the publisher had sent its totals
    };

    // Two publishers that announce the same wanted fids.
    struct Contest {
        const std::string& owner; // is asked for them
        const std::string& other;
        FidRange first;         // the lowest range of them
        std::uint64_t fids = 0; // their number
    };

    class Handler {
      public:
        virtual void on_connected(Subscriptions&, const Source&, const std::string& /*provider*/) {}
        virtual void on_subscribed(Subscriptions&, const Source&, const FidRange&) {}
        virtual void on_unsubscribed(Subscriptions&, const Source&, const FidRange&) {}
        virtual void on_refused(Subscriptions&, const Source&, const FidRange&, Refusal) {}
        // The bytes are valid during the call only.
        virtual void on_message(Subscriptions&, const Source&, Fid fid,
                                std::span<const std::byte> message, std::uint8_t status) = 0;
        // As in SubscribeSocket::Handler.
        virtual void on_gap(Subscriptions&, const Source&, Fid, std::uint64_t /*count*/) {}
        virtual void on_lost_while_disconnected(Subscriptions&, const Source&, Fid,
                                                std::uint64_t /*count*/) {}
        virtual void on_publisher_changed(Subscriptions&, const Source&, const PublisherChange&) {}
        virtual void on_nothing_published(Subscriptions&, const Source&, const FidQuery::Near&) {}
        virtual void on_closed(Subscriptions&, const Source&, const Ending&) {}
        // Two publishers announce the same fids. Reported once for a changed announcement, for up
        // to 32 owners.
        virtual void on_contest(Subscriptions&, const Contest&) {}
        // A problem of the bus, one line for people. Connections are not affected.
        virtual void on_warning(Subscriptions&, const std::string& /*what*/) {}
        // After close(), the last event. Otherwise: no publisher is left that could reconnect, or
        // all have rejected permanently; the next subscribe() asks them again.
        virtual void on_ended(Subscriptions&) {}

      protected:
        ~Handler() = default;
    };

    // Throws std::invalid_argument for an invalid option.
    Subscriptions(Transport& transport, Options options, Handler& handler);
    ~Subscriptions();
    Subscriptions(const Subscriptions&) = delete;
    Subscriptions& operator=(const Subscriptions&) = delete;

    // As SubscribeSocket::subscribe() and unsubscribe(), at every publisher of these fids, now and
    // later.
    void subscribe(const FidRange& range, std::optional<SlowPolicy> policy = {});
    void subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy = {});
    void unsubscribe(const FidRange& range);
    // Pauses all connections, as in SubscribeSocket.
    void pause();
    void resume();
    // In on_message, as SubscribeSocket::keep().
    KeptBytes keep(std::span<const std::byte> message) const;
    // In on_message, as SubscribeSocket::may_keep_buffer().
    bool may_keep_buffer() const;
    // In on_subscribed and on_refused, as SubscribeSocket::awaited().
    std::vector<FidRange> awaited(const FidRange& range) const;
    // Closes all connections in order; on_ended follows. Messages that have not arrived by now are
    // not counted as lost, so the losses are known even if a publisher does not confirm the end.
    void close();

    // The statistics of one publisher address, over all its connections.
    struct PublisherStats {
        Source source;
        bool connected = false;
        std::string provider; // of the last connection
        FramesSeen seen;
        FidMap<Account::Row> fids;
        Account::Row others; // sum of the fids beyond SubscribeSocket::Options::fid_limit
        std::uint64_t connections = 0;
        std::uint64_t changes = 0; // of the publisher at the address
        // Publishers that ended without totals, and the current one while it is away or has not
        // accepted the former subscriptions again.
        std::uint64_t unknown_tails = 0;
        bool complete = false; // the last one has sent its totals
    };
    // One entry for each publisher, also for those that are gone and remembered, and one without a
    // name for the sum of the forgotten ones.
    std::vector<PublisherStats> publisher_stats() const;
    // The sums over all publishers.
    struct Sums {
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
    };
    Sums sums() const;
    // The statistics at this moment, for display, with up to `fids` fids; calls with the same
    // number show the same fids. The cost grows with the number of publishers and of shown fids.
    SubscriptionsSnapshot snapshot(std::size_t fids = 1000);
    std::size_t connected_count() const noexcept;
    // Calls visit() for each current connection.
    void for_each(const std::function<void(const Source&, SubscribeSocket&)>& visit);

  private:
    struct Impl;
    // Checks the thread of the caller.
    Impl& impl(const char* call = __builtin_FUNCTION()) const noexcept;

    std::unique_ptr<Impl> impl_;
};

} // namespace netio::pubsub::inline v0_3
