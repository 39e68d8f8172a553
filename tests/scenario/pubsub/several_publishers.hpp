// SPDX-License-Identifier: Apache-2.0
#pragma once

// Publishers that a test announces in its own registry, and a subscriber to all of them.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/key_files.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::pubsub::test {

using netio::Status;
using namespace std::chrono_literals;

// A registry whose entries are set by the test.
class HandBus final : public Discovery {
  public:
    void watch(Handler& handler) override { handler_ = &handler; }
    void unwatch() noexcept override { handler_ = nullptr; }
    bool is_watched() const noexcept { return handler_ != nullptr; }
    Handler& tell() { return *handler_; }

  private:
    Handler* handler_ = nullptr;
};

class SubscriptionsActor final : public Subscriptions::Handler {
  public:
    void on_connected(Subscriptions&, const Subscriptions::Source& source,
                      const std::string&) override {
        connected.push_back(source.name);
    }
    void on_subscribed(Subscriptions&, const Subscriptions::Source& source,
                       const FidRange& range) override {
        subscribed[source.name].push_back(range);
        ++subscriptions;
    }
    void on_refused(Subscriptions&, const Subscriptions::Source&, const FidRange&,
                    Subscriptions::Refusal) override {
        ++refused;
    }
    void on_message(Subscriptions& all, const Subscriptions::Source&, Fid fid,
                    std::span<const std::byte>, std::uint8_t) override {
        ++messages[fid];
        ++message_count;
        if (at_message) at_message(all);
    }
    void on_unsubscribed(Subscriptions&, const Subscriptions::Source&, const FidRange&) override {
        if (at_unsubscribed) at_unsubscribed();
    }
    void on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source&, Fid fid,
                                    std::uint64_t count) override {
        lost_while_disconnected[fid] += count;
    }
    void on_publisher_changed(Subscriptions&, const Subscriptions::Source&,
                              const PublisherChange& change) override {
        changes.push_back(change);
    }
    void on_closed(Subscriptions&, const Subscriptions::Source&,
                   const Subscriptions::Ending& ending) override {
        ++closed;
        retrying = ending.retrying;
        reason = ending.closed.detail;
    }
    void on_contest(Subscriptions&, const Subscriptions::Contest& contest) override {
        contests.push_back(contest.owner + " " + contest.other + " " +
                           std::to_string(contest.fids) + " from " + to_string(contest.first));
    }
    void on_warning(Subscriptions&, const std::string& what) override { troubles.push_back(what); }
    void on_ended(Subscriptions&) override { ++ended; }

    std::vector<std::string> connected, contests, troubles;
    std::map<std::string, std::vector<FidRange>> subscribed;
    std::map<Fid, std::uint64_t> messages, lost_while_disconnected;
    std::vector<PublisherChange> changes;
    std::size_t message_count = 0;
    std::string reason; // of the last end
    int subscriptions = 0;
    int refused = 0;
    int closed = 0;
    int ended = 0;
    bool retrying = false;
    std::function<void(Subscriptions&)> at_message;
    std::function<void()> at_unsubscribed;
};

class SeveralPublishers : public PubSubScenario {
  protected:
    struct Made {
        PublisherActor actor;
        std::unique_ptr<BufferedPublishSocket> socket;
        netio::Address address;
    };
    Made& publisher(const std::optional<netio::Address>& at = {}) {
        Made& made = *made_.emplace_back(std::make_unique<Made>());
        made.socket = std::make_unique<BufferedPublishSocket>(
            transport(),
            BufferedPublishSocket::Options{.publisher = {.listen = {at.value_or(bed.address())},
                                                         .allow_remote_anonymous = true,
                                                         .keys = keys}},
            made.actor);
        made.address = made.socket->endpoints().front().address;
        return made;
    }
    void announce(const std::string& name, const Made& made, const FidRange& fids) {
        Announcement announcement;
        announcement.name = name;
        announcement.instance = 1;
        announcement.fids = {{.fids = fids, .meaning = {}}};
        for (const netio::Address& other : elsewhere)
            announcement.addresses.push_back("tcp:" + to_string(other));
        announcement.addresses.push_back("tcp:" + to_string(made.address));
        bus.tell().on_announced(announcement);
    }
    static Subscriptions::Options options(std::vector<netio::Address> publishers) {
        Subscriptions::Options options;
        options.publishers = std::move(publishers);
        options.socket.retry_interval = 1ms;
        return options;
    }
    void send(Made& made, Fid fid) {
        ASSERT_EQ(publish(*made.socket, fid, 0, 40), Status::ok);
        made.socket->flush();
    }

    HandBus bus;
    std::shared_ptr<ServerKeys> keys;      // for new publishers
    std::vector<netio::Address> elsewhere; // announced before the publisher's own address
    SubscriptionsActor actor;

  private:
    std::vector<std::unique_ptr<Made>> made_;
};

} // namespace netio::pubsub::test
