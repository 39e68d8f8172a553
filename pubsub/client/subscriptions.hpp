// SPDX-License-Identifier: Apache-2.0
#pragma once

// Subscribes to fids at any number of publishers: those whose addresses are given, and those that
// are found on a bus, now or later. Each has a connection of its own that comes back by itself.
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
// A publisher whose address is given is asked for all that is wanted. One that was found is asked
// for those fids that it announces; if two announce one, the first has it, and when that one is
// gone or cannot be reached the other. Each message is received, told missing, or of a publisher
// said to have ended with an unknown tail. Belongs to the loop's thread; may be destroyed in any of
// its handlers.

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

namespace netio::pubsub::inline v0_2 {

class NETIO_EXPORT Subscriptions final {
  public:
    struct Options {
        AddressList publishers{};
        Discovery* bus = nullptr; // must outlive it, and nobody else watches it
        // Of each connection; the publisher's addresses do not count. Without `reconnect` a
        // connection that was lost is not made again.
        SubscribeSocket::Options socket = {.publisher = {}, .reconnect = true};
        std::size_t publisher_limit = 4096; // connections; others wait for a place
        // A publisher that is gone from the bus and comes back goes on in its books: what was
        // missed is told. So many fids of publishers that are gone are remembered, together, and as
        // many publishers as there may be connections; who was gone first is forgotten first.
        std::size_t remembered_fids_limit = 1000000;
    };
    // One that was found and refuses for good (it does not admit the key, for instance) is asked
    // again after so many times the socket's retry_limit; not without wait_for_publisher.
    static constexpr int refused_pause = 10;

    // A publisher that is or was there.
    struct Source {
        std::string name;    // on the bus, or the address
        std::string address; // HOST:PORT, the first of those that it announces
    };

    enum class Refusal : std::uint8_t {
        no_room,       // the publisher's ranges_per_subscriber_limit
        policy,        // it would hold the publisher up more than its own does
        not_permitted, // the key does not permit these fids, or not with this policy
    };
    // The end of a connection, or of an attempt at one.
    struct Ending {
        const Closed& closed;
        bool retrying = false;
        bool complete = false; // the publisher had told its totals
    };

    // Two publishers that announce the same fids, of those that are wanted.
    struct Contest {
        const std::string& owner; // whom they are asked of
        const std::string& other;
        FidRange first;         // the lowest of them
        std::uint64_t fids = 0; // how many there are
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
        // As SubscribeSocket::Handler's.
        virtual void on_gap(Subscriptions&, const Source&, Fid, std::uint64_t /*count*/) {}
        virtual void on_missed(Subscriptions&, const Source&, Fid, std::uint64_t /*count*/) {}
        virtual void on_publisher_changed(Subscriptions&, const Source&, const PublisherChange&) {}
        virtual void on_nothing_published(Subscriptions&, const Source&, const FidQuery::Near&) {}
        virtual void on_closed(Subscriptions&, const Source&, const Ending&) {}
        // Two publishers announce the same fids; once for what an announcement changes, and of up
        // to 32 owners.
        virtual void on_contest(Subscriptions&, const Contest&) {}
        // With the bus; a line for people. Data goes on.
        virtual void on_trouble(Subscriptions&, const std::string& /*what*/) {}
        // After close() the last event. Else no publisher is left that could come back, or all
        // refuse for good: they are asked again with the next subscribe().
        virtual void on_ended(Subscriptions&) {}

      protected:
        ~Handler() = default;
    };

    // Throws std::invalid_argument: an option.
    Subscriptions(Transport& transport, Options options, Handler& handler);
    ~Subscriptions();
    Subscriptions(const Subscriptions&) = delete;
    Subscriptions& operator=(const Subscriptions&) = delete;

    void subscribe(const FidRange& range, std::optional<SlowPolicy> policy = {});
    void subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy = {});
    void unsubscribe(const FidRange& range);
    // All connections, as SubscribeSocket's.
    void pause();
    void resume();
    // Ends all connections in order: on_ended follows. What has not arrived by now is not wanted,
    // so the account is known also where a publisher does not confirm it.
    void close();

    // Of one publisher address, over all its connections.
    struct Told {
        Source source;
        bool connected = false;
        std::string provider; // of the last connection
        FramesSeen seen;
        FidMap<Account::Row> fids;
        Account::Row others; // of fids beyond SubscribeSocket::Options::fid_limit, all together
        std::uint64_t connections = 0;
        std::uint64_t changes = 0; // of the publisher there
        // Publishers that ended and had not told how much they published, and this one as long as
        // that is not known: it is away, or has not granted again what it had.
        std::uint64_t unknown_tails = 0;
        bool complete = false; // the last one has told its totals
    };
    std::vector<Told> told() const;
    struct Sums {
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
    };
    Sums sums() const;
    // The same at a moment, to be shown: of so many fids at most, and of the same ones each time
    // for who asks for the same number. It takes as long as the number of publishers and of fids
    // shown allows.
    SubscriptionsSnapshot snapshot(std::size_t fids = 1000);
    std::size_t connected_count() const noexcept;
    // The sockets that there are now.
    void for_each(const std::function<void(const Source&, SubscribeSocket&)>& visit);

  private:
    struct Impl;
    // Checks the thread of the caller.
    Impl& impl(const char* call = __builtin_FUNCTION()) const noexcept;

    std::unique_ptr<Impl> impl_;
};

} // namespace netio::pubsub::inline v0_2
