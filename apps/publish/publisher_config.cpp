// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publisher_config.hpp"

#include "apps/common/fid_spec.hpp"
#include "apps/common/pattern.hpp"
#include "netio/fabric.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace apps {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t any_number = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t largest_message = netio::pubsub::largest_message_limit;
constexpr std::uint64_t hour_ms = 3'600'000;
constexpr std::size_t largest_file_bytes = 1 << 20;

milliseconds read_ms(const YamlValue& value, std::uint64_t min, std::uint64_t max) {
    return milliseconds{static_cast<milliseconds::rep>(value.number(min, max))};
}

// --- the publisher --------------------------------------------------------------------------

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

std::string read_provider(const YamlValue& value) {
    const std::string allowed = "auto, tcp, verbs";
    std::string provider = value.text(allowed);
    if (provider == "auto") return provider;
    const std::string refusal = netio::provider_refusal(provider);
    if (!refusal.empty()) value.fail(refusal, allowed);
    return provider;
}

netio::EventLoop::Options read_loop(const YamlValue& value) {
    netio::EventLoop::Options options;
    const YamlValue mode = value.is_map() ? value.get("mode") : value;
    options.mode = static_cast<netio::LoopMode>(mode.choice({"blocking", "busy", "adaptive"}));
    if (!value.is_map()) return options;
    value.expect_keys({"mode", "spin_us"});
    if (const auto spin = value.find("spin_us")) {
        options.spin = microseconds{static_cast<microseconds::rep>(spin->number(0, 1'000'000))};
    }
    return options;
}

void read_buffered(const YamlValue& value, netio::pubsub::BufferedPublishSocket::Options& options) {
    value.expect_keys({"page_size", "pages", "share", "watermark", "flush_us", "flush_when_idle"});
    if (const auto v = value.find("page_size")) options.page_bytes = v->bytes(256, largest_message);
    if (const auto v = value.find("pages")) options.page_count = v->number(2, 1 << 20);
    if (const auto v = value.find("share")) {
        options.share_bytes = v->bytes(1, options.page_count * options.page_bytes / 2);
    }
    if (const auto v = value.find("watermark")) {
        options.watermark_bytes = v->bytes(1, options.page_bytes);
    }
    if (const auto v = value.find("flush_us")) {
        options.flush_time =
            microseconds{static_cast<microseconds::rep>(v->number(0, hour_ms * 1000))};
    }
    if (const auto v = value.find("flush_when_idle")) options.flush_when_idle = v->flag();
}

void read_unbuffered(const YamlValue& value, PublisherConfig& config) {
    value.expect_keys({"outstanding", "remainder", "memory"});
    if (const auto v = value.find("outstanding")) {
        config.unbuffered_options.outstanding_limit = v->number(1, 1 << 20);
    }
    if (const auto v = value.find("remainder")) {
        const std::size_t outstanding = config.unbuffered_options.outstanding_limit;
        const std::size_t most = std::max<std::size_t>(1, outstanding / 2);
        const std::size_t remainder = v->number(1, 1 << 20);
        if (remainder > most) {
            v->fail(std::to_string(remainder) + " is more than half of outstanding, which is " +
                        std::to_string(outstanding) +
                        ": one stopped subscriber would keep it from the others",
                    "a whole number from 1 to " + std::to_string(most));
        }
        config.unbuffered_options.remainder_limit = remainder;
    }
    if (const auto v = value.find("memory")) {
        config.memory_bytes = v->bytes(1, std::size_t{1} << 40);
    }
}

MetricsArguments read_metrics(const YamlValue& value) {
    MetricsArguments metrics;
    const YamlValue listen = value.is_map() ? value.get("listen") : value;
    metrics.listen = to_string(read_address(listen));
    if (!value.is_map()) return metrics;
    value.expect_keys({"listen", "open", "fids"});
    if (const auto v = value.find("open")) metrics.open = v->flag();
    if (const auto v = value.find("fids")) metrics.fids = v->number(0, 1'000'000);
    return metrics;
}

void read_publisher(const YamlValue& document, netio::pubsub::Publisher::Options& options) {
    if (const auto v = document.find("heartbeat_ms")) {
        options.session.heartbeat = read_ms(*v, 0, 65535);
        // Whoever changes one need not change the other.
        options.session.dead_after =
            std::max(options.session.dead_after, 2 * options.session.heartbeat);
    }
    if (const auto v = document.find("dead_after_ms")) {
        options.session.dead_after = read_ms(*v, 0, hour_ms);
        if (options.session.dead_after.count() > 0 &&
            options.session.dead_after < 2 * options.session.heartbeat) {
            v->fail("less than two heartbeats",
                    "0 (never), or at least twice heartbeat_ms (" +
                        std::to_string(options.session.heartbeat.count()) + ")");
        }
    }
    if (const auto v = document.find("slow_subscribers")) {
        options.slow_policy =
            static_cast<netio::pubsub::SlowPolicy>(v->choice({"block", "drop", "disconnect"}));
    }
    if (const auto v = document.find("disconnect_after_ms")) {
        // A guest may ask to be disconnected where others block, but not where they are dropped.
        if (options.slow_policy == netio::pubsub::SlowPolicy::drop) {
            v->fail("nobody is disconnected with slow_subscribers: drop",
                    "with slow_subscribers: block or disconnect");
        }
        options.disconnect_after = read_ms(*v, 1, hour_ms);
    }
    if (const auto v = document.find("largest_message")) {
        options.largest_message_bytes = v->bytes(1, largest_message);
    }
}

// --- streams --------------------------------------------------------------------------------

std::size_t count_of(const std::vector<netio::pubsub::FidRange>& fids) {
    std::size_t count = 0;
    for (const netio::pubsub::FidRange& range : fids)
        count += to_integer(range.last) - to_integer(range.first) + 1;
    return count;
}

std::vector<netio::pubsub::FidRange> read_fids(const YamlValue& value) {
    std::vector<netio::pubsub::FidRange> fids;
    for (const YamlValue& each : value.is_list() ? value.list() : std::vector<YamlValue>{value}) {
        const std::string text = each.as_line("a fid, a range A-B, {link: 0-23, ...}, or a list");
        try {
            const auto some = parse_fids(text);
            fids.insert(fids.end(), some.begin(), some.end());
        } catch (const std::invalid_argument& error) {
            const std::string message = error.what();
            const std::size_t semicolon = message.find("; allowed: ");
            each.fail(message.substr(0, semicolon), message.substr(semicolon + 11));
        }
    }
    std::uint64_t count = 0;
    for (const netio::pubsub::FidRange& range : fids) {
        const std::uint64_t width = to_integer(range.last) - to_integer(range.first);
        if (width >= 1'000'000 || (count += width + 1) > 1'000'000) {
            value.fail("more than a million fids", "at most 1000000 for a stream");
        }
    }
    fids = netio::pubsub::normalised(fids);
    if (count_of(fids) != count) value.fail("a fid is given twice", "every fid once");
    return fids;
}

std::string in_folder(const std::filesystem::path& path, const std::string& folder) {
    return path.is_absolute() || folder.empty() ? path.string() : (folder / path).string();
}

// What is wrong with it is said when it is read.
std::string read_key_file(const YamlValue& value, const std::string& folder) {
    return in_folder(value.text("the path of a key file"), folder);
}

std::string resolve(const YamlValue& value, const std::string& folder) {
    std::string resolved = in_folder(value.text("the path of a file"), folder);
    std::error_code error;
    if (!std::filesystem::is_regular_file(resolved, error)) {
        value.fail("'" + resolved + "' is not a file", "the path of a file that can be read");
    }
    return resolved;
}

SourceConfig read_source(const YamlValue& value, std::size_t fid_count, const std::string& folder) {
    const std::string_view files_too = ", {file: PATH}, {files: [PATH, ...]}";
    const std::string allowed = "pattern, pipe" + std::string{files_too};
    if (value.is_scalar()) {
        const std::string word = value.text(allowed);
        if (word == "file" || word == "files") value.fail("'" + word + "' needs a path", allowed);
        if (value.choice({"pattern", "pipe"}, files_too) == 0) return PatternConfig{};
        if (fid_count != 1) value.fail("standard input is one stream", "a single fid with pipe");
        return PipeConfig{};
    }
    if (!value.is_map()) value.fail("not a source", allowed);
    value.expect_keys({"file", "files", "repeat"});
    FileConfig config;
    const auto file = value.find("file");
    const auto files = value.find("files");
    if (file.has_value() == files.has_value()) value.fail("one of file and files", allowed);
    if (file) {
        config.paths.push_back(resolve(*file, folder));
    } else {
        for (const YamlValue& each : files->list())
            config.paths.push_back(resolve(each, folder));
        if (config.paths.size() != fid_count) {
            files->fail(std::to_string(config.paths.size()) + " files for " +
                            std::to_string(fid_count) + " fids",
                        "as many files as fids, or one with 'file'");
        }
    }
    if (const auto v = value.find("repeat")) config.repeat = v->flag();
    return config;
}

Sizes read_sizes(const YamlValue& value, std::size_t min, std::size_t max) {
    const std::string allowed =
        "a number of bytes, {uniform: {min, max}}, {normal: {mean, stddev, min, max}}, "
        "{exponential: {mean, min, max}}, {list: [...]}";
    if (value.is_scalar()) return FixedSize{value.bytes(min, max)};
    if (!value.is_map()) value.fail("not a size", allowed);
    const std::initializer_list<std::string_view> kinds = {"fixed", "uniform", "normal",
                                                           "exponential", "list"};
    value.expect_keys(kinds);
    if (std::ranges::count_if(kinds, [&](auto kind) { return value.find(kind).has_value(); }) != 1)
        value.fail("not one kind of size", allowed);
    const auto bounds = [&](const YamlValue& map) {
        const std::size_t low = map.find("min") ? map.get("min").bytes(min, max) : min;
        const std::size_t high = map.get("max").bytes(low, max);
        return std::pair{low, high};
    };
    if (const auto v = value.find("fixed")) return FixedSize{v->bytes(min, max)};
    if (const auto v = value.find("uniform")) {
        v->expect_keys({"min", "max"});
        const auto [low, high] = bounds(*v);
        return UniformSize{.min = low, .max = high};
    }
    if (const auto v = value.find("normal")) {
        v->expect_keys({"mean", "stddev", "min", "max"});
        const auto [low, high] = bounds(*v);
        return NormalSize{.mean = v->get("mean").real(0, 1e9),
                          .stddev = v->get("stddev").real(0, 1e9),
                          .min = low,
                          .max = high};
    }
    if (const auto v = value.find("exponential")) {
        v->expect_keys({"mean", "min", "max"});
        const auto [low, high] = bounds(*v);
        return ExponentialSize{.mean = v->get("mean").real(0, 1e9), .min = low, .max = high};
    }
    SizeList list;
    for (const YamlValue& each : value.get("list").list())
        list.bytes.push_back(each.bytes(min, max));
    return list;
}

std::optional<RateConfig> read_rate(const YamlValue& value) {
    if (value.is_map()) {
        value.expect_keys({"per_second", "burst"});
        RateConfig rate{.per_second = value.get("per_second").real(0, 1e9)};
        if (const auto v = value.find("burst")) rate.burst = v->number(1, 1'000'000);
        return rate;
    }
    const std::string_view also = ", max, or {per_second, burst}";
    if (value.is_scalar() && value.text("a number, max, or {per_second, burst}") == "max")
        return std::nullopt;
    return RateConfig{.per_second = value.real(0, 1e9, also)};
}

StreamConfig read_stream(const YamlValue& value, const PublisherConfig& config,
                         std::uint64_t default_seed, const std::string& folder) {
    value.expect_keys({"fids", "meaning", "source", "size", "rate", "count", "status", "seed"});
    StreamConfig stream;
    stream.fids = read_fids(value.get("fids"));
    if (const auto v = value.find("meaning")) stream.meaning = v->text("a word for people");
    stream.source = read_source(value.get("source"), count_of(stream.fids), folder);
    const bool pattern = std::holds_alternative<PatternConfig>(stream.source);
    const std::size_t min = pattern ? smallest_pattern_bytes : 1;
    const std::size_t max = config.publisher.largest_message_bytes;
    if (min > max) {
        value.fail("a pattern has at least " + std::to_string(min) +
                       " bytes, and largest_message is " + std::to_string(max),
                   "a larger largest_message, or another source");
    }
    if (const auto v = value.find("size")) {
        stream.sizes = read_sizes(*v, min, max);
    } else if (pattern) {
        value.fail("key 'size' is missing", "a size, as a pattern has none of its own");
    } else {
        stream.sizes = FixedSize{std::min<std::size_t>(64 * 1024, max)};
    }
    if (const auto v = value.find("rate")) stream.rate = read_rate(*v);
    if (const auto v = value.find("count")) stream.count = v->number(1, any_number);
    if (const auto v = value.find("status")) {
        stream.status = static_cast<std::uint8_t>(v->number(0, UINT8_MAX));
    }
    const auto seed = value.find("seed");
    stream.seed = seed ? seed->number(0, any_number) : default_seed;
    return stream;
}

void refuse_shared_input(const YamlValue& streams, const std::vector<StreamConfig>& configs) {
    bool taken = false;
    for (std::size_t i = 0; i < configs.size(); ++i) {
        if (!std::holds_alternative<PipeConfig>(configs[i].source)) continue;
        if (std::exchange(taken, true)) {
            streams.list()[i].get("source").fail("standard input has a stream already",
                                                 "pipe in one stream only");
        }
    }
}

void refuse_shared_fids(const YamlValue& streams, const std::vector<StreamConfig>& configs) {
    struct Claim {
        netio::pubsub::FidRange fids;
        std::size_t stream = 0;
    };
    std::vector<Claim> claims;
    for (std::size_t i = 0; i < configs.size(); ++i)
        for (const netio::pubsub::FidRange& range : configs[i].fids)
            claims.push_back({.fids = range, .stream = i});
    std::ranges::sort(claims, {}, [](const Claim& claim) { return claim.fids.first; });
    // If any two overlap, two neighbours do: those of one stream never overlap.
    for (std::size_t i = 1; i < claims.size(); ++i) {
        const Claim& one = claims[i - 1];
        const Claim& other = claims[i];
        if (one.fids.last < other.fids.first) continue;
        const auto [former, latter] = std::minmax(one.stream, other.stream);
        streams.list()[latter].get("fids").fail(to_string(other.fids.first) +
                                                    " belongs to streams[" +
                                                    std::to_string(former) + "] already",
                                                "every fid in one stream only");
    }
}

} // namespace

PublisherConfig parse_publisher_config(const std::string& text, const std::string& file,
                                       const std::string& folder) {
    const YamlValue document = YamlValue::document(text, file);
    document.expect_keys({"listen", "open", "bus", "keys", "protection", "provider", "mode", "loop",
                          "buffered", "unbuffered", "heartbeat_ms", "dead_after_ms", "metrics",
                          "slow_subscribers", "disconnect_after_ms", "largest_message",
                          "wait_subscribers", "seed", "streams"});
    PublisherConfig config;
    config.file = file;
    config.listen = read_listen(document.get("listen"));
    if (const auto v = document.find("open")) config.publisher.open = v->flag();
    if (const auto v = document.find("bus")) config.bus = read_bus(*v, folder);
    if (const auto v = document.find("keys")) config.keys.keys = read_key_file(*v, folder);
    if (const auto v = document.find("metrics")) config.metrics = read_metrics(*v);
    if (const auto v = document.find("protection")) {
        if (config.keys.keys.empty()) v->fail("there are no keys", "with keys: FILE");
        constexpr std::array levels{"none", "peers", "integrity", "privacy"};
        config.keys.protection = levels.at(v->choice({levels[0], levels[1], levels[2], levels[3]}));
    }
    if (const auto v = document.find("provider")) config.provider = read_provider(*v);
    if (const auto v = document.find("loop")) config.loop = read_loop(*v);
    config.buffered = document.get("mode").choice({"unbuffered", "buffered"}) == 1;
    read_publisher(document, config.publisher);
    if (const auto v = document.find("buffered")) {
        if (!config.buffered) v->fail("the mode is unbuffered", "only with mode: buffered");
        read_buffered(*v, config.buffered_options);
    }
    if (const auto v = document.find("unbuffered")) {
        if (config.buffered) v->fail("the mode is buffered", "only with mode: unbuffered");
        read_unbuffered(*v, config);
    }
    if (const auto v = document.find("wait_subscribers")) {
        config.wait_subscribers = v->number(0, 1'000'000);
    }
    const auto seed = document.find("seed");
    const std::uint64_t first_seed = seed ? seed->number(0, any_number) : 1;
    const YamlValue streams = document.get("streams");
    for (const YamlValue& each : streams.list()) {
        config.streams.push_back(
            read_stream(each, config, first_seed + config.streams.size(), folder));
    }
    refuse_shared_fids(streams, config.streams);
    refuse_shared_input(streams, config.streams);
    return config;
}

PublisherConfig load_publisher_config(const std::string& path) {
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
            path + ": larger than a megabyte; allowed: the path of a YAML file, not of data"};
    }
    return parse_publisher_config(text, path, std::filesystem::path{path}.parent_path().string());
}

} // namespace apps
