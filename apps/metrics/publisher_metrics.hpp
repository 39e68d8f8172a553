// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a publisher and a subscriber show. No I/O.

#include "apps/metrics/exposition.hpp"
#include "pubsub/core/publication_outcome.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace apps {

// What became of publications whose memory was lent, in subscribers.
struct OutcomeSums {
    std::uint64_t sent = 0;
    std::uint64_t missed = 0;
    std::uint64_t unsubscribed = 0;
    std::uint64_t lost = 0;

    void add(const netio::pubsub::PublicationOutcome& outcome) noexcept {
        sent += outcome.sent;
        missed += outcome.missed;
        unsubscribed += outcome.unsubscribed;
        lost += outcome.lost;
    }
};

struct PublisherFigures {
    std::string unit; // of its pool: bytes, or publications
    netio::pubsub::Publisher::Counters counters;
    netio::pubsub::PublisherSnapshot snapshot;
    std::uint64_t disconnected = 0; // subscribers that did not leave in order
    OutcomeSums outcomes{};         // unbuffered
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
