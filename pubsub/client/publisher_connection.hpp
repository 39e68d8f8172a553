// SPDX-License-Identifier: Apache-2.0
#pragma once

// One of the publishers of a Subscriptions: its socket, its statistics over all connections, and
// whether the announced process answers.

#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_assignment.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/frame_receiver.hpp"
#include "pubsub/core/subscriptions_snapshot.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Whether the process that answers at an address is the one that the bus announced. The address
// does not prove it: after a publisher was killed, another one may get its port and accept
// subscriptions. The instance numbers of the bus and of the publish socket cannot be compared, but
// a new process changes both. No I/O.
class AnnouncedProcess {
  public:
    // Call it when the bus announces this instance.
    void announce(std::uint64_t instance) noexcept {
        expired_ = false;
        if (instance_ && *instance_ != instance) {
            // The new instance answers already, or will answer.
            expected_ = !another_;
            another_ = false;
        }
        instance_ = instance;
    }
    // Call it when the announcement has expired.
    void expire() noexcept { expired_ = true; }
    // Call it when the publisher's address may have changed.
    void move() noexcept {
        expected_ = expected_ || another_;
        another_ = false;
        expired_ = false;
    }
    // Call it when another publish socket answers than before.
    void change() noexcept {
        another_ = !expected_;
        expected_ = false;
    }

    bool is_expired() const noexcept { return expired_; }
    // Whether another process answers than the one that was announced last.
    bool is_another() const noexcept { return another_; }
    // Whether the announcement has expired, and another process answers in its place.
    bool is_replaced() const noexcept { return expired_ && another_; }

  private:
    std::optional<std::uint64_t> instance_; // of the last announcement
    bool expired_ = false;
    bool expected_ = false; // a change is expected, because another instance was announced
    bool another_ = false;  // the answering process was not announced
};

// Adds a row to the statistics of ShownFids.
void add_row(ReceivedFidSnapshot& sum, Fid fid, const Account::Row& row);

class PublisherConnection;
using PublisherConnections = std::map<PublisherId, std::unique_ptr<PublisherConnection>>;

class PublisherConnection final : private SubscribeSocket::Handler {
  public:
    class Owner {
      public:
        // May destroy the connection. `reached`: the end of a connection, not of an attempt.
        virtual void on_closed(PublisherConnection& connection, const Subscriptions::Ending& ending,
                               bool reached) = 0;

        virtual void on_connected(PublisherConnection& connection) = 0;
        // The instance of its publish socket is known now, or has changed: it has accepted its
        // first subscription. Returns false if the connection was destroyed.
        virtual bool on_identified(PublisherConnection& connection) = 0;

      protected:
        ~Owner() = default;
    };
    // The recipient of all events.
    struct User {
        Subscriptions& subscriptions;
        Subscriptions::Handler& handler;
        SubscribeSocket*& delivering; // of the message or the answer that the handler is given
    };

    // `addresses`: at least one HOST:PORT; tried in order.
    PublisherConnection(PublisherId id, const std::string& name, std::vector<std::string> addresses,
                        Owner& owner, const User& user)
        : id_{id}, source_{.name = name, .address = addresses.front()},
          addresses_{std::move(addresses)}, owner_{owner}, user_{user} {}

    ~PublisherConnection() {
        if (user_.delivering == socket_.get()) user_.delivering = nullptr;
    }
    PublisherConnection(const PublisherConnection&) = delete;
    PublisherConnection& operator=(const PublisherConnection&) = delete;

    PublisherId id() const noexcept { return id_; }
    const Subscriptions::Source& source() const noexcept { return source_; }
    const std::vector<std::string>& addresses() const noexcept { return addresses_; }

    // Connects if it has no socket. Events may follow.
    void open(Transport& transport, const SubscribeSocket::Options& options);
    // Closes the socket; no events follow. Its statistics remain. The next attempt begins `further`
    // addresses later.
    void leave(std::size_t further = 0);
    // Changes its identity; an existing socket stays connected.
    void become(PublisherId id, const std::string& name, std::vector<std::string> addresses);
    // Returns true once if become() was called while its end was still to be reported: after that
    // it is left and opened at the new addresses.
    bool take_moved() noexcept { return std::exchange(moved_, false); }
    // Call it when the user has unsubscribed: messages of fids that were not granted again since a
    // lost connection do not count as lost.
    void forget(const FidRange& range);
    bool was_connected() const noexcept { return account_.connections() > 0; }
    // Number of fids that it has statistics of.
    std::size_t known_fids() const noexcept;
    SubscribeSocket* socket() noexcept { return socket_.get(); } // nullptr: not opened
    bool is_connected() const noexcept { return socket_ && socket_->is_connected(); }
    // Whether the connection has ended while the user has paused: its messages and its end are
    // still to be reported.
    bool has_unreported_end() const noexcept { return open_ && !is_connected(); }
    bool is_finished() const noexcept { return finished_; } // no events follow

    // A publisher whose announcement has expired stays as long as its connection.
    AnnouncedProcess process;

    Subscriptions::PublisherStats publisher_stats() const;
    // Adds nothing if it was never tried.
    void add_to(SubscriptionsSnapshot& all, ShownFids<ReceivedFidSnapshot>& shown) const;
    RemotePublisherSnapshot snapshot() const;

  private:
    // The statistics of former sockets.
    struct Past {
        FramesSeen seen;
        Subscriptions::Sums sums;
        std::uint64_t gaps = 0;
        std::uint64_t pauses = 0;
        bool complete = false; // of the last socket
        std::shared_ptr<ResumeState> resume_state;
    };

    std::shared_ptr<ResumeState> resume_state() const; // nullptr: never opened

    void on_connected(SubscribeSocket& socket) override;
    void on_subscribed(SubscribeSocket& socket, const FidRange& range) override;
    void on_unsubscribed(SubscribeSocket& socket, const FidRange& range) override;
    void on_subscription_refused(SubscribeSocket& socket, const FidRange& range) override;
    void on_policy_refused(SubscribeSocket& socket, const FidRange& range) override;
    void on_subscription_not_permitted(SubscribeSocket& socket, const FidRange& range) override;
    void refuse(SubscribeSocket& socket, const FidRange& range, Subscriptions::Refusal refusal);
    void on_message(SubscribeSocket& socket, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override;
    void on_gap(SubscribeSocket& socket, Fid fid, std::uint64_t count) override;
    void on_lost_while_disconnected(SubscribeSocket& socket, Fid fid, std::uint64_t count) override;
    void on_publisher_changed(SubscribeSocket& socket, const PublisherChange& change) override;
    void on_nothing_published(SubscribeSocket& socket, const FidQuery::Near& near) override;
    void on_closed(SubscribeSocket& socket, const Closed& closed, bool retrying) override;

    PublisherId id_;
    Subscriptions::Source source_;
    std::vector<std::string> addresses_;
    std::size_t first_ = 0; // index of the address to try first
    Owner& owner_;
    User user_;
    Account account_;
    Past past_;
    std::string provider_;
    std::uint64_t reported_instance_ = 0; // the publish socket that was reported
    bool finished_ = false;
    bool open_ = false;
    bool moved_ = false;
    std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true); // ends with it
    std::unique_ptr<SubscribeSocket> socket_;
};

} // namespace netio::pubsub::inline v0_3
