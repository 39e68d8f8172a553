// SPDX-License-Identifier: Apache-2.0
#pragma once

// Notifies the loop's observer when a subscriber has made no progress for
// SlowWatch::reported_after, and when it makes progress again. Private to pubsub/publisher.

#include "netio/base/observer.hpp"
#include "netio/session/session.hpp"
#include "pubsub/core/slow_watch.hpp"

namespace netio::pubsub::inline v0_2 {

// `before`: how long it had been idle by then.
inline void tell_observer(Observer* observer, const Session& session, Duration before,
                          const Idleness& now) {
    const bool was_reported = SlowWatch::is_reported(before);
    if (observer == nullptr || was_reported == SlowWatch::is_reported(now.time)) return;
    if (was_reported) {
        observer->on_peer_recovered({.peer = session.peer_address(), .stalled = before});
    } else {
        observer->on_peer_stalled({.peer = session.peer_address(),
                                   .stalled = now.time,
                                   .holds_up_publisher = now.waited_for});
    }
}

} // namespace netio::pubsub::inline v0_2
