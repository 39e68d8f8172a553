// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program that serves others says of peers that it could not accept. They may try again
// several times a second for as long as the shortage lasts, so one line each interval says how many
// there were and what happened to the last. Belongs to the loop's thread.

#include "apps/common/limited_log.hpp"
#include "netio/base/status.hpp"

#include <string>

namespace apps {

class AcceptFailureLog {
  public:
    // Warnings of the program's log.
    explicit AcceptFailureLog(netio::EventLoop& loop);
    AcceptFailureLog(netio::EventLoop& loop, LimitedLog::Write write);

    void note(const std::string& peer_address, const netio::FabricError& why);

  private:
    LimitedLog log_;
};

} // namespace apps
