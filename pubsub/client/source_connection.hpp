// SPDX-License-Identifier: Apache-2.0
#pragma once

// One of the publishers of a Subscriptions: its socket, and the account of what it has brought.

#include "pubsub/client/announced_process.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/assignment.hpp"
#include "pubsub/core/continuity.hpp"
#include "pubsub/core/shown_fids.hpp"
#include "pubsub/core/subscriptions_snapshot.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// For ShownFids.
void add_row(ArrivedFigures& sum, Fid fid, const Account::Row& row);

class SourceConnection final : private SubscribeSocket::Handler {
  public:
    class Owner {
      public:
        // Nothing follows from this connection in this call: it may be destroyed. `reached`: this
        // was the end of a connection, and not of an attempt at one.
        virtual void on_source_closed(SourceConnection& source, const Subscriptions::Ending& ending,
                                      bool reached) = 0;

        virtual void on_source_connected(SourceConnection& source) = 0;
        // Its publish socket is known now, or is another one: the first subscription at it was
        // accepted. False: this connection is gone.
        virtual bool on_source_met(SourceConnection& source) = 0;

      protected:
        ~Owner() = default;
    };
    // Whom to tell what.
    struct User {
        Subscriptions& subscriptions;
        Subscriptions::Handler& handler;
    };

    // It has one address at least, HOST:PORT each, which are tried in order.
    SourceConnection(SourceId id, const std::string& name, std::vector<std::string> addresses,
                     Owner& owner, const User& user)
        : id_{id}, source_{.name = name, .address = addresses.front()},
          addresses_{std::move(addresses)}, owner_{owner}, user_{user} {}

    SourceId id() const noexcept { return id_; }
    const Subscriptions::Source& source() const noexcept { return source_; }
    const std::vector<std::string>& addresses() const noexcept { return addresses_; }

    // Connects, if it has not done so; what comes next may come from it.
    void open(Transport& transport, const SubscribeSocket::Options& options);
    // It is followed no more, nothing comes from it; what it has brought counts. The next attempt
    // begins so many addresses further.
    void leave(std::size_t further = 0);
    // It is known so from now on; a socket that there is goes on where it is.
    void become(SourceId id, const std::string& name, std::vector<std::string> addresses);
    // It has become so while its end was to be told: behind that it is to be left, and opened where
    // it is now. Once.
    bool take_moved() noexcept { return std::exchange(moved_, false); }
    // The user does not want these: what was not granted again since a connection was lost is not
    // missed.
    void forget(const FidRange& range);
    bool was_connected() const noexcept { return account_.connections() > 0; }
    // Of which something is known though it has been left.
    std::size_t known_fids() const noexcept;
    SubscribeSocket* socket() noexcept { return socket_.get(); } // null: not opened
    bool is_connected() const noexcept { return socket_ && socket_->is_connected(); }
    // It has ended, but the user has paused: what has arrived is still to be told, then the end.
    bool is_to_be_told() const noexcept { return open_ && !is_connected(); }
    bool is_finished() const noexcept { return finished_; } // nothing will come any more

    // Whom the bus does not show any more stays as long as its connection does.
    AnnouncedProcess process;

    Subscriptions::Told told() const;
    // Nothing, if it was never tried.
    void add_to(SubscriptionsSnapshot& snapshot, ShownFids<ArrivedFigures>& shown) const;
    SourceFigures figures() const;

  private:
    // Of the sockets before this one.
    struct Past {
        FramesSeen seen;
        Subscriptions::Sums sums;
        std::uint64_t gaps = 0;
        std::uint64_t pauses = 0;
        bool complete = false; // the last one
        std::shared_ptr<Continuity> continuity;
    };

    std::shared_ptr<Continuity> continuity() const; // null: it was never opened

    void on_connected(SubscribeSocket& socket) override;
    void on_subscribed(SubscribeSocket& socket, const FidRange& range) override;
    void on_unsubscribed(SubscribeSocket& socket, const FidRange& range) override;
    void on_subscription_refused(SubscribeSocket& socket, const FidRange& range) override;
    void on_policy_refused(SubscribeSocket& socket, const FidRange& range) override;
    void on_subscription_not_permitted(SubscribeSocket& socket, const FidRange& range) override;
    void on_message(SubscribeSocket& socket, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override;
    void on_gap(SubscribeSocket& socket, Fid fid, std::uint64_t count) override;
    void on_missed(SubscribeSocket& socket, Fid fid, std::uint64_t count) override;
    void on_publisher_changed(SubscribeSocket& socket, const PublisherChange& change) override;
    void on_nothing_published(SubscribeSocket& socket, const FidQuery::Near& near) override;
    void on_closed(SubscribeSocket& socket, const Closed& closed, bool retrying) override;

    SourceId id_;
    Subscriptions::Source source_;
    std::vector<std::string> addresses_;
    std::size_t first_ = 0; // of the addresses: the one to be tried first
    Owner& owner_;
    User user_;
    Account account_;
    Past past_;
    std::string provider_;
    std::uint64_t met_ = 0; // the publish socket that was told
    bool finished_ = false;
    bool open_ = false;
    bool moved_ = false;
    std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true); // ends with it
    std::unique_ptr<SubscribeSocket> socket_;
};

} // namespace netio::pubsub::inline v0_2
