// SPDX-License-Identifier: Apache-2.0
#include "tests/world/reported_end.hpp"

#include "tests/support/sim_transport.hpp"

#include <chrono>
#include <string>

namespace netio::world {
namespace {

// The reason blames the peer or the path to it; it needs a fault of one of them or of this side.
bool blames_the_peer(CloseReason reason) {
    return reason == CloseReason::lost || reason == CloseReason::handshake_timeout ||
           reason == CloseReason::failed;
}

} // namespace

void judge_end(Oracle& oracle, std::int64_t device, const ReportedEnd& reported) {
    const auto says = [&] {
        return "process " + std::to_string(reported.process) + " about process " +
               std::to_string(reported.peer) + ": " +
               std::string{to_string(reported.closed.reason)} + ' ' + reported.closed.detail;
    };
    // A process that was busy when it was connected may notice a fault late, also over a slow path.
    const TimePoint from =
        oracle.looked_before(reported.process, reported.since) - std::chrono::seconds{4};
    const auto has = [&](Trouble trouble) {
        return oracle.happened(trouble, reported.process, from) ||
               oracle.happened(trouble, reported.peer, from);
    };
    const bool broken = has(Trouble::broken) || has(Trouble::gone) || has(Trouble::vanished);
    const bool disturbed =
        !oracle.was_free(reported.process, from) || !oracle.was_free(reported.peer, from);
    if (reported.closed.reason == CloseReason::protocol_error) {
        oracle.violate(RuleId::no_protocol_error, says());
    } else if (reported.closed.reason == CloseReason::silent && !broken) {
        // Where only the process itself can answer, it must have been silent for this long.
        const bool can_tell = device != 2;
        const Duration blocked = oracle.blocked_between(reported.process, reported.peer, from);
        const bool given_up = device != 0 && blocked >= test::verbs_profile().retransmission;
        const Duration silence =
            blocked + (can_tell ? Duration{}
                                : oracle.lasted(Trouble::stopped, reported.peer, from) +
                                      oracle.lasted(Trouble::stopped, reported.process, from));
        // A user that takes this long also stops its loop from turning. And a sleeping process
        // cannot tell a pause of its own from its sleep until the planned end of the sleep.
        const bool was_busy = !can_tell && (oracle.happened(Trouble::busy, reported.peer, from) ||
                                            oracle.happened(Trouble::busy, reported.process, from));
        if (silence < reported.dead_after - std::chrono::seconds{1} && !was_busy && !given_up)
            oracle.violate(RuleId::alive_is_not_dead, says());
    } else if (reported.closed.reason == CloseReason::too_slow && !disturbed &&
               !reported.has_history) {
        oracle.violate(RuleId::slow_was_slow, says());
    } else if ((reported.closed.reason == CloseReason::not_admitted && !broken) ||
               (blames_the_peer(reported.closed.reason) && !disturbed)) {
        oracle.violate(RuleId::alive_is_not_dead, says());
    }
}

} // namespace netio::world
