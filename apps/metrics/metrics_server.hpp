// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers GET /metrics and /healthz over HTTP, in a thread of its own, where nobody holds up
// anybody by asking slowly, or much, or by reading nothing. The loop is asked once for what is to
// be shown to all who ask at the same time; where it does not answer in time, the answer is 503.

#include "apps/metrics/http_door.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

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
    ~MetricsServer();
    MetricsServer(const MetricsServer&) = delete;
    MetricsServer& operator=(const MetricsServer&) = delete;

    std::uint16_t port() const noexcept;

  private:
    class Desk;

    std::vector<HttpAnswer> answers(std::span<const std::string> paths,
                                    std::chrono::milliseconds patience);

    std::shared_ptr<Desk> desk_;
    std::unique_ptr<HttpDoor> door_;
    std::thread thread_;
};

} // namespace apps
