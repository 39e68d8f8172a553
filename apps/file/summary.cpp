// SPDX-License-Identifier: Apache-2.0
#include "apps/file/summary.hpp"

#include "apps/common/recording_arguments.hpp"
#include "apps/common/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace apps::file {
namespace {

constexpr std::size_t bar_columns = 40;

double in_seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

std::string rate_lines(const RateHistogram& rate) {
    const auto intervals = rate.intervals();
    if (intervals.empty()) return {};
    std::uint64_t most = 1;
    for (const auto& each : intervals)
        most = std::max(most, each.messages);
    const double width = in_seconds(rate.width());
    std::string text = fmt::format("messages/s over time, {:g} s a line\n", width);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
        const auto columns = static_cast<std::size_t>(static_cast<double>(intervals[i].messages) /
                                                          static_cast<double>(most) * bar_columns +
                                                      0.999);
        text += fmt::format("{:>10.3f} s {:<{}} {}\n", static_cast<double>(i) * width,
                            std::string(columns, '#'), bar_columns,
                            short_number(static_cast<double>(intervals[i].messages) / width));
    }
    return text;
}

std::string file_lines(const netio::RecordingReader::File& file) {
    std::string text = fmt::format("{}: {}B, {}, written by {}\n", file.path,
                                   short_number(static_cast<double>(file.bytes)),
                                   file.has_summary ? "complete" : "without a summary",
                                   file.library.empty() ? "an unknown program" : file.library);
    std::string line;
    for (const auto& [key, value] : file.properties)
        line += (line.empty() ? "  " : ", ") + key + " " + value;
    return line.empty() ? text : text + line + "\n";
}

std::string problem_lines(const Report& report) {
    std::string text;
    for (const auto& each : report.damage)
        text += fmt::format("damaged: {}: at offset {}, {} bytes: {}\n", each.path, each.offset,
                            each.bytes, each.problem);
    if (report.damage_count > report.damage.size())
        text +=
            fmt::format("damaged: {} further places\n", report.damage_count - report.damage.size());
    for (const auto& each : report.torn)
        text += fmt::format("torn: {}: {} at offset {}, {} bytes after it were not read; `netio "
                            "file repair` writes what is whole into another file\n",
                            each.path, each.problem, each.offset, each.bytes);
    for (const std::string& each : report.wrong_counts)
        text += fmt::format("damaged: {}\n", each);
    if (report.backward_steps > 0)
        text += fmt::format("times step back: {} times\n", report.backward_steps);
    if (report.foreign_messages > 0)
        text +=
            fmt::format("{} messages of other programs were skipped\n", report.foreign_messages);
    return text;
}

std::string fid_lines(const Summary& summary, std::size_t fid_limit) {
    if (summary.fids.empty()) return {};
    std::string text = fmt::format("{:<18} {:>14} {:>10} {:>12} {:>10} {:>21} {}\n", "fid",
                                   "messages", "lost", "bytes", "msg/s", "size", "publisher");
    std::size_t count = 0;
    const double seconds = summary.seconds();
    for (const auto& [fid, each] : summary.fids) {
        if (count++ == fid_limit) break;
        const std::string size = each.smallest == each.largest
                                     ? fmt::format("{}", each.smallest)
                                     : fmt::format("{}-{}", each.smallest, each.largest);
        text += fmt::format("{:<18} {:>14} {:>10} {:>12} {:>10} {:>21} {}\n", to_string(fid),
                            each.messages, each.lost, each.bytes,
                            seconds > 0 ? short_number(static_cast<double>(each.messages) / seconds)
                                        : "",
                            size, each.publisher);
    }
    if (summary.fids.size() > fid_limit)
        text +=
            fmt::format("and {} more fids (--fids shows more)\n", summary.fids.size() - fid_limit);
    return text;
}

using Json = nlohmann::ordered_json;

Json places(const std::vector<netio::RecordingReader::Damage>& all) {
    Json list = Json::array();
    for (const auto& each : all)
        list.push_back({{"file", each.path},
                        {"offset", each.offset},
                        {"bytes", each.bytes},
                        {"problem", each.problem}});
    return list;
}

std::int64_t ns(netio::RecordingTime time) {
    return time.time_since_epoch().count();
}

} // namespace

void RateHistogram::add(netio::RecordingTime time, std::uint64_t bytes) {
    if (!begin_) begin_ = time;
    const auto after = std::max(time - *begin_, std::chrono::nanoseconds{0});
    while (after / width_ >= static_cast<std::int64_t>(interval_limit)) {
        for (std::size_t i = 0; i < interval_limit; ++i) {
            const Interval a = 2 * i < interval_limit ? intervals_[2 * i] : Interval{};
            const Interval b = 2 * i + 1 < interval_limit ? intervals_[2 * i + 1] : Interval{};
            intervals_[i] = {.messages = a.messages + b.messages, .bytes = a.bytes + b.bytes};
        }
        width_ *= 2;
        used_ = (used_ + 1) / 2;
    }
    const auto at = static_cast<std::ptrdiff_t>(after / width_);
    used_ = std::max(used_, at + 1);
    ++intervals_[static_cast<std::size_t>(at)].messages;
    intervals_[static_cast<std::size_t>(at)].bytes += bytes;
}

void Summary::see(netio::RecordingTime time) {
    if (!first) first = time;
    last = std::max(last, time);
}

void Summary::add(const netio::RecordedMessage& message) {
    see(message.arrival_time);
    ++messages;
    bytes += message.bytes.size();
    if (message.has_publish_time) ++with_publish_time;
    rate.add(message.arrival_time, message.bytes.size());
    FidSummary*& found = found_[message.fid];
    if (found == nullptr) {
        found = &fids[message.fid];
        found->publisher = message.publisher;
        found->smallest = message.bytes.size();
    } else if (message.sequence > found->last_sequence) {
        const std::uint64_t absent = message.sequence - found->last_sequence - 1;
        found->lost += absent;
        lost += absent;
    } else {
        ++found->restarts;
        ++restarts;
    }
    found->last_sequence = message.sequence;
    ++found->messages;
    found->bytes += message.bytes.size();
    found->smallest = std::min<std::uint64_t>(found->smallest, message.bytes.size());
    found->largest = std::max<std::uint64_t>(found->largest, message.bytes.size());
}

void Summary::add(const netio::RecordedEvent& event) {
    see(event.time);
    EventSum& sum = events[event.event];
    ++sum.events;
    sum.count += event.count.value_or(0);
}

double Summary::seconds() const {
    return first ? in_seconds(last - *first) : 0;
}

std::string to_text(const Report& report, std::size_t fid_limit) {
    const Summary& sums = report.summary;
    std::string text;
    for (const auto& file : report.files)
        text += file_lines(file);
    if (sums.first) {
        text += fmt::format("{} to {}, {:.3f} s\n", shown(*sums.first), shown(sums.last),
                            sums.seconds());
    }
    text +=
        fmt::format("{} messages, {} bytes, {} fids", sums.messages, sums.bytes, sums.fids.size());
    if (sums.seconds() > 0) {
        text += fmt::format(", {}messages/s, {}B/s",
                            short_number(static_cast<double>(sums.messages) / sums.seconds()),
                            short_number(static_cast<double>(sums.bytes) / sums.seconds()));
    }
    text += fmt::format("\nlost: {} messages by their numbers", sums.lost);
    if (sums.restarts > 0) text += fmt::format("; the numbers began again {} times", sums.restarts);
    text += "\n";
    for (const auto& [name, sum] : sums.events) {
        text += fmt::format("event {}: {} times", name, sum.events);
        text += sum.count > 0 ? fmt::format(", {} messages\n", sum.count) : "\n";
    }
    return text + problem_lines(report) + rate_lines(sums.rate) + fid_lines(sums, fid_limit);
}

std::string to_json(const Report& report) {
    const Summary& sums = report.summary;
    Json json{{"role", report.role}, {"report_version", report_version}};
    json["files"] = Json::array();
    for (const auto& file : report.files) {
        Json properties = Json::object();
        for (const auto& [key, value] : file.properties)
            properties[key] = value;
        json["files"].push_back({{"file", file.path},
                                 {"bytes", file.bytes},
                                 {"complete", file.has_summary},
                                 {"library", file.library},
                                 {"properties", properties}});
    }
    json["messages"] = sums.messages;
    json["bytes"] = sums.bytes;
    json["lost"] = sums.lost;
    json["restarts"] = sums.restarts;
    json["with_publish_time"] = sums.with_publish_time;
    json["begin_ns"] = sums.first ? Json(ns(*sums.first)) : Json();
    json["end_ns"] = sums.first ? Json(ns(sums.last)) : Json();
    json["seconds"] = sums.seconds();
    json["events"] = Json::object();
    for (const auto& [name, sum] : sums.events)
        json["events"][name] = {{"events", sum.events}, {"count", sum.count}};
    json["foreign_messages"] = report.foreign_messages;
    json["backward_steps"] = report.backward_steps;
    json["damage_count"] = report.damage_count + report.wrong_counts.size();
    json["damage"] = places(report.damage);
    json["wrong_counts"] = report.wrong_counts;
    json["torn"] = places(report.torn);
    json["rate"] = {{"interval_s", in_seconds(sums.rate.width())},
                    {"messages", Json::array()},
                    {"bytes", Json::array()}};
    for (const auto& each : sums.rate.intervals()) {
        json["rate"]["messages"].push_back(each.messages);
        json["rate"]["bytes"].push_back(each.bytes);
    }
    json["fids"] = Json::object();
    for (const auto& [fid, each] : sums.fids) {
        json["fids"][to_string(fid)] = {{"publisher", each.publisher}, {"messages", each.messages},
                                        {"bytes", each.bytes},         {"lost", each.lost},
                                        {"restarts", each.restarts},   {"size_min", each.smallest},
                                        {"size_max", each.largest}};
    }
    return json_line(json);
}

} // namespace apps::file
