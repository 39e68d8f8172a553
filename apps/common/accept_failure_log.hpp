// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program that serves others says of peers that it could not accept, and of those that it
// rejected for what they are. They may try again several times a second, so of either kind one line
// each interval says how many there were and what happened to the last. Belongs to the loop's
// thread.

#include "apps/common/limited_log.hpp"
#include "netio/base/status.hpp"

#include <string>

namespace apps {

class AcceptFailureLog {
  public:
    // Warnings of the program's log.
    explicit AcceptFailureLog(netio::EventLoop& loop);
    AcceptFailureLog(netio::EventLoop& loop, const LimitedLog::Write& write);

    void note(const std::string& peer_address, const netio::FabricError& why);
    void rejected(const std::string& peer_address, const std::string& why);

  private:
    LimitedLog log_;
    LimitedLog rejected_;
};

} // namespace apps
