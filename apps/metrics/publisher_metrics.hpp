// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a publisher and a subscriber show. No I/O.

#include "apps/metrics/exposition.hpp"
#include "pubsub/core/publication_outcome.hpp"
#include "pubsub/core/subscriptions_snapshot.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <cstdint>
#include <string>

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

void write(const netio::pubsub::SubscriptionsSnapshot& subscriber, Exposition& text);

} // namespace apps
