// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/metrics/exposition.hpp"
#include "apps/metrics/http_door.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/server_keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace apps {

// Answers GET /metrics and /healthz over HTTP on its own thread, where a slow client does not delay
// others. The loop collects the values once for all clients that ask at the same time; if it does
// not answer in time, the answer is 503.

class MetricsServer {
  public:
    // Formats the collected values; runs on any thread.
    using Render = std::function<std::string()>;
    // Collects the values; runs in the loop and must be quick.
    using Collect = std::function<Render()>;

    struct Options {
        netio::Address address;                   // port 0: any free one
        bool allow_remote_anonymous = false;      // allow an address that other machines can reach
        std::chrono::milliseconds patience{2000}; // time limit for the loop's answer
    };

    // Throws std::runtime_error if the address is in use, is not of this machine, or can be reached
    // from other machines without `allow_remote_anonymous`.
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

// The --metrics options of the programs.

struct MetricsArguments {
    std::string listen; // HOST:PORT or INTERFACE:PORT; empty: no metrics
    bool allow_remote_anonymous = false;
    static constexpr std::size_t fids_by_default = 1000;
    std::optional<std::uint64_t> fids; // limit of the fids
    std::size_t fid_limit() const noexcept { return fids.value_or(fids_by_default); }
};
// Adds --metrics, --metrics-allow-remote-anonymous and --metrics-fids; returns the first one.
CLI::Option* add_metrics(CLI::App& command, MetricsArguments& arguments);

// Returns the address of --metrics; an interface is replaced by its address. Throws
// std::invalid_argument if the text is not an address, and FabricError if the interface has none.
netio::Address metrics_address(const MetricsArguments& arguments);

// Serves the values of `collect`, of the loop and of the devices; null without --metrics. `collect`
// runs in the loop and returns a function that writes the collected values on any thread. Throws as
// MetricsServer.
using Collect = std::function<std::function<void(Exposition&)>()>;
std::unique_ptr<MetricsServer> show_metrics(netio::EventLoop& loop,
                                            const MetricsArguments& arguments, Collect collect);

// Authentication metrics of a server with keys.

void write(const netio::ServerKeys::Counters& gate, Exposition& text);

// Adds the values of the keys to those of `collect`.
Collect with_gate(std::shared_ptr<const netio::ServerKeys> keys, Collect collect);

} // namespace apps
