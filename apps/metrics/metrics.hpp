// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options --metrics of the programs, and what all of them show.

#include "apps/metrics/exposition.hpp"
#include "apps/metrics/metrics_server.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace apps {

struct MetricsArguments {
    std::string listen; // HOST:PORT or INTERFACE:PORT; empty: nothing is shown
    bool open = false;
    static constexpr std::size_t fids_by_default = 1000;
    std::optional<std::uint64_t> fids; // at most so many
    std::size_t fid_limit() const noexcept { return fids.value_or(fids_by_default); }
};
// --metrics, --metrics-open and --metrics-fids; the first of them.
CLI::Option* add_metrics(CLI::App& command, MetricsArguments& arguments);

// Where they are shown, an interface by its address. Throws std::invalid_argument for what is no
// address, and FabricError: the interface has none.
netio::Address metrics_address(const MetricsArguments& arguments);

// Shows what `collect` returns, and how the loop is; nullptr where that was not asked for. What
// collect() returns writes what it has collected; in any thread. Throws as MetricsServer.
using Collect = std::function<std::function<void(Exposition&)>()>;
std::unique_ptr<MetricsServer> show_metrics(netio::EventLoop& loop,
                                            const MetricsArguments& arguments, Collect collect);

} // namespace apps
