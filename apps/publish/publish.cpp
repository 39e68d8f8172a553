// SPDX-License-Identifier: Apache-2.0

// netio publish: a test publisher from a YAML configuration.

#include "apps/common/cli.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/terminal.hpp"
#include "apps/program/commands.hpp"
#include "apps/publish/config_table.hpp"
#include "apps/publish/loop_parts.hpp"
#include "apps/publish/outlet.hpp"
#include "apps/publish/publish_process.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace apps {
namespace {

void refuse_for_several(const PublishArguments& arguments) {
    const auto refuse = [](const char* option) {
        throw std::invalid_argument{
            fmt::format("{} is for a single publisher, but the configuration has several; allowed: "
                        "the same key in the configuration",
                        option)};
    };
    if (!arguments.listen.empty()) refuse("--listen");
    if (!arguments.metrics.listen.empty()) refuse("--metrics");
}

void apply(const PublishArguments& arguments, PublisherConfig& config) {
    if (!arguments.listen.empty()) {
        config.listen = {netio::parse_address(arguments.listen)};
        std::erase_if(config.places,
                      [](const auto& each) { return each.first.starts_with("listen["); });
        config.places["listen"] = "--listen";
    }
    if (!arguments.keys.keys.empty()) {
        config.keys.keys = arguments.keys.keys;
        config.places["keys"] = "--keys";
    }
    if (!arguments.keys.min_protection.empty())
        config.keys.min_protection = arguments.keys.min_protection;
    if (!arguments.metrics.listen.empty()) {
        config.metrics.listen = arguments.metrics.listen;
        config.metrics.allow_remote_anonymous =
            arguments.metrics.allow_remote_anonymous; // belongs to the new address
        config.places["metrics"] = "--metrics";
    }
    if (arguments.metrics.fids) config.metrics.fids = arguments.metrics.fids;
    config.keys.advertised_addresses = arguments.keys.advertised_addresses;
    if (const auto links = arguments.keys.connections_per_host) {
        config.keys.connections_per_host = links;
        config.publisher.connections_per_host = *links;
    }
    if (arguments.wait_subscribers) config.wait_subscribers = arguments.wait_subscribers;
    config.publisher.listen = config.listen;
    if (arguments.allow_remote_anonymous) config.publisher.allow_remote_anonymous = true;
    if (!arguments.bus.empty()) {
        config.bus.where = arguments.bus;
        config.places["bus"] = "--bus";
    }
    config.buffered_options.publisher = config.publisher;
    config.unbuffered_options.publisher = config.publisher;
}

PublishConfig configured(const PublishArguments& arguments) {
    PublishConfig config = load_publish_config(arguments.config);
    if (!arguments.provider.empty()) config.fabric.provider = arguments.provider;
    if (config.publishers.size() > 1) refuse_for_several(arguments);
    for (PublisherConfig& publisher : config.publishers)
        apply(arguments, publisher);
    std::vector<PublisherConfig> all;
    for (const PublisherConfig& publisher : config.publishers) {
        const std::vector<PublisherConfig> parts = divided(publisher, config.loops);
        all.insert(all.end(), parts.begin(), parts.end());
    }
    for (const PublisherConfig& part : all)
        refuse_unannounceable(part);
    refuse_shared_ports(all, config.loops);
    return config;
}

enum class Task : std::uint8_t { publish, check, print_reference, print_schema };

ExitStatus print(const std::string& text) {
    print_report(text);
    return ExitStatus::done;
}

ExitStatus run_task(Task task, const PublishArguments& arguments) {
    if (task == Task::print_reference) return print(config_reference());
    if (task == Task::print_schema) return print(config_schema());
    const PublishConfig asked = configured(arguments);
    if (task == Task::check) return print(check_publish(asked));
    return publish(asked, arguments);
}

} // namespace

Command add_publish(CLI::App& program) {
    auto* command = program.add_subcommand("publish", "Publish streams described by a YAML file");
    const auto arguments = std::make_shared<PublishArguments>();
    const auto task = std::make_shared<Task>(Task::publish);
    const auto instead = [task](Task other) { return [task, other] { *task = other; }; };
    auto* const config = command->add_option("config", arguments->config, "YAML file, see config/");
    auto* const reference = command->add_flag_callback(
        "--reference", instead(Task::print_reference),
        "Print the reference of all configuration keys in Markdown, and end");
    auto* const schema = command->add_flag_callback(
        "--schema", instead(Task::print_schema),
        "Print the JSON schema of the configuration for editors, and end");
    command->callback([config, reference, schema] {
        if (config->empty() && reference->empty() && schema->empty())
            throw CLI::RequiredError{"the YAML file"};
    });
    command->add_option(cli_flag<&netio::pubsub::Publisher::Options::listen>(), arguments->listen,
                        "Listen at HOST:PORT instead of the address in the file");
    add_allow_remote_anonymous(*command, arguments->allow_remote_anonymous);
    add_bus(*command, arguments->bus);
    add_count(*command, "--messages", arguments->messages,
              "End after this many messages of all fids together");
    add_duration(*command, "--duration", arguments->duration, "End this long after the start");
    add_count(*command, "--wait-subscribers", arguments->wait_subscribers,
              "Begin to publish when this many subscribers are connected",
              {.min = 0, .max = 1'000'000});
    add_keys(*command, arguments->keys);
    add_provider(*command, arguments->provider);
    add_decoding(*command, arguments->decode);
    add_metrics(*command, arguments->metrics);
    command->add_flag_callback(
        "--check", instead(Task::check),
        "Check whether the program would start with this file and these options, and end");
    command->add_flag("--progress", arguments->progress, "Log the progress once a second");
    command->add_flag("--json", arguments->json,
                      "Print the report as one JSON object, as the last line");
    return [arguments, task] { return to_integer(run_task(*task, *arguments)); };
}

} // namespace apps
