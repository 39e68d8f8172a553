// SPDX-License-Identifier: Apache-2.0
#pragma once

// What became of a subscription, for those who read the exit status. No I/O.

#include "apps/common/report.hpp"

namespace apps::subscribe {

struct Asked {
    bool messages = false; // for so many
    bool duration = false; // for so long
    bool sound = false;    // for all of it and nothing else: verified or recorded
};

ExitStatus outcome(const SubscribeReport& report, const Asked& asked);

// Whether what came of a fid is all of it and nothing else, as far as anybody knows. `counts`: what
// was found in its messages, if they were verified.
bool is_whole(netio::pubsub::Fid fid, const SubscribeReport& report, const PatternCounts& counts);

} // namespace apps::subscribe
