// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/report.hpp"

#include "apps/common/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace apps::copy {
namespace {

using Json = nlohmann::ordered_json;

std::string_view to_string(CopiedFile::Outcome outcome) {
    switch (outcome) {
    case CopiedFile::Outcome::copied:
        return "copied";
    case CopiedFile::Outcome::present:
        return "present";
    case CopiedFile::Outcome::failed:
        return "failed";
    }
    return "unknown";
}

std::string short_bytes(double bytes) {
    return short_number(bytes) + "B";
}

} // namespace

std::string to_json(const Report& report) {
    Json json;
    json["role"] = "copy";
    json["report_version"] = report_version;
    json["provider"] = report.provider;
    json["end"] = report.end;
    json["detail"] = report.detail;
    json["bytes"] = report.moved_bytes;
    json["seconds"] = report.seconds;
    json["gbit_per_s"] =
        Throughput{.bytes = report.moved_bytes, .seconds = report.seconds}.gbit_per_s();
    json["checksum"] = to_string(report.checksum);
    json["files"] = Json::array();
    for (const CopiedFile& file : report.files) {
        json["files"].push_back({{"path", file.path},
                                 {"outcome", to_string(file.outcome)},
                                 {"bytes", file.size_bytes},
                                 {"resumed_bytes", file.resumed_bytes},
                                 {"moved_bytes", file.moved_bytes},
                                 {"checksum", file.checksum},
                                 {"detail", file.detail}});
    }
    return json_line(json);
}

std::string to_json(const ServerReport& report) {
    Json json;
    json["role"] = "copy server";
    json["report_version"] = report_version;
    json["provider"] = report.provider;
    json["end"] = report.end;
    json["files"] = report.counters.files;
    json["bytes"] = report.counters.bytes;
    json["failures"] = report.counters.failures;
    return json_line(json);
}

std::string to_text(const Report& report) {
    const auto count = [&](CopiedFile::Outcome outcome) {
        return std::ranges::count(report.files, outcome, &CopiedFile::outcome);
    };
    std::string text =
        fmt::format("copy ({}): {}, {} of {} files copied",
                    report.provider.empty() ? "not connected" : report.provider, report.end,
                    count(CopiedFile::Outcome::copied), report.files.size());
    if (const auto present = count(CopiedFile::Outcome::present); present > 0)
        text += fmt::format(", {} already there", present);
    if (const auto failed = count(CopiedFile::Outcome::failed); failed > 0)
        text += fmt::format(", {} failed", failed);
    text += fmt::format(", {} bytes sent in {:.3f} s", report.moved_bytes, report.seconds);
    // Without bytes there is no rate to show.
    if (report.moved_bytes > 0 && report.seconds > 0)
        text += fmt::format(": {}/s",
                            short_bytes(static_cast<double>(report.moved_bytes) / report.seconds));
    return text + "\n";
}

std::string to_text(const ServerReport& report) {
    return fmt::format("copy server ({}): {}, {} files kept, {} bytes, {} failures\n",
                       report.provider, report.end, report.counters.files, report.counters.bytes,
                       report.counters.failures);
}

std::string to_text(const CopiedFile& file, ChecksumKind checksum) {
    if (file.outcome == CopiedFile::Outcome::failed) return file.path + ": " + file.detail;
    std::string text = fmt::format("{}: {} bytes, {} {}", file.path, file.size_bytes,
                                   to_string(checksum), file.checksum);
    if (file.outcome == CopiedFile::Outcome::present) text += ", already there";
    if (file.resumed_bytes > 0) text += fmt::format(", resumed at {}", file.resumed_bytes);
    const bool copied = file.outcome == CopiedFile::Outcome::copied;
    const std::uint64_t rest = file.size_bytes - file.resumed_bytes;
    if (copied && file.moved_bytes < rest)
        text += fmt::format(", sparse: {} bytes of data sent", file.moved_bytes);
    if (!file.detail.empty()) text += "; " + file.detail;
    return text;
}

std::string progress_line(const Sender::Progress& progress, double bytes_per_s) {
    constexpr std::size_t width = 30;
    const double share = progress.size_bytes == 0 ? 1.0
                                                  : static_cast<double>(progress.done_bytes) /
                                                        static_cast<double>(progress.size_bytes);
    const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
    std::string line = fmt::format(
        "{}  {:3.0f}% [{}{}] {} of {}  {}/s", progress.path, std::floor(share * 100),
        std::string(full, '='), std::string(width - full, ' '),
        short_bytes(static_cast<double>(progress.done_bytes)),
        short_bytes(static_cast<double>(progress.size_bytes)), short_bytes(bytes_per_s));
    if (bytes_per_s > 0) {
        const auto left = static_cast<double>(progress.size_bytes - progress.done_bytes);
        line += fmt::format("  {:.0f} s left", std::ceil(left / bytes_per_s));
    }
    return line;
}

} // namespace apps::copy
