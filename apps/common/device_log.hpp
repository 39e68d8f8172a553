// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program that runs for long says of the RDMA devices of its machine: a port that goes down
// or comes up, a device that fails. Belongs to the loop's thread.

#include "apps/common/limited_log.hpp"
#include "netio/device_watch.hpp"

#include <string>

namespace apps {

// A line about it.
std::string line_of(const netio::DeviceEvent& event);

class DeviceLog {
  public:
    explicit DeviceLog(netio::EventLoop& loop);

  private:
    void note(const netio::DeviceEvent& event);

    LimitedLog information_;
    LimitedLog warnings_;
    netio::DeviceWatch watch_;
};

} // namespace apps
