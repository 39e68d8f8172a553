// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loop of `netio publish` with all that belongs to it: its publishers, their network, their keys,
// and their places on the bus. Another loop shares none of it.

#include "apps/common/keys.hpp"
#include "apps/common/live_display.hpp"
#include "apps/common/log_observer.hpp"
#include "apps/publish/bus_place.hpp"
#include "apps/publish/publish_run.hpp"
#include "netio/fabric.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace apps {

// Gives a publisher the keys that its configuration names. Throws ConfigError.
std::unique_ptr<ServedKeys> serve_keys(netio::EventLoop& loop, PublisherConfig& config);

class PublishLoop {
  public:
    struct Options {
        netio::EventLoop::Options loop;
        netio::FabricOptions fabric;
        std::vector<PublisherConfig> publishers;
        std::uint64_t messages = UINT64_MAX; // of all of them; then they end
    };

    // `on_ended` is called once all publishers have ended, with the loop running. The options and
    // the arguments must outlive it.
    PublishLoop(const Options& options, const PublishArguments& arguments,
                std::function<void()> on_ended);

    netio::EventLoop& loop() noexcept { return loop_; }
    // Makes the publishers, and what threads they need. Throws what the sockets' constructors
    // throw.
    void open();
    // Those that have their subscribers begin; the others do so when they come.
    void start();
    // Begins the end of all, if it has not begun.
    void end(std::string_view why);

    bool has_failed() const;
    LiveDisplay::Sums sums() const;
    // One for each publisher.
    std::vector<PublishReport> reports() const;

  private:
    void ended();

    const Options& options_;
    const PublishArguments& arguments_;
    netio::EventLoop loop_;
    LogObserver observer_;
    std::vector<std::unique_ptr<ServedKeys>> served_;
    std::vector<PublisherConfig> publishers_; // go before the loop, as keys must
    std::unique_ptr<netio::Transport> transport_;
    PublishBudget budget_;
    std::function<void()> on_ended_;
    std::vector<std::unique_ptr<PublishRun>> runs_;
    std::vector<std::unique_ptr<BusPlace>> places_; // null: not announced
    std::size_t running_ = 0;
};

} // namespace apps
