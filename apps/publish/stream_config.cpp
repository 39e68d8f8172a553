// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/stream_config.hpp"

#include "apps/common/fid_spec.hpp"
#include "apps/common/pattern.hpp"
#include "apps/publish/section_reader.hpp"
#include "netio/base/control_characters.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

namespace apps {
namespace {

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

// As it is announced on a bus, if there is one.
std::string read_meaning(const YamlValue& value) {
    std::string meaning = value.text("a word for people");
    std::string flaw = netio::pubsub::announced_text_flaw(meaning);
    if (flaw.empty() && !is_utf8(meaning)) flaw = "not UTF-8";
    if (!flaw.empty()) {
        value.fail(flaw, fmt::format("one line of UTF-8, up to {} bytes",
                                     netio::pubsub::announced_text_limit));
    }
    return meaning;
}

SourceConfig read_source(const SectionReader& stream, std::size_t fid_count,
                         const std::string& folder) {
    const YamlValue value = stream.get("source");
    constexpr std::string_view files_too = ", {file: PATH}, {files: [PATH, ...]}";
    const std::string allowed = "pattern, pipe" + std::string{files_too};
    if (value.is_scalar()) {
        const std::string word = value.text(allowed);
        if (word == "file" || word == "files") value.fail("'" + word + "' needs a path", allowed);
        if (stream.word("source", value, files_too) == 0) return PatternConfig{};
        if (fid_count != 1) value.fail("standard input is one stream", "a single fid with pipe");
        return PipeConfig{};
    }
    if (!value.is_map()) value.fail("not a source", allowed);
    const SectionReader source{value, {"source"}};
    FileConfig config;
    const auto file = source.find("file");
    const auto files = source.find("files");
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
    source.flag("repeat", config.repeat);
    return config;
}

Sizes read_sizes(const YamlValue& value, std::size_t min, std::size_t max) {
    const std::string allowed =
        "a number of bytes, {uniform: {min, max}}, {normal: {mean, stddev, min, max}}, "
        "{exponential: {mean, min, max}}, {list: [...]}";
    if (value.is_scalar()) return FixedSize{value.bytes(min, max)};
    if (!value.is_map()) value.fail("not a size", allowed);
    const SectionReader size{value, {"size"}};
    const auto is_given = [&](const ConfigKey& key) {
        return key.section == "size" && value.find(key.name).has_value();
    };
    if (std::ranges::count_if(config_keys(), is_given) != 1)
        value.fail("not one kind of size", allowed);
    const auto bounds = [&](const SectionReader& map) {
        const auto low_value = map.find("min");
        const std::size_t low = low_value ? low_value->bytes(min, max) : min;
        const std::size_t high = map.get("max").bytes(low, max);
        return std::pair{low, high};
    };
    // A mean outside would make nearly all sizes the same.
    const auto mean = [](const SectionReader& map, std::size_t low, std::size_t high) {
        const YamlValue given = map.get("mean");
        const double bytes = map.real("mean", given);
        if (bytes < static_cast<double>(low) || bytes > static_cast<double>(high)) {
            given.fail("outside of min and max",
                       fmt::format("a number from {} to {}, the smallest and the largest size", low,
                                   high));
        }
        return bytes;
    };
    if (const auto v = size.find("fixed")) return FixedSize{v->bytes(min, max)};
    if (const auto v = size.find("uniform")) {
        const auto [low, high] = bounds(SectionReader{*v, {"uniform"}});
        return UniformSize{.min = low, .max = high};
    }
    if (const auto v = size.find("normal")) {
        const SectionReader normal{*v, {"normal"}};
        const auto [low, high] = bounds(normal);
        return NormalSize{.mean = mean(normal, low, high),
                          .stddev = normal.real("stddev", normal.get("stddev")),
                          .min = low,
                          .max = high};
    }
    if (const auto v = size.find("exponential")) {
        const SectionReader exponential{*v, {"exponential"}};
        const auto [low, high] = bounds(exponential);
        return ExponentialSize{.mean = mean(exponential, low, high), .min = low, .max = high};
    }
    SizeList list;
    for (const YamlValue& each : size.find("list")->list())
        list.bytes.push_back(each.bytes(min, max));
    return list;
}

std::optional<RateConfig> read_rate(const SectionReader& stream, const YamlValue& value,
                                    std::size_t fid_count) {
    if (!value.is_map()) {
        if (value.is_scalar() && value.text("a number, max, or {per_second, burst}") == "max")
            return std::nullopt;
        return RateConfig{.per_second =
                              stream.real("rate", value, ", max, or {per_second, burst}")};
    }
    RateConfig rate = read_rate_map(value, "rate");
    const SectionReader map{value, {"rate"}};
    const auto all = map.find("per_second");
    const auto each = map.find("per_fid");
    if (all.has_value() == each.has_value())
        value.fail("one of per_second and per_fid", "{per_second: N} or {per_fid: N}");
    rate.per_second = all ? map.real("per_second", *all)
                          : map.real("per_fid", *each) * static_cast<double>(fid_count);
    return rate;
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
        value.fail("'" + text + "' is no header", allowed);
    }
    return header;
}

FaultConfig read_faults(const YamlValue& value) {
    const SectionReader map{value, {"faults"}};
    FaultConfig faults;
    double sum = 0;
    for (const auto& [key, part] : {std::pair{"missing", &faults.missing},
                                    {"duplicated", &faults.duplicated},
                                    {"corrupted", &faults.corrupted},
                                    {"late", &faults.late},
                                    {"truncated", &faults.truncated}}) {
        if (const auto v = map.find(key)) *part = map.real(key, *v);
        sum += *part;
    }
    if (sum > 1) value.fail("more faults than messages", "at most 1 in all");
    return faults;
}

void read_pattern(const SectionReader& map, PatternConfig& pattern) {
    map.flag("time_stamps", pattern.timed);
    if (const auto v = map.find("faults")) pattern.faults = read_faults(*v);
}

std::size_t smallest_bytes(const SourceConfig& source) {
    const auto* const pattern = std::get_if<PatternConfig>(&source);
    if (pattern == nullptr) return 1;
    const bool damaged = pattern->faults.corrupted > 0 || pattern->faults.truncated > 0;
    if (pattern->timed) return timed_pattern_bytes + (damaged ? 1 : 0);
    return damaged ? whole_pattern_bytes + 1 : smallest_pattern_bytes;
}

void read_trigger(const SectionReader& map, const std::vector<std::string>& triggers,
                  StreamConfig& stream) {
    const auto value = map.find("trigger");
    if (!value) return;
    const std::vector<std::string_view> names{triggers.begin(), triggers.end()};
    if (names.empty()) value->fail("the publisher has no triggers", "with triggers: {NAME: ...}");
    stream.trigger = value->choice(names);
    if (map.find("rate")) value->fail("the stream has a rate", "one of rate and trigger");
}

StreamConfig read_stream(const YamlValue& value, const StreamLimits& limits,
                         std::uint64_t default_seed) {
    const SectionReader map{value, {"stream"}};
    StreamConfig stream;
    stream.fids = read_fids(map.get("fids"));
    if (const auto v = map.find("meaning")) stream.meaning = read_meaning(*v);
    stream.source = read_source(map, count_of(stream.fids), limits.folder);
    if (auto* const pattern = std::get_if<PatternConfig>(&stream.source)) {
        read_pattern(map, *pattern);
    } else {
        for (const char* const key : {"time_stamps", "faults"})
            if (const auto v = map.find(key)) v->fail("not of this source", "with source: pattern");
    }
    if (const auto v = map.find("header")) stream.header = read_header(*v);
    map.whole("slices", stream.slices);
    const std::size_t min = smallest_bytes(stream.source);
    const std::size_t max =
        limits.largest_message - std::min(limits.largest_message, bytes_of(stream.header));
    if (min > max) {
        value.fail("its messages have at least " + std::to_string(min) +
                       " bytes, and largest_message is " + std::to_string(limits.largest_message),
                   "a larger largest_message, or another source");
    }
    if (const auto v = map.find("size")) {
        stream.sizes = read_sizes(*v, min, max);
    } else if (std::holds_alternative<PatternConfig>(stream.source)) {
        value.fail("key 'size' is missing", "a size, as a pattern has none of its own");
    } else {
        stream.sizes = FixedSize{std::min<std::size_t>(64 * 1024, max)};
    }
    if (const auto v = map.find("rate")) stream.rate = read_rate(map, *v, count_of(stream.fids));
    read_trigger(map, limits.triggers, stream);
    if (const auto v = map.find("count")) stream.count = map.whole("count", *v);
    map.whole("status", stream.status);
    stream.seed = default_seed;
    map.whole("seed", stream.seed);
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

std::size_t bytes_of(const HeaderConfig& header) {
    return header.event ? 8 : header.bytes.size();
}

RateConfig read_rate_map(const YamlValue& value, std::string_view section) {
    const SectionReader map{value, {section}};
    RateConfig rate;
    map.whole("burst", rate.burst);
    if (const auto v = map.find("timing")) rate.poisson = map.word("timing", *v) == 1;
    map.time("train_ns", rate.train);
    map.time("gap_ns", rate.gap);
    if (const auto v = map.find("gap_ns"); v && rate.train.count() == 0)
        v->fail("a gap without trains", "with train_ns");
    return rate;
}

std::vector<StreamConfig> read_streams(const YamlValue& list, const StreamLimits& limits) {
    std::vector<StreamConfig> streams;
    for (const YamlValue& each : list.list())
        streams.push_back(read_stream(each, limits, limits.first_seed + streams.size()));
    refuse_shared_fids(list, streams);
    return streams;
}

std::string path_in_folder(const std::string& path, const std::string& folder) {
    const std::filesystem::path given{path};
    return given.is_absolute() || folder.empty() ? path : (folder / given).string();
}

} // namespace apps
