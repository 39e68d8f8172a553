// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells the loop's observer of a subscriber that has stalled, or takes something again. Private to
// pubsub/publisher.

#include "netio/base/observer.hpp"
#include "netio/session/session.hpp"
#include "pubsub/core/slow_watch.hpp"

namespace netio::pubsub::inline v0_2 {

// `before`: how long it had been idle by then.
inline void tell_observer(Observer* observer, const Session& session, Duration before,
                          const Idleness& now) {
    const bool had_stalled = before >= SlowWatch::stalled_after;
    if (observer == nullptr || had_stalled == SlowWatch::stalled(now)) return;
    if (had_stalled) {
        observer->on_peer_recovered({.peer = session.peer_address(), .stalled = before});
    } else {
        observer->on_peer_stalled({.peer = session.peer_address()});
    }
}

} // namespace netio::pubsub::inline v0_2
