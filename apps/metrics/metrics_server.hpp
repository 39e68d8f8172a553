// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers GET /metrics and /healthz over HTTP, in threads of its own: whoever reads slowly, or not
// at all, or asks often, holds up nobody but others who ask. For each answer the loop is asked once
// for what is to be shown; where it does not answer in time, the answer is 503.

#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace apps {

class MetricsServer {
  public:
    // Makes the text of what was collected; in any thread, while the loop goes on.
    using Render = std::function<std::string()>;
    // Collects, in the loop, as little and as quickly as it can.
    using Collect = std::function<Render()>;

    struct Options {
        netio::Address address; // port 0: any free one
        bool open = false;      // other machines may reach it, and whoever does may read
        std::chrono::milliseconds patience{2000}; // with the loop
    };

    // Throws std::runtime_error: the address is in use, not of this machine, or such that other
    // machines reach it and that is not said to be meant.
    MetricsServer(netio::EventLoop& loop, const Options& options, Collect collect);
    // Waits for a short time only for those who are being answered.
    ~MetricsServer();
    MetricsServer(const MetricsServer&) = delete;
    MetricsServer& operator=(const MetricsServer&) = delete;

    std::uint16_t port() const noexcept { return port_; }

  private:
    class Desk;
    struct Serving;

    std::shared_ptr<Desk> desk_;
    std::shared_ptr<Serving> serving_;
    std::uint16_t port_ = 0;
};

} // namespace apps
