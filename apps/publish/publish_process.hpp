// SPDX-License-Identifier: Apache-2.0
#pragma once

// All publishers of one `netio publish`, on one loop or several: from their configuration to the
// report. The first loop is the calling thread's; it has the signals and what is shown meanwhile.

#include "apps/common/exit_status.hpp"
#include "apps/publish/loop_thread.hpp"
#include "apps/publish/publish_loop.hpp"
#include "netio/device_watch.hpp"
#include "netio/loop/signal_watch.hpp"

#include <memory>
#include <vector>

namespace apps {

class PublishProcess {
  public:
    // Throws ConfigError: a publisher cannot be divided so; and what the sockets' constructors
    // throw.
    PublishProcess(const PublishConfig& config, const PublishArguments& arguments);
    PublishProcess(const PublishProcess&) = delete;
    PublishProcess& operator=(const PublishProcess&) = delete;

    ExitStatus run();

  private:
    void interrupt();
    void end_all(std::string_view why);
    void ended(bool failed);
    LiveDisplay::Sums sums() const;
    std::vector<PublishReport> reports() const;

    const PublishConfig& config_;
    const PublishArguments& arguments_;
    const PublishLoop::Options first_options_;
    PublishLoop first_;
    netio::DeviceWatch devices_;
    netio::SignalWatch signals_; // before there are threads, which it keeps the signals from
    std::vector<LiveDisplay::Sums> other_sums_; // as they were told last
    std::vector<std::unique_ptr<LoopThread>> others_;
    std::size_t running_ = 0; // loops
    bool interrupted_ = false;
    bool failed_ = false;
};

} // namespace apps
