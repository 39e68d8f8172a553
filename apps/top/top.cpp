// SPDX-License-Identifier: Apache-2.0

// netio top: who is slow, and what moves, at programs that show their figures.

#include "apps/common/exit_status.hpp"
#include "apps/common/option_values.hpp"
#include "apps/common/standard_output.hpp"
#include "apps/program/commands.hpp"
#include "apps/top/asking.hpp"
#include "apps/top/bus_sources.hpp"
#include "apps/top/table.hpp"
#include "netio/base/status.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>

namespace apps {
namespace top {
namespace {

struct Arguments {
    std::vector<std::string> sources;
    std::string bus; // empty: none
    std::optional<netio::Duration> interval;
    Order order = Order::as_shown;
    bool once = false;
    bool json = false;
};

std::vector<Look> look_at_all(const std::vector<Source>& sources, NameSearch& names, Order order,
                              const std::vector<Look>& before) {
    std::vector<std::string> addresses;
    for (const Source& source : sources)
        addresses.push_back(source.address);
    std::vector<Look> looks = look_at(addresses, names);
    for (std::size_t i = 0; i < looks.size(); ++i) {
        looks[i].name = sources[i].name;
        const auto last = std::ranges::find(before, looks[i].source, &Look::source);
        if (last != before.end()) add_rates(looks[i], *last);
        sort(looks[i].rows, order);
    }
    return looks;
}

std::string drawn(const std::vector<Look>& looks) {
    winsize size{};
    if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
        size.ws_col == 0) {
        return to_text(looks, SIZE_MAX, SIZE_MAX);
    }
    const std::size_t height = size.ws_row > 1 ? size.ws_row - 1U : 1U;
    return "\x1b[H\x1b[2J" + to_text(looks, size.ws_col, height); // from the top of a clear screen
}

int run(const Arguments& arguments) {
    const netio::Duration interval = arguments.interval.value_or(std::chrono::seconds{1});
    std::unique_ptr<BusSources> bus;
    if (!arguments.bus.empty()) {
        bus = std::make_unique<BusSources>(arguments.bus);
        if (!bus->read()) {
            spdlog::error("'{}' could not be read", arguments.bus);
            return to_integer(ExitStatus::failed);
        }
    }
    NameSearch names;
    std::vector<Look> looks;
    // Rates need two looks.
    for (int count = 0;; ++count) {
        std::vector<Source> sources;
        for (const std::string& address : arguments.sources)
            sources.push_back({.address = address});
        if (bus) {
            const std::vector<Source> found = bus->sources();
            sources.insert(sources.end(), found.begin(), found.end());
        }
        looks = look_at_all(sources, names, arguments.order, looks);
        const bool last = arguments.once && count == 1;
        if (last || (!arguments.once && (count > 0 || !arguments.json)))
            print_report(arguments.json ? to_json(looks) + "\n" : drawn(looks));
        if (last) break;
        bus ? bus->wait(interval) : std::this_thread::sleep_for(interval);
    }
    if (looks.empty()) {
        spdlog::error("no program at '{}' shows figures", arguments.bus);
        return to_integer(ExitStatus::nothing);
    }
    const bool failed =
        std::ranges::any_of(looks, [](const Look& look) { return !look.error.empty(); });
    return failed ? 1 : 0;
}

} // namespace
} // namespace top

Command add_top(CLI::App& program) {
    using top::Order;
    auto* command = program.add_subcommand(
        "top", "Show who is slow and what moves, at programs with --metrics");
    const auto arguments = std::make_shared<top::Arguments>();
    auto* const programs =
        command->add_option("programs", arguments->sources, "HOST:PORT of their --metrics");
    auto* const bus = add_bus(*command, arguments->bus);
    command->callback([programs, bus] {
        if (programs->count() == 0 && bus->count() == 0)
            throw CLI::ValidationError{"top",
                                       "where? HOST:PORT of a program's --metrics, or --bus"};
    });
    add_duration(*command, "--interval", arguments->interval, "From one look to the next, 1 s");
    static const std::map<std::string, Order> orders{
        {"rate", Order::rate},       {"count", Order::count}, {"dropped", Order::dropped},
        {"waiting", Order::waiting}, {"idle", Order::idle},   {"again", Order::again}};
    command
        ->add_option_function<std::string>(
            "--sort", [arguments](const std::string& word) { arguments->order = orders.at(word); },
            "rate, count, waiting, idle, again or dropped")
        ->type_name("WORD")
        ->check(one_of({"rate", "count", "waiting", "idle", "again", "dropped"}));
    command->add_flag("--once", arguments->once, "Show it once, after two looks, and end");
    command->add_flag("--json", arguments->json, "A JSON object for each look");
    return [arguments] { return top::run(*arguments); };
}

} // namespace apps
