// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publisher_config.hpp"

#include "apps/publish/section_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace apps {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t largest_file_bytes = 1 << 20;

netio::Address read_address(const YamlValue& value) {
    const std::string text = value.text("HOST:PORT");
    try {
        return netio::parse_address(text);
    } catch (const std::invalid_argument& error) {
        value.fail(error.what(), "HOST:PORT, [IPV6]:PORT, port 0 for any free one");
    }
}

std::vector<netio::Address> read_listen(const YamlValue& value) {
    if (!value.is_list()) return {read_address(value)};
    std::vector<netio::Address> addresses;
    for (const YamlValue& each : value.list())
        addresses.push_back(read_address(each));
    return addresses;
}

// --- the process ----------------------------------------------------------------------------

void read_fabric(const SectionReader& document, netio::FabricOptions& fabric) {
    if (const auto v = document.find("provider")) {
        const std::string allowed = "auto, tcp, verbs";
        fabric.provider = v->text(allowed);
        const std::string refusal =
            fabric.provider == "auto" ? "" : netio::provider_refusal(fabric.provider);
        if (!refusal.empty()) v->fail(refusal, allowed);
    }
    if (const auto v = document.find("fabric")) {
        const SectionReader map{*v, {"fabric"}};
        map.time("half_handshake_timeout_ms", fabric.half_handshake_timeout);
        map.time("stranger_timeout_ms", fabric.stranger_timeout);
        map.whole("strangers_per_host_limit", fabric.strangers_per_host_limit);
        map.bytes("windows_limit", fabric.windows_limit);
        map.bytes("copies_limit", fabric.copies_limit);
        map.whole("queue_endpoint_limit", fabric.queue_endpoint_limit);
        map.whole("queue_entry_limit", fabric.queue_entry_limit);
    }
}

netio::EventLoop::Options read_loop(const SectionReader& document, const YamlValue& value) {
    netio::EventLoop::Options options;
    if (!value.is_map()) {
        options.mode = static_cast<netio::LoopMode>(document.word("loop", value));
        return options;
    }
    const SectionReader map{value, {"loop"}};
    options.mode = static_cast<netio::LoopMode>(map.word("mode", map.get("mode")));
    map.time("spin_us", options.spin);
    map.whole("drain_limit", options.drain_limit);
    map.time("turn_limit_us", options.turn_limit);
    return options;
}

MetricsArguments read_metrics(const YamlValue& value) {
    MetricsArguments metrics;
    if (!value.is_map()) {
        metrics.listen = to_string(read_address(value));
        return metrics;
    }
    const SectionReader map{value, {"metrics"}};
    metrics.listen = to_string(read_address(map.get("listen")));
    map.flag("open", metrics.open);
    if (const auto fids = map.find("fids")) metrics.fids = map.whole("fids", *fids);
    return metrics;
}

// --- the publisher --------------------------------------------------------------------------

void read_buffered(const YamlValue& value, netio::pubsub::BufferedPublishSocket::Options& options) {
    const SectionReader map{value, {"buffered"}};
    map.bytes("page_size", options.page_bytes);
    map.whole("pages", options.page_count);
    if (const auto v = map.find("share"))
        options.share_bytes = v->bytes(1, options.page_count * options.page_bytes / 2);
    map.bytes("newest", options.newest_bytes);
    if (const auto v = map.find("watermark"))
        options.watermark_bytes = v->bytes(1, options.page_bytes);
    map.time("flush_us", options.flush_time);
    map.flag("flush_when_idle", options.flush_when_idle);
}

void read_unbuffered(const YamlValue& value, PublisherConfig& config) {
    const SectionReader map{value, {"unbuffered"}};
    netio::pubsub::PublishSocket::Options& options = config.unbuffered_options;
    map.whole("outstanding", options.outstanding_limit);
    if (const auto v = map.find("remainder")) {
        const std::size_t outstanding = options.outstanding_limit;
        const std::size_t most = outstanding / 2;
        const std::size_t remainder = map.whole("remainder", *v);
        if (remainder > most) {
            v->fail(std::to_string(remainder) + " is more than half of outstanding, which is " +
                        std::to_string(outstanding) +
                        ": one stopped subscriber would keep it from the others",
                    "a whole number from 1 to " + std::to_string(most));
        }
        options.remainder_limit = remainder;
    }
    map.bytes("memory", config.memory_bytes);
}

void read_close(const SectionReader& map, milliseconds& timeout, milliseconds& limit) {
    map.time("close_timeout_ms", timeout);
    // Whoever changes one need not change the other.
    limit = std::max(limit, timeout);
    if (const auto v = map.find("close_limit_ms")) {
        map.time("close_limit_ms", limit);
        if (limit < timeout)
            v->fail("less than close_timeout_ms",
                    "from " + std::to_string(timeout.count()) + ", as long as that");
    }
}

void read_session(const YamlValue& value, netio::SessionOptions& session) {
    const SectionReader map{value, {"session"}};
    map.bytes("receive_bytes", session.receive_bytes);
    map.whole("receive_count", session.receive_count);
    map.bytes("window_limit", session.window_limit);
    map.whole("send_count", session.send_count);
    map.time("handshake_timeout_ms", session.handshake_timeout);
    map.bytes("key_bytes", session.key_bytes);
    read_close(map, session.close_timeout, session.close_limit);
}

void read_sockets(const SectionReader& map, netio::pubsub::Publisher::Options& options) {
    map.flag("open", options.open);
    if (const auto v = map.find("session")) read_session(*v, options.session);
    if (map.find("heartbeat_ms")) {
        map.time("heartbeat_ms", options.session.heartbeat);
        // Whoever changes one need not change the other.
        options.session.dead_after =
            std::max(options.session.dead_after, 2 * options.session.heartbeat);
    }
    if (const auto v = map.find("dead_after_ms")) {
        map.time("dead_after_ms", options.session.dead_after);
        if (options.session.dead_after.count() > 0 &&
            options.session.dead_after < 2 * options.session.heartbeat) {
            v->fail("less than two heartbeats",
                    "0 (never), or at least twice heartbeat_ms (" +
                        std::to_string(options.session.heartbeat.count()) + ")");
        }
    }
    if (const auto v = map.find("slow_subscribers")) {
        options.slow_policy =
            static_cast<netio::pubsub::SlowPolicy>(map.word("slow_subscribers", *v));
    }
    if (const auto v = map.find("disconnect_after_ms")) {
        // A guest may ask to be disconnected where others block, but not where they are dropped.
        if (netio::pubsub::may_miss(options.slow_policy)) {
            v->fail("nobody is disconnected with slow_subscribers: drop or newest",
                    "with slow_subscribers: block or disconnect");
        }
        map.time("disconnect_after_ms", options.disconnect_after);
    }
    map.bytes("largest_message", options.largest_message_bytes);
    map.whole("subscriber_limit", options.subscriber_limit);
    map.whole("links_per_host", options.links_per_host);
    map.whole("ranges_per_subscriber_limit", options.ranges_per_subscriber_limit);
    map.whole("answer_limit", options.answer_limit);
    read_close(map, options.close_timeout, options.close_limit);
}

std::vector<TriggerConfig> read_triggers(const YamlValue& value, std::uint64_t first_seed) {
    std::vector<TriggerConfig> triggers;
    for (const auto& [name, rate] : value.names()) {
        const SectionReader map{rate, {"trigger"}};
        TriggerConfig& trigger = triggers.emplace_back();
        trigger.name = name;
        trigger.rate = read_rate_map(rate, "trigger");
        trigger.rate.per_second = map.real("per_second", map.get("per_second"));
        trigger.seed = first_seed;
        map.whole("seed", trigger.seed);
    }
    return triggers;
}

// What is wrong with the file is said when it is read.
void read_keys(const SectionReader& publisher, const std::string& folder, KeyArguments& keys) {
    const std::string allowed = "the path of a key file";
    if (const auto v = publisher.find("keys")) {
        if (!v->is_map()) {
            keys.keys = path_in_folder(v->text(allowed), folder);
        } else {
            const SectionReader map{*v, {"keys"}};
            keys.keys = path_in_folder(map.get("file").text(allowed), folder);
            std::uint64_t links = netio::ServerKeys::Options{}.links_per_host;
            map.whole("links_per_host", links);
            keys.links_per_host = links;
            map.time("look_interval_ms", keys.look_interval);
        }
    }
    if (const auto v = publisher.find("protection")) {
        if (keys.keys.empty()) v->fail("there are no keys", "with keys: FILE");
        const auto& row = publisher.row("protection");
        keys.protection =
            shape_of(row, Shape::Kind::word).words.at(publisher.word("protection", *v));
    }
}

// The name is likely to be misspelt there or in a stream.
void refuse_unused_triggers(const SectionReader& map, const PublisherConfig& config) {
    for (std::size_t i = 0; i < config.triggers.size(); ++i) {
        const auto uses = [i](const StreamConfig& stream) { return stream.trigger == i; };
        if (std::ranges::any_of(config.streams, uses)) continue;
        map.find("triggers")
            ->names()
            .at(i)
            .second.fail("no stream has this trigger",
                         "trigger: " + config.triggers[i].name + " in a stream");
    }
}

// What the streams of all publishers have in common.
struct Shared {
    std::string file;
    std::string folder;
    std::uint64_t next_seed = 1;
    bool input_taken = false; // standard input has a stream
};

void claim_input(const YamlValue& streams, const PublisherConfig& config, Shared& shared) {
    for (std::size_t i = 0; i < config.streams.size(); ++i) {
        if (!std::holds_alternative<PipeConfig>(config.streams[i].source)) continue;
        if (std::exchange(shared.input_taken, true)) {
            streams.list()[i].get("source").fail("standard input has a stream already",
                                                 "pipe in one stream only");
        }
    }
}

void keep_places(const SectionReader& map, PublisherConfig& config) {
    for (const char* const key : {"listen", "metrics", "bus", "keys", "streams"}) {
        const auto value = map.find(key);
        if (!value) continue;
        config.places.emplace(key, value->where());
        if (std::string_view{key} != "listen" || !value->is_list()) continue;
        const std::vector<YamlValue> all = value->list();
        for (std::size_t i = 0; i < all.size(); ++i)
            config.places.emplace("listen[" + std::to_string(i) + "]", all[i].where());
    }
}

PublisherConfig read_publisher(const SectionReader& map, Shared& shared) {
    PublisherConfig config;
    config.file = shared.file;
    keep_places(map, config);
    if (const auto v = map.find("name")) config.name = v->text("a word for people");
    config.listen = read_listen(map.get("listen"));
    if (const auto v = map.find("metrics")) config.metrics = read_metrics(*v);
    if (const auto v = map.find("bus")) config.bus = read_bus(*v, shared.folder);
    read_keys(map, shared.folder, config.keys);
    config.buffered = map.word("mode", map.get("mode")) == 1;
    read_sockets(map, config.publisher);
    const auto policy = map.find("slow_subscribers");
    if (policy && !config.buffered &&
        config.publisher.slow_policy == netio::pubsub::SlowPolicy::newest) {
        policy->fail("an unbuffered publisher keeps no messages",
                     "newest with mode: buffered; else block, drop or disconnect");
    }
    if (const auto v = map.find("buffered")) {
        if (!config.buffered) v->fail("the mode is unbuffered", "only with mode: buffered");
        read_buffered(*v, config.buffered_options);
    }
    if (const auto v = map.find("unbuffered")) {
        if (config.buffered) v->fail("the mode is buffered", "only with mode: unbuffered");
        read_unbuffered(*v, config);
    }
    if (const auto v = map.find("wait_subscribers")) {
        config.wait_subscribers = map.whole("wait_subscribers", *v);
        if (*config.wait_subscribers > config.publisher.subscriber_limit) {
            v->fail("more than subscriber_limit, so it would never begin",
                    "at most " + std::to_string(config.publisher.subscriber_limit));
        }
    }
    StreamLimits limits{.triggers = {},
                        .largest_message = config.publisher.largest_message_bytes,
                        .first_seed = shared.next_seed,
                        .folder = shared.folder};
    if (const auto v = map.find("triggers")) {
        config.triggers = read_triggers(*v, limits.first_seed);
        for (const TriggerConfig& trigger : config.triggers)
            limits.triggers.push_back(trigger.name);
    }
    const YamlValue streams = map.get("streams");
    config.streams = read_streams(streams, limits);
    refuse_unused_triggers(map, config);
    shared.next_seed += config.streams.size();
    claim_input(streams, config, shared);
    return config;
}

// What belongs to one of several.
void refuse_publisher_keys(const YamlValue& document) {
    for (const ConfigKey& key : config_keys()) {
        if (key.section != "publisher") continue;
        if (const auto v = document.find(key.name)) {
            v->fail("belongs to one publisher, and there are several",
                    "in each of `publishers`, or in a map that they take over (<<: *NAME)");
        }
    }
}

std::vector<PublisherConfig> read_publishers(const YamlValue& list, Shared& shared) {
    std::vector<PublisherConfig> publishers;
    for (const YamlValue& each : list.list()) {
        PublisherConfig config = read_publisher(SectionReader{each, {"publisher"}}, shared);
        config.position = publishers.size();
        if (config.name.empty()) config.name = std::to_string(config.position);
        if (std::ranges::find(publishers, config.name, &PublisherConfig::name) != publishers.end())
            each.fail("the name '" + config.name + "' is taken", "each name once");
        const auto announced_as = [&](const PublisherConfig& other) {
            return !config.bus.name.empty() && other.bus.name == config.bus.name &&
                   other.bus.where == config.bus.where;
        };
        if (std::ranges::any_of(publishers, announced_as))
            refuse_at(config, "bus",
                      "the name '" + config.bus.name +
                          "' is taken on this bus; allowed: each name once");
        publishers.push_back(std::move(config));
    }
    return publishers;
}

} // namespace

std::string PublisherConfig::place_of(std::string_view key) const {
    const auto found = places.find(key);
    if (found != places.end()) return found->second;
    return file + ": " + std::string{key};
}

void refuse_at(const PublisherConfig& config, std::string_view key, const std::string& problem) {
    std::vector<netio::Address> addresses = config.listen;
    if (!config.metrics.listen.empty())
        addresses.push_back(netio::parse_address(config.metrics.listen));
    std::string text = problem;
    for (const netio::Address& each : addresses) {
        const std::string free_port = to_string(netio::Address{each.host, 0});
        const std::string shown = to_string(each);
        for (std::size_t at = 0; (at = text.find(free_port, at)) != std::string::npos;) {
            text.replace(at, free_port.size(), shown);
            at += shown.size();
        }
    }
    throw ConfigError{config.place_of(key) + ": " + text};
}

PublishConfig parse_publish_config(const std::string& text, const std::string& file,
                                   const std::string& folder) {
    const YamlValue root = YamlValue::document(text, file);
    const bool several = root.find("publishers").has_value();
    if (several) refuse_publisher_keys(root);
    const SectionReader document{root, several
                                           ? std::vector<std::string_view>{"process"}
                                           : std::vector<std::string_view>{"publisher", "process"}};
    PublishConfig config;
    read_fabric(document, config.fabric);
    if (const auto v = document.find("loop")) config.loop = read_loop(document, *v);
    document.whole("loops", config.loops);
    Shared shared{.file = file, .folder = folder};
    document.whole("seed", shared.next_seed);
    if (const auto v = document.find("publishers")) {
        config.publishers = read_publishers(*v, shared);
    } else {
        config.publishers.push_back(read_publisher(document, shared));
    }
    return config;
}

PublishConfig load_publish_config(const std::string& path) {
    std::ifstream in{path};
    if (!in || std::filesystem::is_directory(path)) {
        throw ConfigError{path + ": cannot be read (" +
                          (in ? "it is a folder" : std::strerror(errno)) +
                          "); allowed: the path of a YAML file"};
    }
    std::string text(largest_file_bytes + 1, ' ');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > largest_file_bytes) {
        throw ConfigError{
            path + ": larger than a megabyte; allowed: the path of a YAML file, not of data; a "
                   "million fids are one short line, 0-999999"};
    }
    return parse_publish_config(text, path, std::filesystem::path{path}.parent_path().string());
}

} // namespace apps
