// SPDX-License-Identifier: Apache-2.0
#include "apps/common/recording_arguments.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/parse.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace apps {
namespace {

// Takes `digits` digits and the separator after them, unless that is zero.
std::optional<int> take_number(std::string_view& text, std::size_t digits, char separator) {
    if (text.size() < digits) return std::nullopt;
    int value = 0;
    const auto result = std::from_chars(text.data(), text.data() + digits, value);
    if (result.ec != std::errc{} || result.ptr != text.data() + digits || value < 0)
        return std::nullopt;
    text.remove_prefix(digits);
    if (separator == 0) return value;
    if (!text.starts_with(separator)) return std::nullopt;
    text.remove_prefix(1);
    return value;
}

std::optional<RecordingTime> parse_absolute(std::string_view text) {
    const auto year = take_number(text, 4, '-');
    const auto month = year ? take_number(text, 2, '-') : std::nullopt;
    const auto day = month ? take_number(text, 2, 'T') : std::nullopt;
    const auto hour = day ? take_number(text, 2, ':') : std::nullopt;
    const auto minute = hour ? take_number(text, 2, ':') : std::nullopt;
    const auto second = minute ? take_number(text, 2, 0) : std::nullopt;
    if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year{*year},
                                           std::chrono::month{static_cast<unsigned>(*month)},
                                           std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok() || *year < 1970 || *year > 2200) return std::nullopt;
    std::int64_t fraction_ns = 0;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        std::int64_t unit = 100'000'000;
        while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
            fraction_ns += unit * (text.front() - '0');
            unit /= 10;
            text.remove_prefix(1);
        }
    }
    if (!text.empty() && text != "Z") return std::nullopt;
    return RecordingTime{std::chrono::sys_days{date} + std::chrono::hours{*hour} +
                         std::chrono::minutes{*minute} + std::chrono::seconds{*second} +
                         std::chrono::nanoseconds{fraction_ns}};
}

std::optional<RecordingTime> bound(const std::string& option, const std::string& text,
                                   RecordingTime begin) {
    if (text.empty()) return std::nullopt;
    const auto time = parse_recording_time(text, begin);
    if (time) return time;
    throw std::invalid_argument{
        fmt::format("{}: '{}'; allowed: a time after the begin of the recording, as 500ms, 10s, "
                    "2m, or a time in UTC, as 2026-11-27T17:46:09.5Z",
                    option, text)};
}

} // namespace

void add_recordings(CLI::App& command, RecordingArguments& arguments) {
    command
        .add_option("files", arguments.files,
                    "Recordings, read one after the other: files, folders, or the name of a "
                    "rotated set without its numbers")
        ->required();
    using Options = netio::RecordingReader::Options;
    add_bytes(command, cli_flag<&Options::chunk_memory_limit_bytes>(),
              arguments.chunk_memory_limit_bytes, "Limit of a chunk of a recording in memory",
              {.min = 1 << 16, .max = std::uint64_t{1} << 40});
}

void add_recording_selection(CLI::App& command, RecordingArguments& arguments) {
    command
        .add_option("--fid", arguments.fids,
                    "Only these fids, as 5, 0-63, or by fields; may be repeated")
        ->allow_extra_args(false); // files may follow
    command.add_option("--from", arguments.from,
                       "Begin at this time: after the begin of the recording, as 10s, or in UTC, "
                       "as 2026-11-27T17:46:09.5Z");
    command.add_option("--until", arguments.until, "End before this time, written as for --from");
}

void add_compression(CLI::App& command, netio::RecordingWriter::Compression& compression) {
    using Writer = netio::RecordingWriter;
    add_words(
        command, cli_flag<&Writer::Options::compress>(), {"none", "lz4", "zstd"}, // as in the enum
        [&compression](std::size_t word) { compression = static_cast<Writer::Compression>(word); },
        "Compress chunks: none, lz4 or zstd")
        ->default_str("none");
}

std::optional<RecordingTime> parse_recording_time(std::string_view text, RecordingTime begin) {
    if (text == "0") return begin;
    if (const auto after = parse_duration(text)) return begin + *after;
    return parse_absolute(text);
}

std::string shown(RecordingTime time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{time - day};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                       clock.subseconds().count());
}

netio::RecordingReader open_recording(const RecordingArguments& arguments,
                                      netio::RecordingReader::OnDamage on_damage) {
    netio::RecordingReader reader{
        arguments.files,
        {.chunk_memory_limit_bytes = arguments.chunk_memory_limit_bytes, .on_damage = on_damage}};
    const std::vector<netio::pubsub::FidRange> fids = parse_fids(arguments.fids);
    if (fids.empty() && arguments.from.empty() && arguments.until.empty()) return reader;
    const RecordingTime begin = reader.begin_time().value_or(RecordingTime{});
    reader.select({.fids = netio::FidSet{fids},
                   .from = bound("--from", arguments.from, begin),
                   .until = bound("--until", arguments.until, begin)});
    return reader;
}

} // namespace apps
