// SPDX-License-Identifier: Apache-2.0
#pragma once

// The exit status of a subscription. No I/O.

#include "apps/common/report.hpp"

namespace apps::subscribe {

struct Asked {
    bool messages = false; // a number of messages
    bool duration = false; // a duration
    bool sound = false;    // all messages and no others: verified or recorded
};

ExitStatus outcome(const SubscribeReport& report, const Asked& asked);

// Returns whether all messages of a fid arrived and no others, as far as is known. `counts` has the
// faults that were found in its messages, if they were verified.
bool is_whole(netio::pubsub::Fid fid, const SubscribeReport& report, const PatternCounts& counts);

} // namespace apps::subscribe
