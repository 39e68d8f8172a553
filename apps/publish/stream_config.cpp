// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/stream_config.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/player.hpp"
#include "netio/base/control_characters.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace apps {
namespace {

using namespace shapes;

constexpr netio::Duration shortest_time{1};
constexpr std::chrono::hours longest_time{1};

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

std::string resolve(const YamlValue& value, const std::string& folder) {
    std::string resolved = path_in_folder(value.text("the path of a file"), folder);
    std::error_code error;
    const std::string allowed = "the path of a file that can be read";
    if (!std::filesystem::is_regular_file(resolved, error))
        value.fail("'" + resolved + "' is not a file", allowed);
    if (::access(resolved.c_str(), R_OK) != 0) {
        value.fail("'" + resolved + "' cannot be read: " + std::generic_category().message(errno),
                   allowed);
    }
    return resolved;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = netio::utf8_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

// The meaning as it is announced on a bus, if there is one.
std::string read_meaning(const YamlValue& value) {
    std::string meaning = value.text("a description");
    std::string flaw = netio::pubsub::announced_text_flaw(meaning);
    if (flaw.empty() && !is_utf8(meaning)) flaw = "not UTF-8";
    if (!flaw.empty()) {
        value.fail(flaw, fmt::format("one line of UTF-8, up to {} bytes",
                                     netio::pubsub::announced_text_limit));
    }
    return meaning;
}

void read_source(const YamlValue& value, StreamConfig& stream, ReadContext& context) {
    constexpr std::string_view files_too =
        ", {file: PATH}, {files: [PATH, ...]}, {recording: PATH}";
    const std::string allowed = "pattern, pipe" + std::string{files_too};
    context.fid_count = count_of(stream.fids);
    if (value.is_scalar()) {
        const std::string word = value.text(allowed);
        if (word == "file" || word == "files" || word == "recording")
            value.fail("'" + word + "' needs a path", allowed);
        if (value.choice({"pattern", "pipe"}, files_too) == 0) return; // as it is
        if (context.fid_count != 1)
            value.fail("standard input is a single stream", "a single fid with pipe");
        if (std::exchange(context.input_taken, true))
            value.fail("another stream reads standard input already", "pipe in one stream only");
        stream.source = PipeConfig{};
        return;
    }
    if (!value.is_map()) value.fail("not a valid source", allowed);
    expect_keys(value, {"source"});
    const auto has = [&value](std::string_view key) { return value.find(key).has_value(); };
    if (int{has("file")} + int{has("files")} + int{has("recording")} != 1)
        value.fail("needs one of file, files and recording", allowed);
    read_rows(value, "source", stream.source, context);
}

void read_files(const YamlValue& value, SourceConfig& source, ReadContext& context) {
    FileConfig& config = source.emplace<FileConfig>();
    for (const YamlValue& each : value.list())
        config.paths.push_back(resolve(each, context.folder));
    if (config.paths.size() != context.fid_count) {
        value.fail(fmt::format("{} files for {} fids", config.paths.size(), context.fid_count),
                   "as many files as fids, or one with 'file'");
    }
}

std::string read_recording_path(const YamlValue& value, const std::string& folder) {
    std::string path = path_in_folder(value.text("the path of a recording"), folder);
    try {
        for (const std::string& file : netio::recording_files(path))
            if (::access(file.c_str(), R_OK) != 0)
                value.fail("'" + file +
                               "' cannot be read: " + std::generic_category().message(errno),
                           "the path of a recording that can be read");
    } catch (const netio::RecordingError& error) {
        value.fail(error.what(), "a file, a folder, or a rotated set of `netio record`");
    }
    return path;
}

std::string read_recording_time(const YamlValue& value) {
    const std::string allowed = "a time after the begin of the recording, as 500ms, 10s, 2m, or a "
                                "time in UTC, as 2026-11-27T17:46:09.5Z";
    std::string text = value.text(allowed);
    if (!parse_recording_time(text, {})) value.fail("'" + text + "' is not a time", allowed);
    return text;
}

void read_map(const YamlValue& value, replay::FidReplacements& replacements) {
    for (const YamlValue& each : value.is_list() ? value.list() : std::vector<YamlValue>{value}) {
        try {
            replacements.add(each.text("OLD=NEW"));
        } catch (const std::invalid_argument& error) {
            const std::string message = error.what();
            const std::size_t semicolon = message.find("; allowed: ");
            each.fail(message.substr(0, semicolon), message.substr(semicolon + 11));
        }
    }
}

// What the recording decides cannot be given.
void refuse_keys_of_others(const YamlValue& stream) {
    for (const std::string_view key :
         {"size", "rate", "trigger", "count", "header", "slices", "faults", "status", "seed"}) {
        if (const auto found = stream.find(key))
            found->fail("not allowed with this source", "with a source other than a recording");
    }
}

void read_rate(const YamlValue& value, StreamConfig& stream, ReadContext& context) {
    if (value.is_scalar() && value.text("a number, max, or {per_second, burst}") == "max") return;
    RateConfig& rate = stream.rate.emplace();
    if (!value.is_map()) {
        rate.per_second = value.real(0, 1e9, ", max, or {per_second, burst}");
        return;
    }
    context.fid_count = count_of(stream.fids);
    read_section(value, "rate", rate, context);
    if (value.find("per_second").has_value() == value.find("per_fid").has_value())
        value.fail("one of per_second and per_fid", "{per_second: N} or {per_fid: N}");
}

void read_trigger(const YamlValue& value, StreamConfig& stream, ReadContext& context) {
    const std::vector<std::string_view> names{context.triggers.begin(), context.triggers.end()};
    if (names.empty())
        value.fail("needs the publisher's triggers", "together with triggers: {NAME: ...}");
    stream.trigger = value.choice(names);
}

HeaderConfig read_header(const YamlValue& value) {
    const std::string allowed = "event, or 1 to 8 bytes in hex: 0xcafe01";
    const std::string text = value.text(allowed);
    if (text == "event") return {.bytes = {}, .event = true};
    HeaderConfig header;
    const std::string_view digits = std::string_view{text}.substr(text.starts_with("0x") ? 2 : 0);
    for (std::size_t at = 0; at + 2 <= digits.size(); at += 2) {
        unsigned byte = 0;
        const char* const end = digits.data() + at + 2;
        const auto [stop, error] = std::from_chars(digits.data() + at, end, byte, 16);
        if (error != std::errc{} || stop != end) break;
        header.bytes.push_back(static_cast<std::byte>(byte));
    }
    if (header.bytes.empty() || header.bytes.size() > 8 ||
        digits.size() != 2 * header.bytes.size()) {
        value.fail("'" + text + "' is not a valid header", allowed);
    }
    return header;
}

PatternConfig& pattern_of(const YamlValue& value, StreamConfig& stream) {
    if (auto* const pattern = std::get_if<PatternConfig>(&stream.source)) return *pattern;
    value.fail("not allowed with this source", "with source: pattern");
}

void read_faults(const YamlValue& value, StreamConfig& stream, ReadContext& context) {
    FaultConfig& faults = pattern_of(value, stream).faults;
    read_section(value, "faults", faults, context);
    if (faults.missing + faults.duplicated + faults.corrupted + faults.late + faults.truncated > 1)
        value.fail("more faults than messages", "at most 1 in all");
}

std::size_t smallest_bytes(const SourceConfig& source) {
    const auto* const pattern = std::get_if<PatternConfig>(&source);
    if (pattern == nullptr) return 1;
    const bool damaged = pattern->faults.corrupted > 0 || pattern->faults.truncated > 0;
    return damaged ? whole_pattern_bytes + 1 : smallest_pattern_bytes;
}

// --- sizes

template <typename Size>
void read_spread(const YamlValue& value, std::string_view section, Sizes& sizes,
                 ReadContext& context) {
    Size& size = sizes.emplace<Size>();
    size.min = context.size_min;
    read_section(value, section, size, context);
    if constexpr (requires { size.mean; }) {
        // A mean outside of the limits would make nearly all sizes the same.
        if (size.mean < static_cast<double>(size.min) || size.mean > static_cast<double>(size.max))
            value.get("mean").fail(
                "outside of min and max",
                fmt::format("a number from {} to {}, the smallest and the largest size", size.min,
                            size.max));
    }
}

void read_size(const YamlValue& value, Sizes& sizes, ReadContext& context) {
    const std::string allowed =
        "a number of bytes, {uniform: {min, max}}, {normal: {mean, stddev, min, max}}, "
        "{exponential: {mean, min, max}}, {list: [...]}";
    if (!value.is_scalar() && !value.is_map()) value.fail("not a valid size", allowed);
    if (value.is_map()) {
        expect_keys(value, {"size"});
        const auto is_given = [&](const ConfigKey& key) {
            return key.section == "size" && value.find(key.name).has_value();
        };
        if (std::ranges::count_if(config_keys(), is_given) != 1)
            value.fail("needs exactly one kind of size", allowed);
    }
    read_short_section(value, "size", sizes, context);
}

template <typename Size>
void add_spread(Keys& keys, const std::string& section, const std::string& min_meaning,
                const std::string& max_meaning) {
    const Shape size = bytes(1, largest_message);
    SectionRows<Size> rows{keys, section};
    if constexpr (requires(Size each) { each.mean; }) {
        rows.add("mean", &Size::mean, real(0, 1e9), "in bytes");
        rows.require();
    }
    if constexpr (requires(Size each) { each.stddev; }) {
        rows.add("stddev", &Size::stddev, real(0, 1e9), "in bytes");
        rows.require();
    }
    rows.add_custom("min", {size}, "the smallest size that the source allows", min_meaning,
                    [](const YamlValue& value, Size& target, ReadContext& context) {
                        target.min = value.bytes(context.size_min, context.size_max);
                    });
    rows.add_custom("max", {size}, "", max_meaning,
                    [](const YamlValue& value, Size& target, ReadContext& context) {
                        target.max = value.bytes(target.min, context.size_max);
                    });
    rows.require();
}

void add_sizes(Keys& keys) {
    const Shape size = bytes(1, largest_message);
    SectionRows<Sizes> sizes{keys, "size"};
    sizes.add_custom("fixed", {size}, "", "all messages have the same size",
                     [](const YamlValue& value, Sizes& target, ReadContext& context) {
                         target = FixedSize{value.bytes(context.size_min, context.size_max)};
                     });
    sizes.add_custom("uniform", {section("uniform")}, "", "uniform distribution",
                     [](const YamlValue& value, Sizes& target, ReadContext& context) {
                         read_spread<UniformSize>(value, "uniform", target, context);
                     });
    sizes.add_custom("normal", {section("normal")}, "", "normal distribution",
                     [](const YamlValue& value, Sizes& target, ReadContext& context) {
                         read_spread<NormalSize>(value, "normal", target, context);
                     });
    sizes.add_custom("exponential", {section("exponential")}, "",
                     "exponential distribution: many small messages, few large ones",
                     [](const YamlValue& value, Sizes& target, ReadContext& context) {
                         read_spread<ExponentialSize>(value, "exponential", target, context);
                     });
    sizes.add_custom("list", {list(size)}, "", "these sizes in turn",
                     [](const YamlValue& value, Sizes& target, ReadContext& context) {
                         SizeList& all = target.emplace<SizeList>();
                         for (const YamlValue& each : value.list())
                             all.bytes.push_back(each.bytes(context.size_min, context.size_max));
                     });
    add_spread<UniformSize>(keys, "uniform", "smallest size", "largest size");
    add_spread<NormalSize>(keys, "normal", "smaller sizes are raised to this",
                           "larger sizes are reduced to this");
    add_spread<ExponentialSize>(keys, "exponential", "smaller sizes are raised to this",
                                "larger sizes are reduced to this");
}

// --- a stream

// Timing keys, shared by rates and triggers. `rate` returns an object's rate.
template <typename Object, typename Rate>
void add_occasions(SectionRows<Object>& rows, const std::string& what, Rate rate) {
    const auto part = [rate](auto member) {
        return [ rate, member ](Object & object) -> auto& {
            return rate(object).*member;
        };
    };
    rows.add("burst", part(&RateConfig::burst), whole(1, 1'000'000),
             "number of " + what + " at once, at accordingly longer intervals");
    rows.add("timing", part(&RateConfig::poisson), word({"periodic", "poisson"}),
             "equal intervals, or independent random intervals");
    rows.add("train", part(&RateConfig::train), duration(shortest_time, longest_time),
             "length of a train, within which the rate applies; no messages follow for `gap`, as "
             "between the bunch trains of a collider",
             "no trains");
    rows.add_custom("gap", {duration(shortest_time, longest_time)}, "none", "with `train`",
                    [rate](const YamlValue& value, Object& object, ReadContext&) {
                        rate(object).gap = value.time(shortest_time, longest_time, shortest_time);
                        if (rate(object).train.count() == 0)
                            value.fail("needs train", "together with train");
                    });
}

void add_stream(Keys& keys) {
    SectionRows<StreamConfig> stream{keys, "stream"};
    stream.add_custom("fids", {fids()}, "",
                      "`7`, `0x1f`, `0-63`, `0-63/2`, `{detector: 3, link: 0-23, elink: 0-39}`, "
                      "`mask:M=V`, or a list; each fid in one stream only, at most a million fids "
                      "([fids by their fields](discovery.md#fids-by-their-fields))",
                      [](const YamlValue& value, StreamConfig& config, ReadContext&) {
                          config.fids = read_fids(value);
                      });
    stream.require();
    stream.add_custom("meaning", {text("TEXT")}, "none", "description of the fids, shown on a bus",
                      [](const YamlValue& value, StreamConfig& config, ReadContext&) {
                          config.meaning = read_meaning(value);
                      });
    stream.add_custom("source", {word({"pattern", "pipe"}), section("source")}, "",
                      "self-checking messages for `netio subscribe --verify`; standard input, for "
                      "a single fid; files; or a recording",
                      read_source);
    stream.require();
    stream.add_deferred("size", {bytes(1, largest_message), section("size")},
                        "64KiB; required for a pattern",
                        "size of a message; at most `largest_message`");
    stream.add_custom(
        "rate", {word({"max"}), real(0, 1e9), section("rate")}, "max",
        "messages per second of all its fids together, or as fast as subscribers accept them",
        read_rate);
    stream.add_custom("trigger", {text("NAME")}, "none",
                      "instead of a rate: every fid publishes one message for each event of this "
                      "trigger, with the same number",
                      read_trigger);
    stream.add("count", &StreamConfig::count, whole(1, any_number),
               "number of messages of each fid", "until the source ends");
    stream.add_custom("header", {text("HEX"), word({"event"})}, "none",
                      "header before each message: up to 8 bytes as `0xcafe01`, or the event "
                      "number (without a trigger the message number) in 8 bytes, little-endian; "
                      "`netio subscribe --verify` then needs `--header-bytes`",
                      [](const YamlValue& value, StreamConfig& config, ReadContext&) {
                          config.header = read_header(value);
                      });
    stream.add(
        "slices", &StreamConfig::slices, whole(1, 16),
        "number of memory areas that a message is gathered from; only the network sees them");
    stream.add_custom("faults", {section("faults")}, "none",
                      "pattern only: inject faults to test a checker; the report has their numbers",
                      read_faults);
    stream.add("status", &StreamConfig::status, whole(0, 255), "the status byte of each message");
    stream.add("seed", &StreamConfig::seed, whole(0, any_number),
               "seed of this stream's random values",
               "`seed` of the process plus the stream's index");
}

void add_recording(Keys& keys) {
    SectionRows<RecordingConfig> recording{keys, "recording"};
    recording.add_custom("file", {text("PATH")}, "",
                         "a recording, a folder of them, or a rotated set without its numbers, "
                         "relative to this file",
                         [](const YamlValue& value, RecordingConfig& config, ReadContext& context) {
                             config.path = read_recording_path(value, context.folder);
                         });
    recording.require();
    recording.add_custom("rate", {text("RATE")}, "recorded", "`recorded`, `2x`, `0.5x`, or `max`",
                         [](const YamlValue& value, RecordingConfig& config, ReadContext&) {
                             const std::string text = value.text(replay::allowed_rates);
                             if (!replay::read_rate(text, config.factor))
                                 value.fail("'" + text + "' is not a rate", replay::allowed_rates);
                         });
    recording.add("repeat", &RecordingConfig::repeat, whole(1, 1'000'000'000),
                  "publish the recording this many times");
    recording.add_custom("map", {text("OLD=NEW"), list(text("OLD=NEW"))}, "none",
                         "publish other fids, as `5=7`, `0-63=100-163`; `fids` of the stream are "
                         "the new ones",
                         [](const YamlValue& value, RecordingConfig& config, ReadContext&) {
                             read_map(value, config.replacements);
                         });
    recording.add_custom("from", {text("TIME")}, "the beginning",
                         "a time after the beginning of the recording, as `10s`, or in UTC",
                         [](const YamlValue& value, RecordingConfig& config, ReadContext&) {
                             config.from = read_recording_time(value);
                         });
    recording.add_custom("until", {text("TIME")}, "the end",
                         "as `from`; messages from it on are skipped",
                         [](const YamlValue& value, RecordingConfig& config, ReadContext&) {
                             config.until = read_recording_time(value);
                         });
    recording.add_custom(
        "time_stamps", {word({"publisher", "recorded"})}, "publisher",
        "`recorded`: the publisher, with `time_stamps: tai`, sends the recorded publication times",
        [](const YamlValue& value, RecordingConfig& config, ReadContext& context) {
            config.sends_recorded_times = value.choice({"publisher", "recorded"}) == 1;
            if (config.sends_recorded_times && !context.sends_times)
                value.fail("the publisher sends no time stamps",
                           "together with time_stamps: tai of the publisher");
        });
}

void add_source(Keys& keys) {
    SectionRows<SourceConfig> source{keys, "source"};
    source.add_custom("file", {text("PATH")}, "", "one file for all fids, relative to this file",
                      [](const YamlValue& value, SourceConfig& config, ReadContext& context) {
                          config.emplace<FileConfig>().paths.push_back(
                              resolve(value, context.folder));
                      });
    source.add_custom("files", {list(text("PATH"))}, "", "one file for each fid", read_files);
    source.add_custom("recording", {text("PATH"), section("recording")}, "",
                      "the messages of a recording that have one of the fids",
                      [](const YamlValue& value, SourceConfig& config, ReadContext& context) {
                          read_short_section(value, "recording", config.emplace<RecordingConfig>(),
                                             context);
                      });
    source.add_custom("repeat", {flag()}, "false", "start again at the end of the file",
                      [](const YamlValue& value, SourceConfig& config, ReadContext&) {
                          auto* const file = std::get_if<FileConfig>(&config);
                          if (file == nullptr)
                              value.fail("not allowed with a recording",
                                         "{recording: {file: PATH, repeat: NUMBER}}");
                          file->repeat = value.flag();
                      });
}

void add_rates_and_faults(Keys& keys) {
    SectionRows<RateConfig> rate{keys, "rate"};
    rate.add("per_second", &RateConfig::per_second, real(0, 1e9),
             "average messages per second of all fids together", "`per_fid`");
    rate.add_custom(
        "per_fid", {real(0, 1e9)}, "`per_second`", "average messages per second of each fid",
        [](const YamlValue& value, RateConfig& config, ReadContext& context) {
            config.per_second = value.real(0, 1e9) * static_cast<double>(context.fid_count);
        });
    add_occasions(rate, "messages", [](RateConfig& config) -> RateConfig& { return config; });

    const auto rate_of = [](TriggerConfig& config) -> RateConfig& { return config.rate; };
    SectionRows<TriggerConfig> trigger{keys, "trigger"};
    trigger.add(
        "per_second", [](TriggerConfig & config) -> auto& { return config.rate.per_second; },
        real(0, 1e9), "average events per second");
    trigger.require();
    add_occasions(trigger, "events", rate_of);
    trigger.add("seed", &TriggerConfig::seed, whole(0, any_number),
                "seed of this trigger's random values", "`seed` of the process");

    SectionRows<FaultConfig> faults{keys, "faults"};
    const Shape part = real(0, 1);
    faults.add("missing", &FaultConfig::missing, part, "fraction of messages that are not sent",
               "none");
    faults.add("duplicated", &FaultConfig::duplicated, part,
               "fraction of messages that are sent twice", "none");
    faults.add("corrupted", &FaultConfig::corrupted, part,
               "fraction of messages with a wrong bit after the pattern's header", "none");
    faults.add("late", &FaultConfig::late, part,
               "fraction of messages that are sent after the next message of the fid", "none");
    faults.add("truncated", &FaultConfig::truncated, part, "fraction of messages without their end",
               "none");
}

StreamConfig read_stream(const YamlValue& value, ReadContext& context) {
    StreamConfig stream{.seed = context.next_seed++};
    read_section(value, "stream", stream, context);
    if (stream.trigger && value.find("rate"))
        value.get("trigger").fail("the stream also has a rate", "either rate or trigger");
    if (std::holds_alternative<RecordingConfig>(stream.source)) {
        refuse_keys_of_others(value);
        return stream;
    }
    context.size_min = smallest_bytes(stream.source);
    context.size_max =
        context.largest_message - std::min(context.largest_message, bytes_of(stream.header));
    if (context.size_min > context.size_max) {
        value.fail(fmt::format("its messages have at least {} bytes, but largest_message is {}",
                               context.size_min, context.largest_message),
                   "a larger largest_message, or another source");
    }
    if (const auto size = value.find("size")) {
        read_size(*size, stream.sizes, context);
    } else if (std::holds_alternative<PatternConfig>(stream.source)) {
        value.fail("key 'size' is missing", "a size, because a pattern has no default");
    } else {
        stream.sizes = FixedSize{std::min<std::size_t>(64 * 1024, context.size_max)};
    }
    return stream;
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
    // If any two ranges overlap, two neighbours overlap: ranges of one stream never overlap.
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

std::size_t bytes_of(const HeaderConfig& header) {
    return header.event ? 8 : header.bytes.size();
}

std::string path_in_folder(const std::string& path, const std::string& folder) {
    const std::filesystem::path given{path};
    return given.is_absolute() || folder.empty() ? path : (folder / given).string();
}

void add_streams(Keys& keys) {
    add_stream(keys);
    add_source(keys);
    add_recording(keys);
    add_rates_and_faults(keys);
    add_sizes(keys);
}

std::vector<StreamConfig> read_streams(const YamlValue& list, ReadContext& context) {
    std::vector<StreamConfig> streams;
    for (const YamlValue& each : list.list())
        streams.push_back(read_stream(each, context));
    refuse_shared_fids(list, streams);
    return streams;
}

} // namespace apps
