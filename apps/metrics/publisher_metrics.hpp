// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a publisher and a subscriber show. No I/O.

#include "apps/metrics/exposition.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace apps {

// Peers that did not become subscribers, or did not leave in order.
struct LostPeers {
    std::uint64_t disconnected = 0;
    std::uint64_t rejected = 0;
    std::uint64_t accept_failed = 0;
};

struct PublisherFigures {
    std::string unit; // of its pool: bytes, or publications
    netio::pubsub::Publisher::Counters counters;
    netio::pubsub::PublisherSnapshot snapshot;
    LostPeers lost;
};
void write(const PublisherFigures& publisher, Exposition& text);

struct SubscriptionFigures {
    struct FidRow {
        netio::pubsub::Fid fid{};
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
        std::uint64_t missed = 0;
    };
    std::string publisher;
    netio::pubsub::SubscribeSocket::Counters counters;
    bool connected = false;
    bool paused = false;
    std::uint64_t missed = 0; // that the publisher has said it left out
    std::vector<FidRow> fids; // in ascending order
    std::size_t fid_count = 0;
};
// Of so many fids at most.
SubscriptionFigures figures_of(netio::pubsub::SubscribeSocket& socket, std::size_t fids);
// Of several publishers.
void write(std::span<const SubscriptionFigures> subscribers, Exposition& text);
inline void write(const SubscriptionFigures& subscriber, Exposition& text) {
    write(std::span{&subscriber, 1}, text);
}

} // namespace apps
