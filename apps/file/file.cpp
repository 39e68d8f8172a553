// SPDX-License-Identifier: Apache-2.0

// netio file: looks into recordings, checks and repairs them, and exports what they have.

#include "apps/common/cli.hpp"
#include "apps/common/recording_arguments.hpp"
#include "apps/common/report.hpp"
#include "apps/common/terminal.hpp"
#include "apps/file/copy.hpp"
#include "apps/file/export.hpp"
#include "apps/file/hdf5_export.hpp"
#include "apps/file/progress.hpp"
#include "apps/file/repair.hpp"
#include "apps/file/summary.hpp"
#include "apps/program/commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace apps {
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
    print(arguments, report);
    const bool damaged =
        report.damage_count > 0 || !report.wrong_counts.empty() || report.backward_steps > 0;
    if (damaged) return ExitStatus::unsound;
    return report.torn.empty() ? ExitStatus::done : ExitStatus::incomplete;
}

ExitStatus run_repair(const FileArguments& arguments) {
    if (arguments.recording.files.size() != 1)
        throw std::invalid_argument{"repair: give one file, and the new file with --output"};
    RepairReport report;
    {
        Progress progress{arguments.json};
        report =
            repair(arguments.recording.files.front(), arguments.output,
                   arguments.recording.chunk_memory_limit_bytes,
                   [&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); });
    }
    if (arguments.json) {
        Json json = json_report("file_repair");
        json["output"] = arguments.output;
        json["chunks"] = report.chunks;
        json["messages"] = report.messages;
        json["skipped_places"] = report.skipped_places;
        json["skipped_bytes"] = report.skipped_bytes;
        print_report(json_line(json) + "\n");
    } else {
        print_report(fmt::format("{}: {} messages in {} chunks; {} bytes were not whole\n",
                                 arguments.output, report.messages, report.chunks,
                                 report.skipped_bytes));
    }
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
        action.add_flag("--json", arguments->json,
                        "Print the report as one JSON object, as the last line");
        actions_.emplace_back(&action, [run, arguments] { return to_integer(run(*arguments)); });
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
