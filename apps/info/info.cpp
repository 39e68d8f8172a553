// SPDX-License-Identifier: Apache-2.0

// netio info: what can be used on this machine, and what would be.

#include "apps/common/machine.hpp"
#include "apps/program/commands.hpp"
#include "netio/base/version.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

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

int run(bool json) {
    const auto descriptions = netio::describe_fabric();
    const auto picked = picked_providers(descriptions);
    if (json) {
        Json report{{"role", "info"},
                    {"version", netio::version()},
                    {"libfabric", netio::fabric_version()},
                    {"providers", Json::array()},
                    {"picked", picked}};
        for (const auto& description : descriptions)
            report["providers"].push_back(as_json(description));
        fmt::print("{}\n", report.dump());
        return descriptions.empty() ? 1 : 0;
    }
    fmt::print("netio {}, libfabric {}\n", netio::version(), netio::fabric_version());
    for (const auto& description : descriptions) {
        const netio::Capabilities& can = description.capabilities;
        fmt::print("\n{} on {}\n  addresses: {}\n", description.provider, description.domain,
                   fmt::join(description.addresses, ", "));
        fmt::print("  segments per message {}, inject {} B, immediate data {} B, largest message "
                   "{} B\n  queues: {} sends, {} receives\n",
                   can.segment_limit, can.inject_bytes, can.immediate_bytes, can.message_bytes,
                   description.send_queue_limit, description.receive_queue_limit);
    }
    fmt::print("\nused for each address:\n");
    for (const auto& [address, provider] : picked)
        fmt::print("  {:40} {}\n", address, provider);
    if (descriptions.empty()) fmt::print("  nothing: is libfabric installed with its providers?\n");
    return descriptions.empty() ? 1 : 0;
}

} // namespace

Command add_info(CLI::App& program) {
    auto* command = program.add_subcommand("info", "Show providers, addresses and their limits");
    const auto json = std::make_shared<bool>(false);
    command->add_flag("--json", *json, "One JSON object on standard output");
    return [json] { return run(*json); };
}

} // namespace apps
