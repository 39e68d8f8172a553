// SPDX-License-Identifier: Apache-2.0
#pragma once

// All publishers of one `netio publish`: from their configuration to the report.

#include "apps/common/exit_status.hpp"
#include "apps/common/keys.hpp"
#include "apps/publish/bus_place.hpp"
#include "apps/publish/publish_run.hpp"
#include "netio/loop/signal_watch.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace apps {

class PublishProcess {
  public:
    // The configurations must outlive it. Throws what the sockets' constructors throw.
    PublishProcess(netio::EventLoop& loop, netio::Transport& transport,
                   const std::vector<PublisherConfig>& publishers,
                   const PublishArguments& arguments);

    ExitStatus run();

  private:
    void interrupt();
    void ended();

    netio::EventLoop& loop_;
    const PublishArguments& arguments_;
    PublishBudget budget_;
    std::vector<std::unique_ptr<PublishRun>> runs_;
    std::vector<std::unique_ptr<BusPlace>> places_; // null: not announced
    std::size_t running_ = 0;
    bool interrupted_ = false;
    netio::SignalWatch signals_;
};

} // namespace apps
