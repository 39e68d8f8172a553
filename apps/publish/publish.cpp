// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publish.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "apps/publish/config_table.hpp"
#include "apps/publish/outlet.hpp"
#include "apps/publish/publish_process.hpp"
#include "netio/access/host.hpp"
#include "netio/fabric.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/fid_shards.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace apps {
namespace {

using netio::pubsub::Fid;
using netio::pubsub::FidRange;
using netio::pubsub::FidShards;

template <typename Visit>
void for_each_fid(const std::vector<FidRange>& ranges, Visit visit) {
    for (const FidRange& range : ranges) {
        for (Fid fid = range.first;; fid = Fid{to_integer(fid) + 1}) {
            visit(fid);
            if (fid == range.last) break;
        }
    }
}

std::uint64_t fid_count(const std::vector<FidRange>& ranges) {
    std::uint64_t count = 0;
    for (const FidRange& range : ranges)
        count += to_integer(range.last) - to_integer(range.first) + 1;
    return count;
}

// --- streams --------------------------------------------------------------------------------

// Each fid keeps its file, if there is one file per fid.
std::vector<std::string> files_of(const std::vector<FidRange>& fids, const StreamConfig& stream,
                                  const std::vector<std::string>& paths) {
    std::unordered_map<std::uint64_t, std::size_t> place;
    for_each_fid(stream.fids, [&](Fid fid) { place.emplace(to_integer(fid), place.size()); });
    std::vector<std::string> files;
    for_each_fid(fids, [&](Fid fid) { files.push_back(paths.at(place.at(to_integer(fid)))); });
    return files;
}

StreamConfig part_of(const StreamConfig& stream, const std::vector<FidRange>& fids,
                     std::size_t loop) {
    StreamConfig part = stream;
    part.fids = fids;
    if (auto* const file = std::get_if<FileConfig>(&part.source);
        file != nullptr && file->paths.size() > 1) {
        file->paths = files_of(fids, stream, file->paths);
    }
    if (part.rate) {
        part.rate->per_second *=
            static_cast<double>(fid_count(fids)) / static_cast<double>(fid_count(stream.fids));
    }
    part.seed += loop * 0x9e3779b97f4a7c15; // different random values in each loop
    return part;
}

// Returns the streams of each loop.
std::vector<std::vector<StreamConfig>> divided_streams(const PublisherConfig& config,
                                                       std::size_t loops) {
    std::vector<std::vector<StreamConfig>> parts(loops);
    std::vector<std::uint64_t> loads(loops);
    std::vector<std::size_t> loop_of_trigger;
    for (std::size_t trigger = 0; trigger < config.triggers.size(); ++trigger) {
        const auto least = std::ranges::min_element(loads);
        loop_of_trigger.push_back(static_cast<std::size_t>(least - loads.begin()));
        for (const StreamConfig& stream : config.streams)
            if (stream.trigger == trigger) *least += fid_count(stream.fids);
    }
    std::size_t turn = 0; // the loop that gets the first part, which may have one fid more
    for (const StreamConfig& stream : config.streams) {
        if (stream.trigger) {
            parts[loop_of_trigger.at(*stream.trigger)].push_back(stream);
            continue;
        }
        const FidShards shards = FidShards::divide(stream.fids, loops);
        for (std::size_t i = 0; i < loops; ++i) {
            const std::size_t loop = (turn + i) % loops;
            if (!shards.of(i).empty()) parts[loop].push_back(part_of(stream, shards.of(i), loop));
        }
        turn = (turn + fid_count(stream.fids)) % loops;
    }
    return parts;
}

// --- places ---------------------------------------------------------------------------------

netio::Address shifted(netio::Address address, std::size_t by, const std::string& file) {
    if (address.port == 0) return address;
    const std::size_t port = address.port + by;
    if (port > 65535) {
        throw ConfigError{fmt::format("{}: loops: {} and the next {} ports are needed; allowed: a "
                                      "port with enough ports after it, or port 0",
                                      file, to_string(address), by)};
    }
    address.port = static_cast<std::uint16_t>(port);
    return address;
}

std::string shifted(const std::string& address, std::size_t by, const std::string& file) {
    return address.empty() ? address : to_string(shifted(netio::parse_address(address), by, file));
}

void put_at(PublisherConfig& part, std::size_t loop) {
    for (netio::Address& each : part.listen)
        each = shifted(each, loop, part.file);
    part.metrics.listen = shifted(part.metrics.listen, loop, part.file);
    for (std::string& each : part.keys.advertised_addresses)
        each = shifted(each, loop, part.file);
    part.name = fmt::format("{}loop {}", part.name.empty() ? "" : part.name + ", ", loop);
    if (part.bus.name.empty()) return;
    part.bus.name = fmt::format("{}-{}", part.bus.name, loop);
    if (!netio::pubsub::is_announced_name(part.bus.name)) {
        throw ConfigError{
            fmt::format("{}: loops: '{}' is not a valid name on a bus; allowed: a shorter name",
                        part.file, part.bus.name)};
    }
}

struct Place {
    netio::Address address;
    std::optional<netio::access::Host> host; // nullopt: a name
    std::string zone;                        // for a link-local address
};

// Replaces an interface by its first address.
std::string host_here(const std::string& host) {
    if (host == "localhost") return "127.0.0.1";
    try {
        return netio::host_at_interface(host);
    } catch (const netio::FabricError&) { // the start reports it
        return host;
    }
}

Place place_of(const netio::Address& address) {
    const std::string host = host_here(address.host);
    return {.address = address,
            .host = netio::access::parse_host(host),
            .zone = std::string{netio::access::zone_of(host)}};
}

// [::] also occupies the port of IPv4.
bool share_a_port(const Place& one, const Place& other) {
    if (one.address.port != other.address.port) return false;
    if (!one.host || !other.host) return one.address.host == other.address.host;
    const netio::access::Host any_ipv6{};
    const netio::access::Host any_ipv4 = netio::access::host_of_ipv4(std::array<std::byte, 4>{});
    const auto is_ipv4 = [&](const netio::access::Host& host) {
        return std::equal(host.begin(), host.begin() + 12, any_ipv4.begin());
    };
    const bool same_link = one.zone == other.zone;
    const auto includes = [&](const netio::access::Host& a, const netio::access::Host& b) {
        return (a == b && same_link) || a == any_ipv6 || (a == any_ipv4 && is_ipv4(b));
    };
    return includes(*one.host, *other.host) || includes(*other.host, *one.host);
}

} // namespace

std::vector<PublisherConfig> divided(const PublisherConfig& config, std::size_t loops) {
    if (loops <= 1) return {config};
    std::vector<std::vector<StreamConfig>> streams = divided_streams(config, loops);
    std::vector<PublisherConfig> parts;
    for (std::size_t i = 0; i < loops; ++i) {
        if (streams[i].empty()) {
            throw ConfigError{
                fmt::format("{}: loops: {}, but there are fids for {} only; allowed: at most the "
                            "number of fids, where the fids of a trigger count as one",
                            config.file, loops, i)};
        }
        PublisherConfig& part = parts.emplace_back(config);
        part.streams = std::move(streams[i]);
        part.position = config.position * loops + i;
        put_at(part, i);
        std::vector<FidRange> owned;
        for (const StreamConfig& stream : part.streams)
            owned.insert(owned.end(), stream.fids.begin(), stream.fids.end());
        part.publisher.fids = netio::pubsub::normalised(owned);
        part.publisher.listen = part.listen;
        part.buffered_options.publisher = part.publisher;
        part.unbuffered_options.publisher = part.publisher;
    }
    return parts;
}

void refuse_shared_ports(const std::vector<PublisherConfig>& parts, std::size_t loops) {
    std::vector<Place> taken;
    const auto take = [&](const PublisherConfig& part, const std::string& key,
                          const netio::Address& address) {
        if (address.port == 0) return;
        const Place place = place_of(address);
        const auto other = std::ranges::find_if(
            taken, [&](const Place& each) { return share_a_port(each, place); });
        if (other == taken.end()) {
            taken.push_back(place);
            return;
        }
        const bool same = other->address == address;
        const std::string shown =
            same ? fmt::format("{} is used twice", to_string(address))
                 : fmt::format("{} is taken by {}", to_string(address), to_string(other->address));
        refuse_at(
            part, key,
            loops > 1
                ? fmt::format("loops: each loop uses the next port of every address, but {}; "
                              "allowed: addresses with enough free ports between them",
                              shown)
                : fmt::format("{}; allowed: a separate port for each `listen` and each `metrics`",
                              shown));
    };
    for (const PublisherConfig& part : parts) {
        for (std::size_t i = 0; i < part.listen.size(); ++i) {
            const std::string key = fmt::format("listen[{}]", i);
            take(part, part.places.contains(key) ? key : "listen", part.listen[i]);
        }
        if (!part.metrics.listen.empty())
            take(part, "metrics", netio::parse_address(part.metrics.listen));
    }
}

PublishReport sum_of(const std::vector<PublishReport>& parts, const std::string& name) {
    PublishReport sum = parts.front();
    sum.name = name;
    sum.loops = parts.size();
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const PublishReport& part = parts[i];
        if (sum.provider.find(part.provider) == std::string::npos)
            sum.provider += "+" + part.provider;
        for (const char* const worse : {"interrupted", "failed"})
            if (part.end == worse && sum.end != "failed") sum.end = worse;
        sum.throughput.messages += part.throughput.messages;
        sum.throughput.bytes += part.throughput.bytes;
        sum.throughput.seconds = std::max(sum.throughput.seconds, part.throughput.seconds);
        sum.without_subscribers += part.without_subscribers;
        sum.again += part.again;
        sum.dropped += part.dropped;
        sum.pages += part.pages;
        sum.disconnected += part.disconnected;
        sum.unconfirmed += part.unconfirmed;
        for (std::size_t t = 0; t < part.triggers.size(); ++t) { // each trigger belongs to one loop
            TriggerReport& trigger = sum.triggers.at(t);
            trigger.events += part.triggers[t].events;
            trigger.put_off_s = std::max(trigger.put_off_s, part.triggers[t].put_off_s);
        }
        if (part.faults) {
            if (!sum.faults) sum.faults.emplace();
            *sum.faults += *part.faults;
        }
        sum.fids.insert(sum.fids.end(), part.fids.begin(), part.fids.end());
    }
    std::ranges::sort(sum.fids, {}, &PublishedFid::fid);
    return sum;
}

// netio publish: a test publisher from a YAML configuration.

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
    add_progress(*command, arguments->progress);
    add_json(*command, arguments->json);
    return [arguments, task] { return to_integer(run_task(*task, *arguments)); };
}

} // namespace apps
