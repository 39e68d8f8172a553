// SPDX-License-Identifier: Apache-2.0

// netio info: shows the providers that this machine has, and the one used for each address.

#include "apps/common/machine.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/base/version.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <string>

namespace apps {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const netio::FabricDescription& description) {
    const netio::Capabilities& can = description.capabilities;
    return {{"provider", description.provider},
            {"domain", description.domain},
            {"addresses", description.addresses},
            {"segments", can.segment_limit},
            {"inject_bytes", can.inject_bytes},
            {"immediate_bytes", can.immediate_bytes},
            {"message_bytes", can.message_bytes},
            {"send_queue", description.send_queue_limit},
            {"receive_queue", description.receive_queue_limit}};
}

Json as_json(const RdmaDevice& device) {
    Json ports = Json::array();
    for (const RdmaPort& port : device.ports) {
        ports.push_back({{"number", port.number},
                         {"state", port.state},
                         {"link_layer", port.link_layer},
                         {"rate", port.rate},
                         {"interface", port.interface},
                         {"counters", port.counters}});
    }
    return {{"name", device.name}, {"software", device.software}, {"ports", std::move(ports)}};
}

std::string as_text(const RdmaDevice& device) {
    std::string text;
    for (const RdmaPort& port : device.ports) {
        text +=
            fmt::format("\nport {} of {}{}\n  {}, {}, {}{}\n", port.number, device.name,
                        device.software ? " (software)" : "", port.state, port.link_layer,
                        port.rate, port.interface.empty() ? "" : ", interface " + port.interface);
        text += fmt::format("  port errors {}, receiver not ready {}, retransmissions {}\n",
                            count_of(port.counters, Trouble::port_error),
                            count_of(port.counters, Trouble::receiver_not_ready),
                            count_of(port.counters, Trouble::retransmission));
    }
    return text;
}

int run_info(bool wants_json) {
    const auto descriptions = netio::describe_fabric();
    const auto picked = picked_providers(descriptions);
    const std::vector<RdmaDevice> devices = read_devices("/");
    const std::optional<std::string> choice = provider_choice();
    const std::string withheld = withheld_providers(choice, descriptions, devices);
    if (!withheld.empty()) {
        spdlog::warn(
            "FI_PROVIDER={} in the environment prevents libfabric from offering {}: unset it",
            choice.value_or(""), withheld);
    }
    if (wants_json) {
        Json report{{"role", "info"},
                    {"report_version", report_version},
                    {"version", netio::version()},
                    {"libfabric", netio::fabric_version()},
                    {"providers", Json::array()},
                    {"picked", picked},
                    {"devices", Json::array()}};
        for (const RdmaDevice& device : devices)
            report["devices"].push_back(as_json(device));
        for (const auto& description : descriptions)
            report["providers"].push_back(as_json(description));
        print_report(json_line(report) + "\n");
        return descriptions.empty() ? 1 : 0;
    }
    std::string text =
        fmt::format("netio {}, libfabric {}\n", netio::version(), netio::fabric_version());
    for (const auto& description : descriptions) {
        const netio::Capabilities& can = description.capabilities;
        text += fmt::format("\n{} on {}\n  addresses: {}\n", description.provider,
                            description.domain, fmt::join(description.addresses, ", "));
        text += fmt::format(
            "  segments per message {}, inject {} B, immediate data {} B, largest message "
            "{} B\n  queues: {} sends, {} receives\n",
            can.segment_limit, can.inject_bytes, can.immediate_bytes, can.message_bytes,
            description.send_queue_limit, description.receive_queue_limit);
    }
    for (const RdmaDevice& device : devices)
        text += as_text(device);
    text += "\nused for each address:\n";
    for (const auto& [address, provider] : picked)
        text += fmt::format("  {:40} {}\n", address, provider);
    if (descriptions.empty() && withheld.empty())
        text += "  none: is libfabric installed with its providers?\n";
    print_report(text);
    return descriptions.empty() ? 1 : 0;
}

} // namespace

Command add_info(CLI::App& program) {
    auto* command = program.add_subcommand("info", "Show providers, addresses and their limits");
    const auto json = std::make_shared<bool>(false);
    command->add_flag("--json", *json, "Print one JSON object");
    return [json] { return run_info(*json); };
}

} // namespace apps
