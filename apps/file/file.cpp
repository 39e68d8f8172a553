// SPDX-License-Identifier: Apache-2.0
#include "apps/file/file.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/report.hpp"
#include "apps/file/export.hpp"
#include "apps/program/commands.hpp"
#include "netio/base/time.hpp"
#include "pubsub/recording/recording_reader.hpp"
#include "pubsub/recording/recording_writer.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace apps::file {

// While it exists, the first of the end signals becomes an exception of check(), so that the owner
// of a new file removes it. ended() then lets the signal end the process. A second one ends it at
// once.
class EndSignals {
  public:
    EndSignals() {
        struct sigaction action {};
        action.sa_handler = [](int number) { received_ = number; };
        action.sa_flags = static_cast<int>(SA_RESETHAND); // and a blocked write fails with EINTR
        for (const int number : end_signals())
            ::sigaction(number, &action, nullptr);
    }
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;
    ~EndSignals() {
        for (const int number : end_signals())
            std::signal(number, SIG_DFL);
    }

    static void check() {
        if (received_ != 0) throw std::runtime_error{"interrupted"};
    }
    // Call after an exception.
    static void end_if_received() {
        if (received_ == 0) return;
        std::signal(received_, SIG_DFL);
        ::raise(received_);
    }

  private:
    static inline volatile std::sig_atomic_t received_ = 0;
};

// Shows the progress of long work once a second in one line, if standard output is a terminal.
class Progress {
  public:
    explicit Progress(bool json) : is_shown_{!json && ::isatty(STDOUT_FILENO) == 1} {}
    ~Progress() {
        if (was_shown_) put_on_terminal(in_its_place("", terminal_columns()));
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Call often; costs a few instructions. Throws after an end signal.
    void show(std::uint64_t done_bytes, std::uint64_t total_bytes) {
        EndSignals::check();
        if (!is_shown_ || (++calls_ & 0xfff) != 0) return;
        const netio::TimePoint now = netio::Clock::now();
        if (now - last_ < std::chrono::seconds{1}) return;
        last_ = now;
        was_shown_ = true;
        const double done = static_cast<double>(done_bytes);
        const double seconds = std::chrono::duration<double>(now - begin_).count();
        put_on_terminal(in_its_place(
            fmt::format("{:.0f} % of {}B, {}B/s",
                        total_bytes > 0 ? 100 * done / static_cast<double>(total_bytes) : 0,
                        short_number(static_cast<double>(total_bytes)),
                        short_number(done / seconds)),
            terminal_columns()));
    }

  private:
    bool is_shown_;
    bool was_shown_ = false;
    std::uint64_t calls_ = 0;
    netio::TimePoint begin_ = netio::Clock::now();
    netio::TimePoint last_ = begin_;
};

struct CopyReport {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t events = 0;
    std::vector<std::string> files;
};

// Writes the selected messages and events of all readers into a new recording, in the order of
// their times; at equal times, in the order of the readers. Throws RecordingError and
// std::system_error; then the new files are removed.
CopyReport copy_recordings(std::vector<netio::RecordingReader>& readers, const std::string& path,
                           netio::RecordingWriter::Options options,
                           const std::function<void()>& on_progress);

namespace {

using netio::RecordedEvent;
using netio::RecordedMessage;
using netio::RecordingReader;
using netio::RecordingTime;
using netio::RecordingWriter;

std::uint64_t to_ns(RecordingTime time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

RecordingTime time_of(const RecordingReader& reader) {
    const RecordedEvent* const event = reader.event();
    return event != nullptr ? event->time : reader.message().arrival_time;
}

netio::FidSet fids_of(const RecordedEvent& event) {
    try {
        if (!event.fids.empty()) return netio::FidSet{parse_fids(event.fids)};
    } catch (const std::invalid_argument&) { // of another program
    }
    return {};
}

class Copy {
  public:
    Copy(const std::string& path, RecordingWriter::Options options)
        : writer_{std::make_unique<RecordingWriter>(path, std::move(options))} {}
    ~Copy() {
        if (writer_ == nullptr) return;
        const std::vector<std::string> files = writer_->stats().files;
        writer_.reset();
        for (const std::string& each : files)
            ::unlink(each.c_str());
    }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    void take(const RecordingReader& reader) {
        if (const RecordedEvent* const event = reader.event()) {
            write(RecordingWriter::Event{.event = event->event,
                                         .publisher = event->publisher,
                                         .fids = fids_of(*event),
                                         .count = event->count,
                                         .reason = event->reason,
                                         .arrival_ns = to_ns(event->time)});
            ++report_.events;
            return;
        }
        const RecordedMessage& message = reader.message();
        RecordingWriter::Entry entry{.fid = message.fid,
                                     .bytes = message.bytes,
                                     .status = message.status,
                                     .sequence = message.sequence,
                                     .arrival_ns = to_ns(message.arrival_time),
                                     .publisher = message.publisher};
        if (message.has_publish_time) entry.publish_ns = to_ns(message.publish_time);
        write(entry);
        ++report_.messages;
        report_.bytes += message.bytes.size();
    }

    CopyReport finish() {
        writer_->close();
        report_.files = writer_->stats().files;
        writer_.reset();
        return std::move(report_);
    }

  private:
    template <typename Item>
    void write(const Item& item) {
        for (;;) {
            const netio::Status status = writer_->write(item);
            if (status == netio::Status::ok) return;
            if (status == netio::Status::closed) {
                writer_->close(); // throws why
                throw std::runtime_error{writer_->stats().failure};
            }
            EndSignals::check();
            static_cast<void>(writer_->wait_until_writable(std::chrono::seconds{1}));
        }
    }

    std::unique_ptr<RecordingWriter> writer_; // null: finished
    CopyReport report_;
};

} // namespace

CopyReport copy_recordings(std::vector<RecordingReader>& readers, const std::string& path,
                           RecordingWriter::Options options,
                           const std::function<void()>& on_progress) {
    Copy copy{path, std::move(options)};
    using Place = std::pair<RecordingTime, std::size_t>; // the earliest first
    std::priority_queue<Place, std::vector<Place>, std::greater<>> next;
    for (std::size_t i = 0; i < readers.size(); ++i)
        if (readers[i].next()) next.emplace(time_of(readers[i]), i);
    while (!next.empty()) {
        on_progress();
        const std::size_t i = next.top().second;
        next.pop();
        copy.take(readers[i]);
        if (readers[i].next()) next.emplace(time_of(readers[i]), i);
    }
    return copy.finish();
}

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

// A text of the file. Its line ends would forge lines of the report.
std::string in_line(std::string_view text) {
    return printable(text);
}

std::string file_lines(const netio::RecordingReader::File& file) {
    std::string text =
        fmt::format("{}: {}B, {}, written by {}\n", in_line(file.path),
                    short_number(static_cast<double>(file.bytes)),
                    file.has_summary ? "complete" : "without a summary",
                    file.library.empty() ? "an unknown program" : in_line(file.library));
    std::string line;
    for (const auto& [key, value] : file.properties)
        line += (line.empty() ? "  " : ", ") + in_line(key) + " " + in_line(value);
    return line.empty() ? text : text + line + "\n";
}

std::string problem_lines(const Report& report) {
    std::string text;
    for (const auto& each : report.damage)
        text += fmt::format("damaged: {}: at offset {}, {} bytes: {}\n", in_line(each.path),
                            each.offset, each.bytes, in_line(each.problem));
    if (report.damage_count > report.damage.size())
        text +=
            fmt::format("damaged: {} further places\n", report.damage_count - report.damage.size());
    for (const auto& each : report.torn)
        text += fmt::format("torn: {}: {} at offset {}, {} bytes after it were not read; `netio "
                            "file repair` writes what is whole into another file\n",
                            in_line(each.path), each.problem, each.offset, each.bytes);
    for (const std::string& each : report.absent_parts)
        text += fmt::format("absent: {}; its messages count as lost\n", in_line(each));
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
                            size, in_line(each.publisher));
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
        text += fmt::format("event {}: {} times", in_line(name), sum.events);
        if (sum.count > 0)
            text += name == "disk_slow" ? fmt::format(", the queue was full {} times", sum.count)
                                        : fmt::format(", {} messages", sum.count);
        text += "\n";
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
    json["absent_parts"] = report.absent_parts;
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

namespace apps {

// netio file: looks into recordings, checks and repairs them, and exports what they have.

namespace file {
namespace {

using netio::RecordingReader;

struct FileArguments {
    RecordingArguments recording;
    std::string output;
    std::size_t fids = 20; // shown
    ExportForm form = ExportForm::csv;
    std::string layout; // of messages in HDF5; may be empty
    netio::RecordingWriter::Options writer;
    bool json = false;
};

using Json = nlohmann::ordered_json;

Json json_report(const char* role) {
    return {{"role", role}, {"report_version", report_version}};
}

// Parts of a set between others: their messages are among the lost ones, but a disk has them, or
// had. The first and the last part of a set are not known here.
std::vector<std::string> absent_parts(std::span<const RecordingReader::File> files) {
    std::map<std::string, std::set<std::uint64_t>> parts; // by run
    for (const RecordingReader::File& file : files) {
        std::string run;
        std::optional<std::uint64_t> part;
        for (const auto& [key, value] : file.properties) {
            if (key == "run") run = value;
            std::uint64_t number = 0;
            const char* const end = value.data() + value.size();
            if (key == "part" && std::from_chars(value.data(), end, number).ptr == end)
                part = number;
        }
        if (part) parts[run].insert(*part);
    }
    std::vector<std::string> absent;
    for (const auto& [run, numbers] : parts) {
        std::uint64_t before = *numbers.begin();
        for (const std::uint64_t number : numbers) {
            if (number - before > 1)
                absent.push_back(
                    number - before == 2
                        ? fmt::format("part {} of run {}", before + 1, run)
                        : fmt::format("parts {} to {} of run {}", before + 1, number - 1, run));
            before = number;
        }
    }
    return absent;
}

Report read_all(RecordingReader& reader, const char* role, bool json) {
    Report report{.role = role};
    {
        Progress progress{json};
        while (reader.next()) {
            progress.show(reader.passed_bytes(), reader.total_bytes());
            if (const netio::RecordedEvent* const event = reader.event()) {
                report.summary.add(*event);
            } else {
                report.summary.add(reader.message());
            }
        }
    }
    report.files.assign(reader.files().begin(), reader.files().end());
    report.absent_parts = absent_parts(reader.files());
    report.damage.assign(reader.damage().begin(), reader.damage().end());
    report.damage_count = reader.damage_count();
    report.torn.assign(reader.torn().begin(), reader.torn().end());
    report.foreign_messages = reader.foreign_messages();
    report.backward_steps = reader.backward_steps();
    return report;
}

void print(const FileArguments& arguments, const Report& report) {
    print_report(arguments.json ? to_json(report) + "\n" : to_text(report, arguments.fids));
}

ExitStatus run_info(const FileArguments& arguments) {
    RecordingReader reader = open_recording(arguments.recording);
    print(arguments, read_all(reader, "file_info", arguments.json));
    return ExitStatus::done;
}

// The reader has reported the same damage if it had to scan the file.
void verify_between_chunks(const FileArguments& arguments, Report& report) {
    Progress progress{arguments.json};
    for (const RecordingReader::File& file : report.files) {
        const auto is_known = [&](const RecordingReader::Damage& found) {
            return std::ranges::any_of(report.damage, [&](const RecordingReader::Damage& each) {
                return each.path == found.path && each.offset == found.offset;
            });
        };
        for (RecordingReader::Damage& found : check_between_chunks(
                 file, arguments.recording.chunk_memory_limit_bytes,
                 [&](std::uint64_t passed) { progress.show(passed, file.bytes); })) {
            if (is_known(found)) continue;
            ++report.damage_count;
            if (report.damage.size() < RecordingReader::damage_limit)
                report.damage.push_back(std::move(found));
        }
    }
}

ExitStatus run_verify(const FileArguments& arguments) {
    RecordingReader reader = open_recording(arguments.recording, RecordingReader::OnDamage::skip);
    Report report = read_all(reader, "file_verify", arguments.json);
    std::uint64_t counted = report.summary.messages + report.foreign_messages;
    for (const auto& [name, sum] : report.summary.events)
        counted += sum.events;
    std::uint64_t written = 0;
    const RecordingArguments& chosen = arguments.recording;
    bool is_known = chosen.fids.empty() && chosen.from.empty() && chosen.until.empty();
    for (const RecordingReader::File& each : report.files) {
        is_known = is_known && each.messages.has_value();
        written += each.messages.value_or(0);
    }
    if (is_known && written != counted && report.damage_count == 0)
        report.wrong_counts.push_back(
            fmt::format("the summaries have {} messages, the chunks have {}", written, counted));
    verify_between_chunks(arguments, report);
    print(arguments, report);
    const bool damaged =
        report.damage_count > 0 || !report.wrong_counts.empty() || report.backward_steps > 0;
    if (damaged) return ExitStatus::unsound;
    const bool is_complete = report.torn.empty() && report.absent_parts.empty();
    return is_complete ? ExitStatus::done : ExitStatus::incomplete;
}

ExitStatus run_repair(const FileArguments& arguments) {
    if (arguments.recording.files.size() != 1)
        throw std::invalid_argument{"repair: give one file, and the new file with --output"};
    RepairReport report;
    const bool is_to_stdout = arguments.output == "-"; // which has nothing but the recording
    {
        Progress progress{arguments.json || is_to_stdout};
        report =
            repair(arguments.recording.files.front(), arguments.output,
                   arguments.recording.chunk_memory_limit_bytes,
                   [&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); });
    }
    if (!is_to_stdout && arguments.json) {
        Json json = json_report("file_repair");
        json["output"] = arguments.output;
        json["chunks"] = report.chunks;
        json["messages"] = report.messages;
        json["skipped_places"] = report.skipped_places;
        json["skipped_bytes"] = report.skipped_bytes;
        json["lost_channels"] = report.lost_channels;
        json["lost_channel_messages"] = report.lost_channel_messages;
        print_report(json_line(json) + "\n");
    } else if (!is_to_stdout) {
        print_report(fmt::format("{}: {} messages in {} chunks; {} bytes were not whole\n",
                                 arguments.output, report.messages, report.chunks,
                                 report.skipped_bytes));
    }
    if (report.lost_channels > 0)
        spdlog::warn("{}: the records of {} channels are damaged: the fids of their {} messages "
                     "are not known; they are in the channels lost/ID",
                     arguments.output, report.lost_channels, report.lost_channel_messages);
    return ExitStatus::done;
}

ExitStatus copy_all(const FileArguments& arguments, const char* role,
                    std::vector<RecordingReader>& readers) {
    CopyReport report;
    {
        Progress progress{arguments.json};
        report = copy_recordings(readers, arguments.output, arguments.writer, [&] {
            std::uint64_t passed = 0;
            std::uint64_t total = 0;
            for (const RecordingReader& each : readers) {
                passed += each.passed_bytes();
                total += each.total_bytes();
            }
            progress.show(passed, total);
        });
    }
    std::uint64_t foreign = 0;
    for (const RecordingReader& each : readers) {
        foreign += each.foreign_messages();
        for (const auto& torn : each.torn())
            spdlog::warn("{}: {}; {} bytes were not read", torn.path, torn.problem, torn.bytes);
    }
    if (foreign > 0) spdlog::warn("{} messages of other programs were not copied", foreign);
    if (arguments.json) {
        Json json = json_report(role);
        json["files"] = report.files;
        json["messages"] = report.messages;
        json["bytes"] = report.bytes;
        json["events"] = report.events;
        json["foreign_messages"] = foreign;
        print_report(json_line(json) + "\n");
    } else {
        print_report(fmt::format("{}: {} messages, {} bytes, {} events\n", arguments.output,
                                 report.messages, report.bytes, report.events));
    }
    return report.messages > 0 ? ExitStatus::done : ExitStatus::nothing;
}

ExitStatus run_cut(const FileArguments& arguments) {
    std::vector<RecordingReader> readers;
    readers.push_back(open_recording(arguments.recording));
    return copy_all(arguments, "file_cut", readers);
}

ExitStatus run_merge(const FileArguments& arguments) {
    std::vector<RecordingReader> readers;
    for (const std::string& each : arguments.recording.files) {
        RecordingArguments one = arguments.recording;
        one.files = {each};
        readers.push_back(open_recording(one));
    }
    return copy_all(arguments, "file_merge", readers);
}

ExitStatus run_export(const FileArguments& arguments) {
    if (arguments.form == ExportForm::hdf5) require_hdf5();
    if (arguments.form == ExportForm::hdf5 && arguments.output == "-")
        throw std::invalid_argument{"--output: HDF5 cannot be written to standard output; give the "
                                    "name of a new file"};
    if (arguments.form != ExportForm::hdf5 && !arguments.layout.empty())
        throw std::invalid_argument{"--layout: only with --as hdf5"};
    const std::vector<LayoutField> layout =
        arguments.layout.empty() ? std::vector<LayoutField>{} : parse_layout(arguments.layout);
    RecordingReader reader = open_recording(arguments.recording);
    ExportReport report;
    const bool is_quiet = arguments.json || arguments.output == "-";
    {
        Progress progress{is_quiet};
        report = export_recording(reader, arguments.form, arguments.output, layout, [&] {
            progress.show(reader.passed_bytes(), reader.total_bytes());
        });
    }
    for (const auto& torn : reader.torn())
        spdlog::warn("{}: {}; {} bytes were not read", torn.path, torn.problem, torn.bytes);
    if (arguments.output == "-") return ExitStatus::done;
    if (arguments.json) {
        Json json = json_report("file_export");
        json["output"] = arguments.output;
        json["messages"] = report.messages;
        json["bytes"] = report.bytes;
        json["fids"] = report.fids;
        print_report(json_line(json) + "\n");
    } else {
        print_report(fmt::format("{}: {} messages of {} fids, {} bytes\n", arguments.output,
                                 report.messages, report.fids, report.bytes));
    }
    return report.messages > 0 ? ExitStatus::done : ExitStatus::nothing;
}

using RunAction = ExitStatus (*)(const FileArguments&);

class FileCommand {
  public:
    explicit FileCommand(CLI::App& program)
        : command_{*program.add_subcommand("file", "Look into recordings, check and repair them, "
                                                   "and export what they have")} {
        command_.require_subcommand(1);
    }

    CLI::App& add(const std::string& name, const std::string& help, RunAction run) {
        CLI::App& action = *command_.add_subcommand(name, help);
        const auto arguments = std::make_shared<FileArguments>();
        arguments_ = arguments.get();
        add_recordings(action, arguments->recording);
        add_json(action, arguments->json);
        actions_.emplace_back(&action, [run, arguments] {
            const EndSignals signals;
            try {
                return to_integer(run(*arguments));
            } catch (...) {
                EndSignals::end_if_received();
                throw;
            }
        });
        return action;
    }
    FileArguments& arguments() { return *arguments_; } // of the last added action

    Command command() const {
        return [actions = actions_] {
            for (const auto& [action, run] : actions)
                if (action->parsed()) return run();
            return to_integer(ExitStatus::wrong_usage);
        };
    }

  private:
    CLI::App& command_;
    FileArguments* arguments_ = nullptr;
    std::vector<std::pair<CLI::App*, Command>> actions_;
};

void add_output(CLI::App& action, FileArguments& arguments, const std::string& help) {
    action.add_option("--output", arguments.output, help)->required();
}

} // namespace
} // namespace file

Command add_file(CLI::App& program) {
    using namespace file;
    FileCommand command{program};
    const auto add_look = [&](const std::string& name, const std::string& help, RunAction run) {
        CLI::App& action = command.add(name, help, run);
        add_recording_selection(action, command.arguments().recording);
        add_count(action, "--fids", command.arguments().fids, "Show at most this many fids",
                  {.min = 0, .max = 1'000'000});
    };
    add_look("info", "Show fids, numbers, rates, losses and the rate over time", run_info);
    add_look("verify", "Check every checksum, number and time", run_verify);
    CLI::App& repairing = command.add(
        "repair", "Write everything that is whole in a torn or damaged file into a new file",
        run_repair);
    add_output(repairing, command.arguments(), "The new file; it must not exist");
    const auto add_copy = [&](const std::string& name, const std::string& help,
                              RunAction run) -> CLI::App& {
        CLI::App& action = command.add(name, help, run);
        add_output(action, command.arguments(), "The new recording; it must not exist");
        add_compression(action, command.arguments().writer.compress);
        add_min_free(action, command.arguments().writer.min_free_bytes);
        return action;
    };
    CLI::App& cut =
        add_copy("cut", "Write the selected fids and times into a new recording", run_cut);
    add_recording_selection(cut, command.arguments().recording);
    add_copy("merge", "Write several recordings into a new one, by time", run_merge);
    CLI::App& exporting = command.add(
        "export", "Write messages for other programs: raw bytes, CSV or HDF5", run_export);
    add_recording_selection(exporting, command.arguments().recording);
    add_output(exporting, command.arguments(),
               "The new file; it must not exist. - is standard output");
    add_words(
        exporting, "--as", {"raw", "csv", "hdf5"},
        [form = &command.arguments().form](std::size_t which) {
            *form = static_cast<ExportForm>(which);
        },
        "What to write: raw: the bytes of one fid; csv: a line for each message; hdf5: a "
        "group for each fid")
        ->required();
    exporting.add_option("--layout", command.arguments().layout,
                         "With --as hdf5: the fields of the messages, which have all this size, "
                         "as time:u64:ns,adc:u16[8]:mV,gain:f32");
    return command.command();
}

} // namespace apps
