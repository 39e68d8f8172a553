// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/metrics.hpp"

#include "apps/common/log_losses.hpp"
#include "apps/common/option_values.hpp"
#include "apps/metrics/device_metrics.hpp"
#include "netio/base/version.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace apps {
namespace {

struct LoopFigures {
    std::uint64_t turns = 0;
    netio::Duration longest_turn{};
    netio::Duration stalled{};
    std::uint64_t waits = 0;
};

void write(const LoopFigures& loop, Exposition& text) {
    text.gauge("netio_info", "What runs here")
        .add({{"version", netio::version()}}, std::uint64_t{1});
    text.counter("netio_loop_turns_total", "Turns of the event loop that did some work")
        .add(loop.turns);
    text.counter("netio_loop_waits_total", "How often the event loop has gone to sleep")
        .add(loop.waits);
    text.gauge("netio_loop_longest_turn_seconds", "The longest turn since the last scrape")
        .add(loop.longest_turn);
    text.counter("netio_loop_stalled_seconds_total", "How long the event loop has not looked")
        .add(loop.stalled);
    text.counter("netio_log_lines_left_out_total",
                 "Lines of the log that nobody took, or that could not be written")
        .add(lines_left_out_of_log().load());
}

} // namespace

CLI::Option* add_metrics(CLI::App& command, MetricsArguments& arguments) {
    auto* const listen = command.add_option(
        "--metrics", arguments.listen,
        "Show figures at http://HOST:PORT/metrics in the format of Prometheus, port 0 for any");
    command
        .add_flag("--metrics-open", arguments.open,
                  "Show them also where other machines reach it: whoever does may read them")
        ->needs(listen);
    add_count(command, "--metrics-fids", arguments.fids, "Of so many fids at most",
              {.min = 0, .max = 1'000'000});
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
            const LoopFigures figures{.turns = loop.turns().count(),
                                      .longest_turn = loop.turns().take_longest_lately(),
                                      .stalled = loop.stalled(),
                                      .waits = loop.wait_count()};
            return [figures, write_rest = collect()] {
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
