// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/metrics.hpp"

#include "apps/common/option_values.hpp"
#include "apps/metrics/device_metrics.hpp"
#include "apps/metrics/loop_metrics.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <string>
#include <utility>

namespace apps {

CLI::Option* add_metrics(CLI::App& command, MetricsArguments& arguments) {
    auto* const listen = command.add_option(
        "--metrics", arguments.listen,
        "Show figures at http://HOST:PORT/metrics in the format of Prometheus, port 0 for any");
    command
        .add_flag("--metrics-open", arguments.open,
                  "Show them also where other machines reach it: whoever does may read them")
        ->needs(listen);
    add_count(command, "--metrics-fids", arguments.fids, "Of so many fids at most",
              {.min = 0, .max = 1'000'000})
        ->default_str(std::to_string(MetricsArguments::fids_by_default));
    return listen;
}

netio::Address metrics_address(const MetricsArguments& arguments) {
    netio::Address address = netio::parse_address(arguments.listen);
    address.host = netio::host_at_interface(address.host);
    return address;
}

std::unique_ptr<MetricsServer> show_metrics(netio::EventLoop& loop,
                                            const MetricsArguments& arguments, Collect collect) {
    if (arguments.listen.empty()) return nullptr;
    const netio::Address address = metrics_address(arguments);
    auto server = std::make_unique<MetricsServer>(
        loop, MetricsServer::Options{.address = address, .open = arguments.open},
        [&loop, collect = std::move(collect)]() -> MetricsServer::Render {
            return [figures = take_figures(loop), write_rest = collect()] {
                Exposition text;
                write(figures, text);
                write_rest(text);
                write(read_devices("/"), text);
                return std::move(text).take();
            };
        });
    spdlog::info("metrics at http://{}/metrics",
                 to_string(netio::Address{.host = address.host, .port = server->port()}));
    return server;
}

} // namespace apps
