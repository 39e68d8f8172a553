// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a server says of peers, who decide how often there is something to say: of each kind so many
// lines an interval (apps/common/limited_log.hpp). Belongs to the loop's thread.

#include "apps/common/limited_log.hpp"

namespace apps {

class PeerLog {
  public:
    // The program's log.
    explicit PeerLog(netio::EventLoop& loop);
    PeerLog(netio::EventLoop& loop, const LimitedLog::Write& info, const LimitedLog::Write& warning,
            const LimitedLog::Write& error)
        : info_{loop, info}, warnings_{loop, warning}, errors_{loop, error} {}

    void info(std::string line) { info_.note(std::move(line)); }
    void warn(std::string line) { warnings_.note(std::move(line)); }
    void error(std::string line) { errors_.note(std::move(line)); }

  private:
    LimitedLog info_;
    LimitedLog warnings_;
    LimitedLog errors_;
};

} // namespace apps
