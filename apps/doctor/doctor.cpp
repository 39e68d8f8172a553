// SPDX-License-Identifier: Apache-2.0

// netio doctor: checks whether this machine, and the path to another one, is suitable for RDMA.

#include "apps/common/ask_fids.hpp"
#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/process.hpp"
#include "apps/common/report.hpp"
#include "apps/common/terminal.hpp"
#include "apps/doctor/diagnosis.hpp"
#include "apps/doctor/path_probe.hpp"
#include "apps/program/commands.hpp"
#include "netio/base/version.hpp"
#include "netio/loop/signal_watch.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace apps {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorArguments {
    std::string peer;
    std::vector<std::string> fids; // fids to ask the peer, a publisher, about
    std::string serve;
    std::string provider = "auto";
    bool allow_remote_anonymous = false;
    KeyArguments keys;
    bool json = false;
};

int serve(const DoctorArguments& arguments) {
    netio::EventLoop loop;
    const LogObserver observer{loop};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    const auto keys = server_keys(loop, arguments.keys);
    ProbeServer server{*transport,
                       {.address = netio::parse_address(arguments.serve),
                        .allow_remote_anonymous = arguments.allow_remote_anonymous,
                        .keys = keys}};
    PeerLog log{loop};
    server.at_visit = [&](const std::string& what) { log.info(what); };
    tell_listening(server.endpoints());
    const netio::SignalWatch signals{loop, end_signals(), [&](int) { loop.stop(); }};
    loop.run();
    return 0;
}

Json as_json(const PathFigures& figures) {
    const auto microseconds = [&](std::size_t percent) {
        const auto& trips = figures.round_trips;
        return std::chrono::duration<double, std::micro>(trips[(trips.size() - 1) * percent / 100])
            .count();
    };
    return {{"provider", figures.provider},
            {"round_trips", figures.round_trips.size()},
            {"round_trip_us", {{"median", microseconds(50)}, {"p99", microseconds(99)}}},
            {"gbit_per_s", figures.gbit_per_s},
            {"frame_bytes", figures.largest_bytes},
            {"message_bytes", figures.provider_message_bytes}};
}

// Routes that were tried first and failed.
class FailedRoutes final : public netio::Observer {
  public:
    std::vector<netio::RouteFailed> all;

  private:
    void on_route_failed(const netio::RouteFailed& event) override { all.push_back(event); }
};

// Adds the results of the path to the report, or the reason why there are none.
bool probe(const DoctorArguments& arguments, Json& report, std::vector<std::string>& lines) {
    FailedRoutes failed;
    netio::EventLoop loop{{.observer = &failed}};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    PathProbe probe{*transport,
                    peer_address(arguments.peer),
                    {.key = client_key(arguments.keys)},
                    [&] { loop.stop(); }};
    loop.run();
    if (!probe.figures()) {
        report["path"] = {{"failure", probe.failure()}};
        lines = {fmt::format("{}: {}", arguments.peer, probe.failure()),
                 fmt::format("start `netio doctor --serve {}` there", arguments.peer)};
        return false;
    }
    report["path"] = as_json(*probe.figures());
    report["path"]["failed"] = Json::array();
    lines = to_lines(*probe.figures());
    for (const netio::RouteFailed& route : failed.all) {
        report["path"]["failed"].push_back({{"provider", route.provider},
                                            {"address", to_string(route.remote)},
                                            {"why", to_string(route.closed)}});
        lines.push_back(
            fmt::format("cannot connect over {}: {}", route.provider, to_string(route.closed)));
    }
    return true;
}

// Adds to the report whether the publisher publishes these fids; for the others, the reason.
bool ask(const DoctorArguments& arguments, Json& report, std::vector<std::string>& lines) {
    const auto result = ask_fids(
        {.publisher = arguments.peer, .provider = arguments.provider, .key = arguments.keys},
        parse_fids(arguments.fids));
    if (!result.failure.empty()) {
        report["fids"] = {{"failure", result.failure}};
        lines = {fmt::format("{}: {}", arguments.peer, result.failure),
                 "check that a publisher of version 0.3 or later is running there"};
        return false;
    }
    bool all = true;
    report["fids"] = Json::array();
    for (const auto& near : result.near) {
        Json nearest = Json::array();
        for (const auto& range : near.nearest)
            nearest.push_back(to_string(range));
        report["fids"].push_back({{"asked", to_string(near.asked)},
                                  {"published", near.is_published},
                                  {"nearest", std::move(nearest)}});
        lines.push_back(shown(near, nullptr));
        all = all && near.is_published;
    }
    if (!all) {
        lines.push_back(fmt::format("netio list {} shows all fids that it has published since its "
                                    "start",
                                    arguments.peer));
    }
    return all;
}

int examine(const DoctorArguments& arguments) {
    const Machine machine = read_machine();
    const std::vector<Finding> findings = diagnose(machine);
    bool well = is_well(findings);
    std::string text;
    Json report{{"role", "doctor"},
                {"report_version", report_version},
                {"version", netio::version()},
                {"findings", Json::array()}};
    for (const Finding& finding : findings) {
        report["findings"].push_back({{"kind", to_string(finding.kind)},
                                      {"what", finding.what},
                                      {"remedy", finding.remedy}});
        text += fmt::format("{:7} {}\n", to_string(finding.kind), finding.what);
        if (!finding.remedy.empty()) text += fmt::format("        -> {}\n", finding.remedy);
    }
    // Printed early, because the path's test takes a while.
    if (!arguments.json) print_report(std::exchange(text, {}));
    if (!arguments.peer.empty()) {
        std::vector<std::string> lines;
        const bool asks = !arguments.fids.empty();
        well = (asks ? ask(arguments, report, lines) : probe(arguments, report, lines)) && well;
        text = fmt::format("\n{} {}\n", asks ? "publisher" : "path to", arguments.peer);
        for (const std::string& line : lines)
            text += fmt::format("        {}\n", line);
    }
    report["well"] = well;
    text +=
        fmt::format("\n{}\n", well ? "nothing has to be changed" : "make the changes listed above");
    print_report(arguments.json ? json_line(report) + "\n" : text);
    return well ? 0 : 1;
}

} // namespace

Command add_doctor(CLI::App& program) {
    auto* command = program.add_subcommand(
        "doctor",
        "Check this machine for RDMA, propose changes, and test the path to another machine");
    const auto arguments = std::make_shared<DoctorArguments>();
    auto* peer =
        command->add_option("peer", arguments->peer,
                            "HOST:PORT of `netio doctor --serve`, or with --fid of a publisher");
    command
        ->add_option("--fid", arguments->fids,
                     "Ask the publisher whether it publishes these fids, and for the nearest "
                     "published ones; may be repeated")
        ->needs(peer);
    auto* serving =
        command->add_option("--serve", arguments->serve,
                            "Serve path tests of other machines at HOST:PORT until interrupted");
    serving->excludes(peer);
    add_allow_remote_anonymous(*command, arguments->allow_remote_anonymous)->needs(serving);
    add_key(*command, arguments->keys);
    add_keys(*command, arguments->keys);
    add_provider(*command, arguments->provider)->capture_default_str();
    command->add_flag("--json", arguments->json, "Print one JSON object");
    return
        [arguments] { return arguments->serve.empty() ? examine(*arguments) : serve(*arguments); };
}

} // namespace apps
