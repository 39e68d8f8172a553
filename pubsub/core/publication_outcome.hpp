// SPDX-License-Identifier: Apache-2.0
#pragma once

// The outcome of an unbuffered publication: how many of the subscribers that had subscribed to its
// fid when it was published received it. No I/O.

#include "netio/base/require_cxx20.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_3 {

struct PublicationOutcome {
    std::uint32_t sent = 0;         // the whole message was sent
    std::uint32_t dropped = 0;      // dropped by their policy; reported to them as a gap
    std::uint32_t unsubscribed = 0; // before it was sent to them (try_publish)
    // The session ended before all of it was known to be sent. If only the acknowledgement was
    // lost, the subscriber has received it.
    std::uint32_t lost = 0;

    std::uint32_t subscribers() const noexcept { return sent + dropped + unsubscribed + lost; }
    bool sent_to_all() const noexcept { return sent == subscribers(); }

    friend bool operator==(const PublicationOutcome&, const PublicationOutcome&) = default;
};

// The outcome for one subscriber.
enum class Fate : std::uint8_t { sent, dropped, unsubscribed, lost };

inline void count(PublicationOutcome& outcome, Fate fate) noexcept {
    switch (fate) {
    case Fate::sent:
        ++outcome.sent;
        break;
    case Fate::dropped:
        ++outcome.dropped;
        break;
    case Fate::unsubscribed:
        ++outcome.unsubscribed;
        break;
    case Fate::lost:
        ++outcome.lost;
        break;
    }
}

} // namespace netio::pubsub::inline v0_3
