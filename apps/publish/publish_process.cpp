// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publish_process.hpp"

#include "apps/common/end_signals.hpp"
#include "apps/common/live_display.hpp"
#include "apps/common/standard_output.hpp"

#include <algorithm>

namespace apps {

PublishProcess::PublishProcess(netio::EventLoop& loop, netio::Transport& transport,
                               const std::vector<PublisherConfig>& publishers,
                               const PublishArguments& arguments)
    : loop_{loop}, arguments_{arguments}, budget_{arguments.messages.value_or(UINT64_MAX)},
      signals_{loop, end_signals(), [this](int) { interrupt(); }} {
    for (const PublisherConfig& config : publishers) {
        runs_.push_back(std::make_unique<PublishRun>(loop, transport, config, arguments, budget_,
                                                     [this] { ended(); }));
        PublisherConfig found = config;
        found.metrics.listen = runs_.back()->metrics_address(); // with the port that it got
        places_.push_back(announce_publisher(loop, found, runs_.back()->endpoints()));
    }
    running_ = runs_.size();
}

ExitStatus PublishProcess::run() {
    {
        const LiveDisplay display{loop_, live_form(arguments_.json, arguments_.progress), [this] {
                                      LiveDisplay::Sums sums;
                                      for (const auto& run : runs_) {
                                          sums.messages += run->counters().messages;
                                          sums.bytes += run->counters().bytes;
                                      }
                                      return sums;
                                  }};
        for (const auto& run : runs_)
            run->start_when_ready();
        loop_.run();
    }
    std::vector<PublishReport> reports;
    bool failed = false;
    for (const auto& run : runs_) {
        reports.push_back(run->report());
        failed = failed || run->has_failed();
    }
    print_report(arguments_.json ? to_json(reports) + "\n" : to_text(reports));
    return failed ? ExitStatus::failed : ExitStatus::done;
}

// The second one does not wait for subscribers.
void PublishProcess::interrupt() {
    if (interrupted_) return loop_.stop();
    interrupted_ = true;
    for (const auto& run : runs_)
        run->end("interrupted");
}

void PublishProcess::ended() {
    if (--running_ == 0) loop_.stop();
}

} // namespace apps
