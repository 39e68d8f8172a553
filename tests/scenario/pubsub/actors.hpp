// SPDX-License-Identifier: Apache-2.0
#pragma once

// Publishers and subscribers that record what they have seen, for scenarios.

#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace netio::pubsub::test {

// A message identifies itself: its number, and a body that follows from fid, number and size.
inline std::vector<std::byte> make_message(Fid fid, std::uint64_t number, std::size_t size) {
    std::vector<std::byte> message(std::max<std::size_t>(size, 8));
    std::memcpy(message.data(), &number, 8);
    for (std::size_t i = 8; i < message.size(); ++i)
        message[i] = static_cast<std::byte>(to_integer(fid) + number * 31 + i);
    return message;
}

struct Arrived {
    std::uint64_t number = 0;
    std::size_t size = 0;
    std::uint8_t status = 0;
    bool intact = false;
};

class SubscriberActor final : public SubscribeSocket::Handler {
  public:
    void on_connected(SubscribeSocket& socket) override {
        ++connected;
        if (at_connected) at_connected(socket);
    }
    void on_subscribed(SubscribeSocket& socket, const FidRange& range) override {
        subscribed.push_back(range);
        if (at_subscribed) at_subscribed(socket);
    }
    void on_unsubscribed(SubscribeSocket& socket, const FidRange& range) override {
        unsubscribed.push_back(range);
        if (at_unsubscribed) at_unsubscribed(socket);
    }
    void on_subscription_refused(SubscribeSocket& socket, const FidRange& range) override {
        refused.push_back(range);
        if (at_refused) at_refused(socket);
    }
    void on_unsubscription_refused(SubscribeSocket& socket, const FidRange& range) override {
        unsubscription_refused.push_back(range);
        if (at_unsubscription_refused) at_unsubscription_refused(socket);
    }
    // If not overridden, this is handled by default as a refused subscription.
    void on_subscription_not_permitted(SubscribeSocket& socket, const FidRange& range) override {
        if (at_not_permitted) return at_not_permitted(socket);
        SubscribeSocket::Handler::on_subscription_not_permitted(socket, range);
    }
    void on_policy_refused(SubscribeSocket& socket, const FidRange& range) override {
        policy_refused.push_back(range);
        if (at_policy_refused) at_policy_refused(socket);
    }
    void on_message(SubscribeSocket& socket, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override {
        ++messages;
        Arrived arrived{.number = 0, .size = message.size(), .status = status};
        if (message.size() >= 8) {
            std::memcpy(&arrived.number, message.data(), 8);
            const auto expected = make_message(fid, arrived.number, message.size());
            arrived.intact = std::ranges::equal(expected, message);
        }
        by_fid[fid].push_back(arrived);
        if (at_message) at_message(socket);
    }
    void on_gap(SubscribeSocket& socket, Fid fid, std::uint64_t count) override {
        gaps[fid] += count;
        // The position in the stream where it was reported.
        gap_after[fid].push_back(by_fid[fid].empty() ? 0 : by_fid[fid].back().number + 1);
        gap_counts[fid].push_back(count);
        if (at_gap) at_gap(socket);
    }
    void on_lost_while_disconnected(SubscribeSocket& socket, Fid fid,
                                    std::uint64_t count) override {
        lost_while_disconnected[fid] += count;
        if (at_lost_while_disconnected) at_lost_while_disconnected(socket);
    }
    void on_publisher_changed(SubscribeSocket& socket, const PublisherChange& change) override {
        changes.push_back(change);
        if (at_changed) at_changed(socket);
    }
    void on_nothing_published(SubscribeSocket& socket, const FidQuery::Near& near) override {
        nothing_published.push_back(to_string(near));
        if (at_nothing_published) at_nothing_published(socket);
    }
    void on_totals(SubscribeSocket& socket) override {
        ++totals;
        const ArrivalCounter::Difference difference = socket.arrivals().difference().value();
        lost = difference.lost;
        surplus = difference.surplus;
        // In no test does more arrive than was published.
        EXPECT_EQ(surplus, 0U);
        if (at_totals) at_totals(socket);
    }
    void on_closed(SubscribeSocket& socket, const netio::Closed& why, bool retrying) override {
        closed.push_back(why);
        last_retrying = retrying;
        if (at_closed) at_closed(socket);
    }

    // All messages of a fid have the numbers first, first + 1, ..., and are intact.
    void expect_contiguous(Fid fid, std::uint64_t first, std::size_t count) const {
        const auto found = by_fid.find(fid);
        const std::size_t arrived = found == by_fid.end() ? 0 : found->second.size();
        ASSERT_EQ(arrived, count) << to_string(fid);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(found->second[i].number, first + i) << to_string(fid);
            ASSERT_TRUE(found->second[i].intact) << to_string(fid) << " message " << i;
        }
    }

    int connected = 0;
    int totals = 0;
    std::uint64_t lost = 0;
    std::uint64_t surplus = 0;
    std::size_t messages = 0;
    bool last_retrying = false;
    std::vector<FidRange> subscribed, unsubscribed, refused, policy_refused, unsubscription_refused;
    std::map<Fid, std::vector<Arrived>> by_fid;
    std::map<Fid, std::uint64_t> gaps, lost_while_disconnected;
    std::vector<PublisherChange> changes;
    std::map<Fid, std::vector<std::uint64_t>> gap_after, gap_counts;
    std::vector<netio::Closed> closed;
    std::vector<std::string> nothing_published;
    std::function<void(SubscribeSocket&)> at_nothing_published, at_connected, at_subscribed,
        at_unsubscribed, at_message, at_gap, at_refused, at_policy_refused,
        at_unsubscription_refused, at_not_permitted, at_lost_while_disconnected, at_changed,
        at_totals, at_closed;
};

class PublisherActor final : public PublishSocket::Handler {
  public:
    void on_subscriber_connected(Publisher&, const SubscriberPeer& peer) override {
        ++connected;
        peers.push_back(peer);
        if (at_connected) at_connected();
    }
    void on_subscribing(Publisher&, const SubscriberPeer&, const FidRange& range) override {
        subscribing.push_back(range);
    }
    void on_subscribed(Publisher&, const SubscriberPeer&, const FidRange& range) override {
        subscribed.push_back(range);
        EXPECT_GE(subscribing.size(), subscribed.size()) << "reported before";
        if (at_subscribe) at_subscribe();
    }
    void on_unsubscribed(Publisher&, const SubscriberPeer& peer, const FidRange& range) override {
        (peer.gone ? left_behind : unsubscribed).push_back(range);
        if (at_unsubscribe) at_unsubscribe();
    }
    void on_subscriber_closed(Publisher&, const SubscriberPeer&,
                              const netio::Closed& why) override {
        closed.push_back(why);
        if (at_closed) at_closed();
    }
    void on_writable(Publisher&) override {
        ++room;
        if (at_room) at_room();
    }
    void on_closed(Publisher&, const netio::Closed& why) override {
        ++ended;
        end = why;
        if (at_ended) at_ended();
    }
    void on_publish_completed(PublishSocket&, netio::Cookie key,
                              const PublicationOutcome& outcome) override {
        outcomes[static_cast<std::uint64_t>(key)] = outcome;
        ++completions[static_cast<std::uint64_t>(key)];
        if (at_completed) at_completed(static_cast<std::uint64_t>(key));
    }

    int connected = 0;
    int room = 0;
    int ended = 0; // times that on_closed was called
    netio::Closed end;
    std::vector<SubscriberPeer> peers; // in the order of their arrival
    std::vector<FidRange> subscribing, subscribed, unsubscribed, left_behind;
    std::vector<netio::Closed> closed;
    std::map<std::uint64_t, int> completions; // per key: must be one
    std::map<std::uint64_t, PublicationOutcome> outcomes;
    std::function<void()> at_connected, at_subscribe, at_unsubscribe, at_closed, at_room, at_ended;
    std::function<void(std::uint64_t)> at_completed;
};

inline FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

} // namespace netio::pubsub::test
