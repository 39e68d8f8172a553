// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publish_loop.hpp"

#include <algorithm>
#include <utility>

namespace apps {

std::unique_ptr<ServedKeys> serve_keys(netio::EventLoop& loop, PublisherConfig& config) {
    auto served =
        told_at(config, "keys", [&] { return std::make_unique<ServedKeys>(loop, config.keys); });
    config.buffered_options.publisher.keys = served->keys();
    config.unbuffered_options.publisher.keys = served->keys();
    return served;
}

PublishLoop::PublishLoop(const Options& options, const PublishArguments& arguments,
                         std::function<void()> on_ended)
    : options_{options}, arguments_{arguments}, loop_{options.loop}, observer_{loop_},
      publishers_{options.publishers}, budget_{options.messages}, on_ended_{std::move(on_ended)} {}

void PublishLoop::open() {
    for (PublisherConfig& config : publishers_) {
        served_.push_back(serve_keys(loop_, config));
    }
    transport_ = netio::open_fabric(loop_, options_.fabric);
    for (const PublisherConfig& config : publishers_) {
        runs_.push_back(std::make_unique<PublishRun>(loop_, *transport_, config, arguments_,
                                                     budget_, [this] { ended(); }));
        PublisherConfig found = config;
        found.metrics.listen = runs_.back()->metrics_address(); // with the port that it got
        places_.push_back(announce_publisher(loop_, found, runs_.back()->endpoints()));
    }
    running_ = runs_.size();
}

void PublishLoop::start() {
    for (const auto& run : runs_)
        run->start_when_ready();
}

void PublishLoop::end(std::string_view why) {
    for (const auto& run : runs_)
        run->end(why);
}

void PublishLoop::ended() {
    if (--running_ == 0) on_ended_();
}

bool PublishLoop::has_failed() const {
    return std::ranges::any_of(runs_, [](const auto& run) { return run->has_failed(); });
}

LiveDisplay::Sums PublishLoop::sums() const {
    LiveDisplay::Sums sums;
    for (const auto& run : runs_) {
        sums.messages += run->counters().messages;
        sums.bytes += run->counters().bytes;
    }
    return sums;
}

std::vector<PublishReport> PublishLoop::reports() const {
    std::vector<PublishReport> reports;
    for (const auto& run : runs_)
        reports.push_back(run->report());
    return reports;
}

} // namespace apps
